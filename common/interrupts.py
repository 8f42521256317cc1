"""Signals that ask a command to end: what it began is tidied up; what a program left it finishes first."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# Those that would end us otherwise, and that a person, a terminal or a batch system sends.
ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_FINISHING = b"interrupted: finishing first what was begun; once more gives it up\n"

_asked: list[int] = []  # those that came while a command runs
_held = False


@contextmanager
def interruptible(*numbers: int) -> Iterator[list[int]]:
    """Inside, these signals interrupt us as Ctrl-C does, so that all is tidied up; yields those that came."""
    received: list[int] = []

    def interrupt(number: int, _frame: object) -> None:
        received.append(number)
        raise KeyboardInterrupt

    with _handled(numbers, interrupt):
        yield received


@contextmanager
def asked_to_end() -> Iterator[list[int]]:
    """A command runs inside: what asks it to end interrupts it; yields the signals that came.

    Nothing changes for signals that are ignored (nohup), or that somebody else handles.
    """
    global _held
    _asked.clear()
    _held = False
    usual = (signal.SIG_DFL, signal.default_int_handler)
    numbers = [number for number in ASKING if signal.getsignal(number) in usual]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    try:
        with _handled(numbers, _interrupt):
            yield _asked
    finally:
        _asked.clear()
        _held = False


def finish_first() -> None:
    """From now on until the command ends, the first signal only lets it begin nothing new."""
    global _held
    _held = True


def is_asked_to_end() -> bool:
    """Whether a signal came that was held back."""
    return bool(_asked)


def was_interrupted() -> bool:
    """Whether a signal came that was not: what fails since may fail because of it, whatever it says."""
    return len(_asked) > _held


def _interrupt(number: int, _frame: object) -> None:
    _asked.append(number)
    if was_interrupted():
        raise KeyboardInterrupt
    with suppress(OSError):
        os.write(2, _FINISHING)  # sys.stderr may be in the middle of a line of its own


@contextmanager
def _handled(numbers: "list[signal.Signals] | tuple[int, ...]", handler: object) -> Iterator[None]:
    previous = {number: signal.signal(number, handler) for number in numbers}  # type: ignore[arg-type]
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)
