"""The preload library in real programs: paths, regions, processes against what each program says."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from numaplan.profiler.identity.environment import prepare
from numaplan.profiler.identity.read import read_identity
from numaplan.profiler.identity.records import Identity
from tests.support.commands import emulator
from tests.support.launching import build
from tests.support.programs import PROGRAMS, compiled
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.system
QEMU = emulator()


def seen(
    workdir: Path, argv: Sequence[str], stdin: bytes = b"", env: dict[str, str] | None = None, code: int = 0
) -> tuple[Identity, bytes]:
    """Run argv with the library; what it saw, and the program's output."""
    workdir.mkdir(exist_ok=True)
    environment = prepare(workdir, {**os.environ, **(env or {})})
    result = subprocess.run(
        argv, env=environment, input=stdin, capture_output=True, timeout=PATIENCE_S, check=False
    )
    assert (result.returncode, result.stderr) == (code, b"")
    return read_identity(workdir), result.stdout


def paths(identity: Identity, process: str = "p0") -> list[str]:
    return sorted(thread.path for thread in identity.threads if thread.process == process)


def test_paths_are_the_same_in_twenty_runs_of_racing_creators(tmp_path: Path) -> None:
    expected = [
        "0",
        *(f"0.{i}" for i in range(1, 5)),
        *(f"0.{i}.{j}" for i in range(1, 5) for j in range(1, 4)),
    ]
    for run in range(20):
        identity, _ = seen(tmp_path / str(run), [build("tree"), "4", "3"])
        assert paths(identity) == sorted(expected)
        # Each thread named itself by its role: the role must be at its path.
        assert all(thread.name in (thread.path, "") for thread in identity.threads)
        assert sum(thread.name == thread.path for thread in identity.threads) >= len(expected) - 1
        assert all(thread.end_ns > thread.start_ns for thread in identity.threads)
        assert identity.lost == 0


BECOMES_NOBODY = """
import os, threading
def more():
    threads = [threading.Thread(target=os.getpid) for _ in range(2)]
    [(thread.start(), thread.join()) for thread in threads]
if os.fork() == 0:
    os.{call}
    for _ in range(500):
        thread = threading.Thread(target=more)
        thread.start()
        thread.join()
    os._exit(0)
os.wait()
"""


@pytest.mark.parametrize("call", ["setuid(65534)", "setresuid(-1, 65534, -1)", "setreuid(-1, 65534)"])
def test_what_a_process_makes_as_another_user_has_its_names(tmp_path: Path, call: str) -> None:
    """Servers drop root's rights before they make their threads; the log is then out of reach."""
    if os.geteuid() != 0:
        pytest.skip("only root may become another user")
    tmp_path.chmod(0o700)
    argv = [sys.executable, "-ISc", BECOMES_NOBODY.replace("{call}", call)]
    identity, _ = seen(tmp_path / "log", argv)
    made = [f"0.{one}" for one in range(1, 501)]
    assert paths(identity, "p0.1") == sorted(["0", *made, *(f"{one}.{i}" for one in made for i in (1, 2))])


