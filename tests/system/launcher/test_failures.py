"""nlaunch where something is missing or closed, and killed in the middle: the program's end is its own."""

import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from numaplan.machine import Machine
from numaplan.mapper import PlanRegion, RegionKey, Run
from tests.support.launching import NLAUNCH, build, nlaunch
from tests.support.outside import Processes, children, comm, plan_of_threads, run_seconds
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.system
PLAN = plan_of_threads([("p0", "0"), *(("p0", f"0.{number}") for number in range(1, 10))])


def shell(folder: Path, line: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line in which NL stands for nlaunch with a plan of ten threads."""
    PLAN.save(folder / "plan.json")
    words = line.replace("NL", f"{NLAUNCH} --plan {folder}/plan.json")
    return subprocess.run(["bash", "-c", words], capture_output=True, timeout=PATIENCE_S, check=False)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_stream_may_be_closed(tmp_path: Path, closed: str) -> None:
    done = shell(tmp_path, f"NL {build('many')} 8 {closed}")
    assert done.returncode == 0
    assert done.stdout == (b"" if closed == ">&-" else b"28 7\n")
    assert done.stderr == (b"" if closed == "2>&-" else b"nlaunch: 10/10 threads as planned\n")


def test_nobody_reads_the_summary(tmp_path: Path) -> None:
    done = shell(tmp_path, "exec 3> >(exec true); wait $!; NL sh -c 'exit 37' 2>&3")
    assert done.returncode == 37


@pytest.mark.parametrize("code", [0, 37])
def test_a_report_that_cannot_be_written(tmp_path: Path, code: int) -> None:
    """It is told before the program starts, or when nobody could know, with the program's own exit code."""
    end = f"{build('end')} code {code} < /dev/null"
    done = shell(tmp_path, f"NL --report /proc/applied.json {end}")
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1
    assert b"nlaunch: error: /proc/applied.json" in done.stderr
    done = shell(tmp_path, f"NL --report /dev/full {end}")
    assert done.returncode == code
    assert b"threads as planned" in done.stderr and b"nlaunch: error: /dev/full" in done.stderr
    assert shell(tmp_path, f"NL --strict --report /dev/full {end}").returncode == (code or 1)


@pytest.mark.parametrize("option", ["--report", "--online numaplan --journal", "--online numaplan --save"])
def test_a_pipe_that_nobody_reads(tmp_path: Path, option: str) -> None:
    done = shell(tmp_path, f"mkfifo {tmp_path}/pipe; NL {option} {tmp_path}/pipe sh -c 'exit 37'")
    assert done.returncode == (2 if "--journal" in option else 37)
    assert (b"nobody reads this pipe" in done.stderr) == ("--save" not in option)  # that was too short


@pytest.mark.parametrize("code", [0, 37])
def test_too_little_memory_for_the_summary(tmp_path: Path, code: int) -> None:
    done = shell(tmp_path, f"ulimit -v 200000; NL {build('end')} code {code} < /dev/null")
    assert done.returncode == code or (done.returncode == 3 and done.stdout == b"")
    assert b"internal error" not in done.stderr


@pytest.mark.parametrize("limit", ["-f 0", "-n 6"])
def test_what_cannot_be_started_is_said(tmp_path: Path, limit: str) -> None:
    done = shell(tmp_path, f"ulimit {limit}; NL {build('many', '-static')} 8")
    assert done.returncode in (2, 3) and done.stdout == b""
    assert done.stderr.startswith(b"nlaunch: error: ") and done.stderr.count(b"\n") == 1
    assert b"internal error" not in done.stderr


def test_a_plan_with_odd_regions(tmp_path: Path) -> None:
    node = Machine.load("local").nodes[0].id
    keys = [
        RegionKey(kind="heap", name="many+0x10", bytes=1 << 20, thread="0", sequence=1 << 40),
        RegionKey(kind="heap", name="\x1b[31m+0x10", bytes=1 << 62, thread="0", sequence=1, build_id="zz"),
        RegionKey(kind="static", name="many:\x1b[2J", bytes=1 << 20),
    ]
    memory = tuple(
        PlanRegion(region=key, policy="bind", runs=(Run(offset=0, bytes=key.bytes, node=node),))
        for key in keys
    )
    plan = msgspec.structs.replace(PLAN, memory=memory)
    result, applied = nlaunch(plan, tmp_path, [build("many"), "8"])
    assert (result.returncode, result.stdout) == (0, b"28 7\n")
    assert not any(region["appeared"] for region in applied["memory"])
    assert b"\x1b" not in result.stderr and b"no planned memory was touched" in result.stderr


def test_a_trace_that_is_none(tmp_path: Path) -> None:
    done = shell(tmp_path, f"NL --match-trace {build('many')} {build('many')} 8")
    assert (done.returncode, done.stdout) == (2, b"") and done.stderr.count(b"\n") == 1


def far_enough(launcher: "subprocess.Popen[bytes]", family: Processes, seconds: float) -> bool:
    """Whether it and its family have had the processor for so long, or it has ended before."""
    family.add(children(launcher.pid))
    return run_seconds(launcher.pid, *family.living()) > seconds or launcher.poll() is not None


def none_but_ours_lives(family: Processes) -> bool:
    return all(comm(pid) in ("", "trace.elf") for pid in family.living())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "flags"),
    [("preload", ()), ("ptrace", ()), ("auto", ("-static",))],
    ids=["library", "tracer", "static"],
)
def test_killed_at_any_moment_it_leaves_nothing_stopped(
    tmp_path: Path, by: str, flags: tuple[str, ...]
) -> None:
    """The program goes on to its end, or has not begun; no thread of it waits for somebody who is gone."""
    PLAN.save(tmp_path / "plan.json")
    words = ["-q", "--plan", str(tmp_path / "plan.json"), "--by", by, build("many", *flags), "4000"]
    for turn in range(8):
        with subprocess.Popen(
            [NLAUNCH, *words], stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}
        ) as launcher:
            family = Processes()
            until(far_enough, launcher, family, 0.05 * turn + 0.01)
            launcher.kill()
            family.add(children(launcher.pid))
            assert launcher.stdout is not None
            output = launcher.stdout.read()  # until the last of them has ended
            assert output in (b"", b"%d 7\n" % (4000 * 3999 // 2))
            until(none_but_ours_lives, family)
            family.close()


@pytest.mark.parametrize("by", ["preload", "ptrace"])
def test_at_a_terminal(tmp_path: Path, by: str) -> None:
    """Ctrl-Z, the shell's fg, typing and Ctrl-D, then Ctrl-C, as without us."""
    PLAN.save(tmp_path / "plan.json")
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the tests may be run in the background
        os.execvpe(
            "bash", ["bash", "--norc", "--noprofile", "-i"], {**os.environ, "PS1": "> ", "TERM": "dumb"}
        )
    nl = f"{NLAUNCH} -q --plan {tmp_path}/plan.json --by {by}"
    try:
        for typed, expected in (
            ("", b"> "),
            (f"{nl} sh -c 'echo u''p; exec cat'\n", b"up\r\n"),
            ("first\n", b"first\r\nfirst\r\n"),
            ("\x1a", b"Stopped"),
            ("fg\n", b"exec cat'\r\n"),
            ("second\n", b"second\r\nsecond\r\n"),
            ("\x04", b"> "),
            ("echo code $?\n", b"code 0\r\n"),
            (f"{nl} sh -c 'echo u''p; exec sleep 1000'\n", b"up\r\n"),
            ("\x03", b"> "),
            ("echo code $?\n", b"code 130\r\n"),
        ):
            os.write(terminal, typed.encode())
            shown = read_until(terminal, expected)
            assert expected in shown, shown
    finally:
        os.kill(pid, signal.SIGKILL)
        os.close(terminal)
        os.waitpid(pid, 0)


def read_until(terminal: int, expected: bytes) -> bytes:
    shown, end = b"", time.monotonic() + PATIENCE_S
    while expected not in shown and time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            shown += os.read(terminal, 4096)
    return shown
