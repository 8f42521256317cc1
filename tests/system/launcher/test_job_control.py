"""Job control: nlaunch stops with its program, and only with it."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.launching import NLAUNCH
from tests.support.outside import children, comm, plan_of_threads, run_seconds, state_of, times_asleep
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.system

TALKER = "import signal,sys\n{}\nprint('ready',flush=True)\nsys.stdin.read()\nprint('over',flush=True)"
OBEYS = TALKER.format("")
IGNORES = TALKER.format("signal.signal(signal.SIGTSTP, signal.SIG_IGN)")


def states(*pids: int) -> str:
    return "".join(map(state_of, pids))


@contextmanager
def launched(folder: Path, program: str, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """nlaunch in a process group of its own, as a shell starts it, and the program's pid."""
    plan_of_threads([("p0", "0")]).save(folder / "plan.json")
    command = [NLAUNCH, "-q", "--plan", folder / "plan.json", *options, "python3", "-c", program]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
    ) as launcher:
        try:
            assert launcher.stdout is not None and launcher.stdout.readline() == b"ready\n"
            (pid,) = (pid for pid in children(launcher.pid) if comm(pid).startswith("python"))
            yield launcher, pid
        finally:
            if launcher.poll() is None:
                os.killpg(launcher.pid, signal.SIGKILL)


@pytest.mark.parametrize("by", ["preload", "ptrace"])
def test_both_stop_and_both_go_on(tmp_path: Path, by: str) -> None:
    with launched(tmp_path, OBEYS, "--by", by) as (launcher, pid):
        for _ in range(3):
            os.killpg(launcher.pid, signal.SIGTSTP)
            until(lambda: states(launcher.pid) == "T" and states(pid) in "Tt")
            os.killpg(launcher.pid, signal.SIGCONT)
            until(lambda: set(states(launcher.pid, pid)) <= set("SR"))
        output, _ = launcher.communicate(timeout=PATIENCE_S)
        assert (launcher.returncode, output) == (0, b"over\n")


def test_a_program_that_does_not_stop_is_not_left_alone(tmp_path: Path) -> None:
    with launched(tmp_path, IGNORES) as (launcher, pid):
        before = times_asleep(launcher.pid)
        os.killpg(launcher.pid, signal.SIGTSTP)
        until(lambda: times_asleep(launcher.pid) > before)  # it has been told, and waits again
        assert not set(states(launcher.pid, pid)) & set("Tt")
        output, _ = launcher.communicate(timeout=PATIENCE_S)
        assert (launcher.returncode, output) == (0, b"over\n")


def test_a_program_that_another_stops_is_waited_for(tmp_path: Path) -> None:
    with launched(tmp_path, OBEYS) as (launcher, pid):
        os.kill(pid, signal.SIGSTOP)
        until(lambda: states(pid) == "T")
        assert states(launcher.pid) not in "Tt"
        os.kill(pid, signal.SIGCONT)
        output, _ = launcher.communicate(timeout=PATIENCE_S)
        assert (launcher.returncode, output) == (0, b"over\n")


def far_enough(launcher: int, seconds: float) -> bool:
    """Whether it has had the processor for so long, or its program waits to be ended."""
    return run_seconds(launcher) > seconds or any(comm(pid) == "sleep" for pid in children(launcher))


def test_a_signal_during_the_start_is_not_lost(tmp_path: Path) -> None:
    """Ended at any moment, by us or by the program's own default: never still there afterwards."""
    plan_of_threads([("p0", "0")]).save(tmp_path / "plan.json")
    command = [NLAUNCH, "-q", "--plan", tmp_path / "plan.json", "sleep", "1000"]
    for turn in range(10):
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as launcher:
            until(far_enough, launcher.pid, 0.03 * turn)
            launcher.terminate()
            assert launcher.wait(timeout=PATIENCE_S) in (-signal.SIGTERM, 128 + signal.SIGTERM)