def test_ten_thousand_short_threads(tmp_path: Path) -> None:
    identity, output = seen(tmp_path / "log", [build("many"), "10000"])
    assert output == b"%d 7\n" % (10000 * 9999 // 2)
    assert set(paths(identity)) == {"0", *(f"0.{i}" for i in range(1, 10002))}
    assert len(identity.threads) == 10002
    assert identity.lost == 0


def test_every_large_block_with_its_maker(tmp_path: Path) -> None:
    identity, output = seen(tmp_path / "log", [build("memory")])
    told = [line.split() for line in output.decode().splitlines()]
    regions = {(r.kind, r.start_addr, r.bytes): r for r in identity.regions}
    for kind, size, address in told:
        assert (kind, int(address), int(size)) in regions
    names = {r.name for r in identity.regions if r.kind == "static"}
    assert {"memory:table", "memory:initialised"} <= names
    heap = [r for r in identity.regions if r.kind in ("heap", "mmap") and r.name.startswith("memory+0x")]
    assert all(r.build_id == identity.processes[0].build_id for r in heap)
    in_thread = [r for r in heap if r.thread_path == "0.1"]
    assert [(r.bytes, r.sequence) for r in in_thread] == [(300000, 1)]
    assert in_thread[0].end_ns > in_thread[0].start_ns
    by_main = sorted((r.sequence, r.bytes) for r in heap if r.thread_path == "0")
    assert [sequence for sequence, _ in by_main] == list(range(1, len(by_main) + 1))
    assert 65535 not in {r.bytes for r in heap}
    sizes = {int(size) for kind, size, _ in told if kind != "static"}
    assert sizes <= {size for _, size in by_main} | {300000}
    freed = {r.bytes for r in heap if r.end_ns >= 0}
    assert freed == {300000, 1 << 18, 1 << 20}  # the block, the mapping that moved, the mapping unmapped
    again, _ = seen(tmp_path / "again", [build("memory")])
    keys = {(r.kind, r.name, r.bytes, r.thread_path, r.sequence) for r in heap}
    assert keys <= {(r.kind, r.name, r.bytes, r.thread_path, r.sequence) for r in again.regions}


def test_attached_shared_memory_is_a_mapping(tmp_path: Path) -> None:
    identity, output = seen(tmp_path / "log", [build("shared")])
    gone, small, stays = (tuple(map(int, line.split())) for line in output.splitlines())
    found = {(r.bytes, r.start_addr): r for r in identity.regions if r.name.startswith("shared+0x")}
    assert list(found) == [gone, stays] and small not in found
    assert {(r.kind, r.thread_path) for r in found.values()} == {("mmap", "0")}
    assert [r.sequence for r in found.values()] == [1, 2]
    assert found[gone].end_ns > found[gone].start_ns and found[stays].end_ns < 0


def test_processes_by_fork_path(tmp_path: Path) -> None:
    identity, _ = seen(tmp_path / "log", [build("family")])
    processes = {p.process: p for p in identity.processes}
    assert sorted(processes) == ["p0", "p0.1", "p0.1.1", "p0.2", "p0.3", "p0.4", "p0.5", "p0.6"]
    assert processes["p0.1.1"].parent == "p0.1"
    assert processes["p0.1"].argv == processes["p0"].argv
    for name in ("p0.2", "p0.3", "p0.4"):
        assert processes[name].argv[1:] == ("child",)
        assert paths(identity, name) == ["0", "0.1"]
    assert Path(processes["p0.5"].executable).name in ("dash", "sh", "bash")
    assert all(p.end_ns > p.start_ns for p in identity.processes)
    inherited = [r for r in identity.regions if r.pid == processes["p0.6"].pid and r.bytes == 200000]
    assert [r.process for r in inherited] == ["p0"]


def test_the_program_that_was_started_is_the_first_though_it_is_not_seen(tmp_path: Path) -> None:
    parent = str(compiled(PROGRAMS / "recording/static_parent.c", flags=("-static",)))
    alone, _ = seen(tmp_path / "alone", [build("many"), "3"])
    for static in (1, 2):
        identity, _ = seen(tmp_path / str(static), [*[parent] * static, build("many"), "3"])
        first, child = identity.processes
        assert (first.process, child.process, child.parent) == ("p0", "p0.1", "p0")
        assert first.pid != child.pid and child.argv[1:] == ("3",)
        assert paths(identity, "p0") == ["0"] and paths(identity, "p0.1") == paths(alone)


def test_ranks_name_processes(tmp_path: Path) -> None:
    identity, _ = seen(tmp_path / "log", [build("family")], env={"PMI_RANK": "3"})
    names = sorted(p.process for p in identity.processes)
    assert names == ["r3", "r3.1", "r3.1.1", "r3.2", "r3.3", "r3.4", "r3.5", "r3.6"]
    batch, _ = seen(tmp_path / "batch", [build("many"), "1"], env={"SLURM_PROCID": "0"})
    assert [p.process for p in batch.processes] == ["p0"]


def test_thread_made_by_clone(tmp_path: Path) -> None:
    identity, output = seen(tmp_path / "log", [build("clone")])
    assert output == b"42\n"
    assert paths(identity) == ["0", "0.1"]


def test_another_preloaded_library_stays(tmp_path: Path) -> None:
    source = tmp_path / "other.c"
    source.write_text(
        "#include <unistd.h>\n__attribute__((constructor)) static void say(void) "
        '{ if (write(1, "other\\n", 6) < 0) _exit(9); }\n'
    )
    other = tmp_path / "other.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", other, source], check=True)
    identity, output = seen(tmp_path / "log", [build("many"), "8"], env={"LD_PRELOAD": str(other)})
    assert output == b"other\n28 7\n"
    assert len(paths(identity)) == 10


