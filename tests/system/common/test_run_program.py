"""Programs in the foreground: interrupts before their exec, and errors that are not theirs."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from numaplan.common.process import run_program
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.system

SLOW_START = """
import pathlib, sys, time
from numaplan.common.process import run_program

def hold():
    held = pathlib.Path(sys.argv[1])
    held.touch()
    while held.exists():
        time.sleep(0.01)

sys.exit(run_program(["sleep", "60"], {"PATH": "/usr/bin:/bin"}, before_exec=hold))
"""


def test_an_interrupt_before_the_exec_is_not_lost(tmp_path: Path) -> None:
    held = tmp_path / "held"
    with subprocess.Popen([sys.executable, "-c", SLOW_START, str(held)], process_group=0) as ours:
        until(held.exists)
        os.killpg(ours.pid, signal.SIGINT)  # as the terminal does: to us, and to the child before its exec
        held.unlink()
        assert ours.wait(PATIENCE_S) == 128 + signal.SIGINT


def test_an_error_of_what_is_done_at_the_start_is_not_the_programs() -> None:
    def started(_pid: int) -> None:
        raise OSError("no journal")

    with pytest.raises(OSError, match="no journal"):
        run_program(["true"], dict(os.environ), started=started)
    with suppress(ChildProcessError):  # Popen's end has waited for it if it was over by then
        os.wait()
