"""The tracer, watched by sanitizers, as it follows real programs and as it reads damaged files."""

import os
import random
import signal
import struct
import subprocess
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from numaplan.launcher import LaunchRequest, launch_program
from numaplan.launcher.enforce import tracer as tracing
from numaplan.launcher.enforce.plan_table import encode
from numaplan.launcher.launch import launch
from numaplan.profiler.identity.environment import prepare
from tests.support.launching import build, privileged
from tests.support.outside import plan_of_threads
from tests.support.programs import REPOSITORY, sanitized
from tests.support.waiting import PATIENCE_S, until
from tests.system.launcher.test_native_sanitized import mutated

pytestmark = [
    pytest.mark.system,
    pytest.mark.filterwarnings(
        "ignore:subprocess .* is still running:ResourceWarning"
    ),  # a tracer is never waited for
]
PLAN = plan_of_threads([("p0", "0"), ("p0", "0.1"), ("p0.1", "0"), ("p0.2", "0"), ("p0.2", "0.1")])


@pytest.fixture(scope="module")
def watched() -> Path:
    """The tracer built with the address and the undefined behaviour sanitizer."""
    preload = REPOSITORY / "profiler" / "native" / "preload"
    parts = [REPOSITORY / "launcher" / "native" / part for part in ("trace", "told_cpus", "plan_table")]
    sources = [file for part in parts for file in sorted(part.glob("*.c"))]
    flags = ("-std=c11", *(f"-I{part}" for part in (*parts, preload)))
    return sanitized(
        *sources, preload / "processes.c", preload / "status.c", sanitizer="address,undefined", flags=flags
    )


@pytest.fixture
def findings(watched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the sanitizers found; nlaunch in this process uses the watched tracer."""
    for module in (tracing, launch):
        monkeypatch.setattr(module, "TRACER", watched)
    found = tmp_path / "findings"
    found.mkdir()
    monkeypatch.setenv("ASAN_OPTIONS", f"log_path={found}/asan")
    monkeypatch.setenv("UBSAN_OPTIONS", f"log_path={found}/ubsan")
    return found


def applied_to(tmp_path: Path, argv: list[str], **options: object) -> tuple[int, list[list[object]]]:
    """Exit code; process, path and whether it was bound as planned of every planned thread that appeared."""
    PLAN.save(tmp_path / "plan.json")
    report = tmp_path / "applied.json"
    code = launch_program(
        LaunchRequest(argv, str(tmp_path / "plan.json"), str(report), quiet=True, **options)  # type: ignore[arg-type]
    )
    threads = msgspec.json.decode(report.read_bytes())["threads"]
    return code, [
        [thread.get("process", "p0"), thread["path"], thread["applied"] == thread["planned"]]
        for thread in threads
        if thread["applied"]
    ]


def none_is_left(program: str) -> bool:
    """A child whose creator was killed before it told of it is not left stopped at its birth."""
    for process in Path("/proc").glob("[1-9]*"):
        with suppress(OSError):
            if str((process / "exe").readlink()) == program:
                return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("override", [False, True])
@pytest.mark.parametrize("name", ["many", "family", "tree", "births", "clone"])
def test_static_programs(tmp_path: Path, findings: Path, name: str, override: bool) -> None:
    arguments = {"many": ["1000"], "tree": ["5", "13"]}.get(name, [])
    code, threads = applied_to(tmp_path, [build(name, "-static"), *arguments], override=override)
    assert code == 0 and all(right for *_, right in threads)
    assert threads[:2] == [["p0", "0", True], ["p0", "0.1", True]]
    until(none_is_left, build(name, "-static"))
    assert list(findings.iterdir()) == []


@pytest.mark.parametrize("by", ["auto", "ptrace"])
def test_children_of_a_shell(tmp_path: Path, findings: Path, by: str) -> None:
    """Started in the place of static programs (`trace.elf exec`), or following the shell itself."""
    script = f"{build('many', '-static')} 50; {build('family', '-static')}; {build('births')}"
    code, threads = applied_to(tmp_path, ["sh", "-c", script], by=by)
    assert code == 0
    assert threads == [[p, t, True] for p, t in [("p0", "0"), ("p0.1", "0"), ("p0.2", "0"), ("p0.2", "0.1")]]
    assert list(findings.iterdir()) == []


def test_a_program_that_gains_privileges(tmp_path: Path, findings: Path) -> None:
    program = privileged(build("tree"), tmp_path)
    tmp_path.parent.chmod(0o755)
    code, threads = applied_to(tmp_path, [str(program), "3", "2"])
    assert (code, threads) == (0, [["p0", "0", True], ["p0", "0.1", True]])
    assert list(findings.iterdir()) == []


def test_damaged_files_of_a_launch(tmp_path: Path, watched: Path, findings: Path) -> None:
    """Whoever may write into the folder: the program is run all the same, and nothing leaves its bounds."""
    rng = random.Random(11)
    table = encode(PLAN, {"": (0,)}, lambda _module, _symbol: None).data
    place = tmp_path / "launch"
    place.mkdir()
    environment = prepare(place, os.environ)
    control = bytearray((place / "control").read_bytes()[: 64 + 64 * 24])
    control[16:24] = struct.pack("<2I", 24, 20)  # room for 24 processes, 20 there
    for number in range(20):  # this test's process again and again, as the child of any
        parent = rng.choice((number, number + 1, number + 2, rng.randrange(30), 1 << 20))
        struct.pack_into("<3I", control, 64 + 64 * number, os.getpid(), parent, 1)
    del environment["LD_PRELOAD"]
    for turn in range(60):
        (place / "plan.bin").write_bytes(table if turn % 2 else mutated(rng, table))
        (place / "control").write_bytes(mutated(rng, bytes(control)) if turn % 3 else control)
        words = ["yield", "1", "LD_PRELOAD=", "/bin/echo", "a", "b"]
        command = [watched, "exec", place / "plan.bin", place, *words]
        done = subprocess.run(command, env=environment, capture_output=True, timeout=PATIENCE_S, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"b\n", b"")
    assert list(findings.iterdir()) == []


@pytest.mark.parametrize("words", [[], ["trace"], ["exec"], ["keep"], ["keep", "/no/such", ""], ["x"] * 9])
def test_misuse(watched: Path, findings: Path, words: list[str]) -> None:
    done = subprocess.run([watched, *words], input=b"", capture_output=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 2 and done.stdout == b""
    assert list(findings.iterdir()) == []


def test_the_keeper_outlives_signals(tmp_path: Path, watched: Path, findings: Path) -> None:
    command = [watched, "keep", "/no/such", tmp_path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as keeper:
        assert keeper.stdout is not None and keeper.stdin is not None
        made = Path(os.fsdecode(keeper.stdout.read(4096).rstrip(b"\0")))
        assert made.parent == tmp_path and made.is_dir()
        (made / "file").write_text("text")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            keeper.send_signal(number)
        keeper.stdin.write(b"d")
        assert keeper.wait(timeout=PATIENCE_S) == 0
    assert not made.exists() and list(findings.iterdir()) == []