def test_a_killed_program_loses_nothing(tmp_path: Path) -> None:
    workdir = tmp_path / "log"
    workdir.mkdir()
    environment = prepare(workdir, os.environ)
    argv = [build("tree"), "4", "3"]
    with subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline().startswith(b"ready")
        child.send_signal(signal.SIGKILL)
    identity = read_identity(workdir)
    assert len(paths(identity)) == 17
    assert sum(r.bytes == 100000 for r in identity.regions) == 12
    assert identity.processes[0].end_ns == -1


def test_file_size_limit_stops_the_log_not_the_program(tmp_path: Path) -> None:
    workdir = tmp_path / "log"
    workdir.mkdir()
    environment = prepare(workdir, os.environ)
    command = f"ulimit -f 64; exec {build('many')} 5000"
    result = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, check=False)
    assert (result.returncode, result.stdout) == (0, b"%d 7\n" % (5000 * 4999 // 2))
    identity = read_identity(workdir)
    assert 0 < len(identity.threads) < 5000
    assert identity.lost > 0


@pytest.mark.skipif(not QEMU, reason="no QEMU here emulates (nprof setup)")
def test_the_same_paths_and_regions_under_emulation(tmp_path: Path) -> None:
    native, _ = seen(tmp_path / "native", [build("tree"), "3", "2"])
    workdir = tmp_path / "emulated"
    workdir.mkdir()
    environment = prepare(workdir, os.environ)
    preload = environment.pop("LD_PRELOAD")
    argv = [*QEMU, "-E", f"LD_PRELOAD={preload}", build("tree"), "3", "2"]
    subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, check=True, timeout=PATIENCE_S)
    emulated = read_identity(workdir)
    assert paths(emulated) == paths(native)
    ours = {(r.kind, r.name, r.bytes, r.thread_path, r.sequence) for r in native.regions if r.kind == "heap"}
    theirs = {
        (r.kind, r.name, r.bytes, r.thread_path, r.sequence) for r in emulated.regions if r.kind == "heap"
    }
    assert ours == theirs
    assert len(ours) == 6


@pytest.mark.skipif(not QEMU, reason="no QEMU here emulates (nprof setup)")
def test_children_of_an_emulated_program_are_emulated(tmp_path: Path) -> None:
    workdir = tmp_path / "emulated"
    workdir.mkdir()
    script = tmp_path / "script.sh"
    script.write_text(f"#!/bin/sh\n{build('family')}\nexec {build('many')} 8\n")
    script.chmod(0o755)
    environment = prepare(workdir, os.environ)
    preload = environment.pop("LD_PRELOAD")
    prefix = [*QEMU, "-E", f"LD_PRELOAD={preload}"]
    environment["NUMAPLAN_EMULATE_PREFIX"] = "\x1f".join(prefix)
    # `env` is emulated and execs the script, whose interpreter execs the rest.
    argv = [*prefix, shutil.which("env") or "env", str(script)]
    result = subprocess.run(argv, env=environment, capture_output=True, timeout=PATIENCE_S, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"28 7\n", b"")
    identity = read_identity(workdir)
    processes = {p.process: p for p in identity.processes}
    assert processes["p0"].argv[1:] == ("8",)
    assert processes["p0.1.2"].argv[1:] == ("child",)
    guest_space = 0x7000_0000_0000  # the emulator maps its program lower than the kernel would
    emulated = {m.process for m in identity.modules if m.name == "family" and m.bias < guest_space}
    assert {"p0.1", "p0.1.2", "p0.1.3", "p0.1.4"} <= emulated
