"""Signals that ask a command to end: it is tidied up, or finishes first what a program left."""

import os
import signal
import subprocess
import sys

import pytest

from numaplan.common import UsageError, interruptible, is_asked_to_end, run_program
from numaplan.common.frame import run_framed

ASKING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2]


def test_signals_interrupt_inside_and_are_told() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with interruptible(signal.SIGTERM, signal.SIGHUP) as received:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        assert received == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) == before


def ask(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", ASKING)
def test_a_command_tidies_up_and_tells_which_signal_it_was(
    number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    before, tidied = [signal.getsignal(number) for number in ASKING], []

    def call() -> None:
        try:
            ask(number)
        finally:
            tidied.append(True)

    assert run_framed(call, "nprof") == 128 + number
    assert tidied == [True]
    assert capsys.readouterr().err == "nprof: error: interrupted\n"
    assert [signal.getsignal(number) for number in ASKING] == before


@pytest.mark.parametrize("number", ASKING)
def test_what_a_program_left_is_finished_first(number: int, capfd: pytest.CaptureFixture[str]) -> None:
    def call() -> int:
        assert run_program(["true"], os.environ) == 0
        ask(number)
        assert is_asked_to_end()
        with pytest.raises(KeyboardInterrupt):  # and nothing new is begun
            run_program(["touch", "/dev/full/never"], os.environ)
        return 7

    assert run_framed(call, "nprof") == 7
    assert capfd.readouterr().err == ("interrupted: finishing first what was begun; once more gives it up\n")
    assert not run_framed(is_asked_to_end, "nprof")


@pytest.mark.parametrize("number", ASKING)
def test_a_second_signal_gives_it_up(number: int, capfd: pytest.CaptureFixture[str]) -> None:
    def call() -> None:
        run_program(["true"], os.environ)
        ask(signal.SIGINT)
        try:
            ask(number)
        except KeyboardInterrupt as interrupt:  # as a library tells it
            raise RuntimeError("Query interrupted") from interrupt

    assert run_framed(call, "nprof") == 128 + number
    assert capfd.readouterr().err.endswith("nprof: error: interrupted\n")


@pytest.mark.parametrize("number", ASKING)
def test_an_error_that_comes_of_a_signal_is_told_as_that(
    number: int, capfd: pytest.CaptureFixture[str]
) -> None:
    def call() -> None:
        try:
            ask(number)
        except KeyboardInterrupt as interrupt:  # as DuckDB's are told
            raise UsageError("t.db: the trace cannot be read: Query interrupted") from interrupt

    assert run_framed(call, "nprof") == 128 + number
    assert capfd.readouterr().err == "nprof: error: interrupted\n"


def test_an_error_after_a_signal_that_was_held_back_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    def call() -> None:
        run_program(["true"], os.environ)
        ask(signal.SIGTERM)
        raise UsageError("t.db: cannot be written")

    assert run_framed(call, "nprof") == 2
    assert capfd.readouterr().err.endswith("nprof: error: t.db: cannot be written\n")


def test_ignored_signals_stay_ignored() -> None:
    program = """
import os, signal
from numaplan.common.frame import run_framed
signal.signal(signal.SIGHUP, signal.SIG_IGN)
def call():
    os.kill(os.getpid(), signal.SIGHUP)
    return 5
os._exit(run_framed(call, "x"))
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 5
