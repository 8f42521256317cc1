"""Programs in the foreground: interrupts before their exec, and errors that are not theirs."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from numaplan.common.processes.run import run_program
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.system

SLOW_START = """
import pathlib, sys
from numaplan.common.processes.run import run_program

def hold():
    pathlib.Path(sys.argv[1]).touch()
    sys.stdin.read()

sys.exit(run_program(["sleep", "1000"], {"PATH": "/usr/bin:/bin"}, before_exec=hold))
"""


def test_an_interrupt_before_the_exec_is_not_lost(tmp_path: Path) -> None:
    held = tmp_path / "held"
    command = [sys.executable, "-c", SLOW_START, str(held)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, process_group=0) as ours:
        assert ours.stdin is not None
        until(held.exists)
        os.killpg(ours.pid, signal.SIGINT)  # as the terminal does: to us, and to the child before its exec
        ours.stdin.close()
        assert ours.wait(PATIENCE_S) == 128 + signal.SIGINT


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_an_error_of_what_is_done_at_the_start_is_not_the_programs() -> None:
    def started(_pid: int) -> None:
        raise OSError("no journal")

    with pytest.raises(OSError, match="no journal"):
        run_program(["true"], dict(os.environ), started=started)
    with suppress(ChildProcessError):  # Popen's end has waited for it if it was over by then
        os.wait()
