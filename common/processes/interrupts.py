"""Signals that ask a command to end: what it began is tidied up; what a program left it finishes first."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

# Those that would end us otherwise, and that a person, a terminal or a batch system sends.
ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_FINISHING = b"interrupted: finishing first what was begun; once more gives it up\n"
_TIDYING_S = 5.0  # what is begun to be tidied up, no further signal breaks off for so long
# Broken off, Python's import may leave its locks locked for ever, and native modules half made.
_IMPORTING = "<frozen importlib"
_AGAIN_S, _PATIENCE_S = 0.005, 5.0

_asked: list[int] = []  # those that came while a command runs
_held = False
_owner = 0  # the process that the command runs in
_put_off = 0
_late = False  # whether one came that was put off
_interrupted_at = float("-inf")
_waits_since: float | None = None


@contextmanager
def interruptible(*numbers: int) -> Iterator[list[int]]:
    """Inside, these signals interrupt us as Ctrl-C does, so that all is tidied up; yields those that came."""
    global _interrupted_at, _owner
    _interrupted_at, _owner = float("-inf"), os.getpid()
    received: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        received.append(number)
        _raise(frame)

    with _interrupting(numbers, interrupt):
        yield received


@contextmanager
def asked_to_end(asked: list[int]) -> Iterator[None]:
    """A command runs inside: what asks it to end interrupts it, and is added to `asked`.

    Nothing changes for signals that are ignored (nohup), or that somebody else handles.
    """
    global _asked, _held, _owner, _put_off, _late, _interrupted_at, _waits_since
    _asked = asked
    _held, _late, _waits_since = False, False, None
    _owner, _put_off, _interrupted_at = os.getpid(), 0, float("-inf")
    usual = (signal.SIG_DFL, signal.default_int_handler)
    numbers = [number for number in ASKING if signal.getsignal(number) in usual]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    try:
        with _interrupting(numbers, _interrupt):
            yield
    finally:
        _asked = []
        _held = False


def finish_first() -> None:
    """From now on until the command ends, the first signal only lets it begin nothing new."""
    global _held
    _held = True


def begin_nothing_new() -> None:
    """Raise KeyboardInterrupt where a signal came, though it was held back."""
    global _interrupted_at
    if _asked:
        _interrupted_at = time.monotonic()
        raise KeyboardInterrupt


def is_asked_to_end() -> bool:
    """Whether a signal came that was held back."""
    return bool(_asked)


def was_interrupted() -> bool:
    """Whether a signal came that was not: what fails since may fail because of it, whatever it says."""
    return len(_asked) > _held


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Inside, a signal waits until the end: for what nobody could undo if it were broken off in between."""
    global _put_off
    if threading.current_thread() is not threading.main_thread():  # to which no signal comes
        yield
        return
    _put_off += 1
    try:
        yield
    finally:
        _put_off -= 1
        if _late and not _put_off:
            _raise(None)


def surely(call: Callable[..., Any], *arguments: Any) -> None:
    """Call something that may be called again, to its end, though a signal may interrupt it."""
    try:
        call(*arguments)
    except KeyboardInterrupt:
        call(*arguments)
        raise


def _interrupt(number: int, frame: FrameType | None) -> None:
    if os.getpid() != _owner:  # a child of ours that is about to become a program
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        return
    _asked.append(number)
    if was_interrupted():
        _raise(frame)
        return
    with suppress(OSError):
        os.write(2, _FINISHING)  # sys.stderr may be in the middle of a line of its own


def _interrupt_later(_number: int, frame: FrameType | None) -> None:
    if os.getpid() == _owner:
        _raise(frame)


def _raise(frame: FrameType | None) -> None:
    """Interrupt what runs; not again soon, as people press Ctrl-C until something happens."""
    global _late, _interrupted_at, _waits_since
    now = time.monotonic()
    _late = bool(_put_off)
    if _late or now - _interrupted_at < _TIDYING_S:
        return
    if _is_importing(frame):
        _waits_since = now if _waits_since is None else _waits_since
        if now - _waits_since < _PATIENCE_S:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
            return
    _interrupted_at, _waits_since = now, None
    raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(_IMPORTING):
            return True
        frame = frame.f_back
    return False


@contextmanager
def _interrupting(numbers: "list[signal.Signals] | tuple[int, ...]", handler: object) -> Iterator[None]:
    """Signals handled, and the alarm that repeats one which came at a bad moment."""
    with _handled((signal.SIGALRM,) if numbers else (), _interrupt_later):
        usual = sys.unraisablehook
        try:
            if numbers:
                sys.unraisablehook = partial(_again_if_swallowed, usual)
            with _handled(numbers, handler):
                yield
        finally:
            sys.unraisablehook = usual
            if numbers:
                signal.setitimer(signal.ITIMER_REAL, 0)


def _again_if_swallowed(usual: Callable[[Any], object], report: Any) -> None:
    """Python drops what is raised while it frees an object, or in C's callbacks: interrupt it afterwards."""
    global _interrupted_at
    if not issubclass(report.exc_type, KeyboardInterrupt):
        usual(report)
    elif os.getpid() == _owner:
        _interrupted_at = float("-inf")
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)


@contextmanager
def _handled(numbers: "list[signal.Signals] | tuple[int, ...]", handler: object) -> Iterator[None]:
    previous = {number: signal.signal(number, handler) for number in numbers}  # type: ignore[arg-type]
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)
