"""SIGUSR2 to a recorder (`--on-signal`): acted on while there is a switch, held before, refused later."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_HELD = b"nprof: SIGUSR2 came early: recording begins as soon as it can\n"
_TAKEN_BACK = b"nprof: SIGUSR2 came early again: recording waits for one more\n"
_LATE = b"nprof: SIGUSR2 came late: nothing more is recorded\n"

_act: Callable[[], None] | None = None
_held = False
_ended = False


def hold() -> None:
    """From now on; one that came while Python started has waited, and comes now."""
    signal.signal(signal.SIGUSR2, _told)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGUSR2,))


@contextmanager
def told_by_signal(asked: bool) -> Iterator[None]:
    """Inside, where it is asked for, SIGUSR2 interrupts nothing, whenever it comes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if not asked:
        if signal.getsignal(signal.SIGUSR2) is _told:  # for a word of the program's
            signal.signal(signal.SIGUSR2, signal.getsignal(signal.SIGUSR1))
        yield
        return
    await_program()
    before = signal.signal(signal.SIGUSR2, _told)
    try:
        yield
    finally:
        program_ended()
        # Where the command began with it this is the end: Python, as it ends, would have the signal end us.
        signal.signal(signal.SIGUSR2, signal.SIG_IGN if before is _told else before)


def await_program() -> None:
    """The next program comes: a signal is for it."""
    global _act, _ended
    _act, _ended = None, False


def act_by(act: Callable[[], None]) -> None:
    """From now on a signal does this; at once, where one was held."""
    global _act, _held
    _act = act
    if _held:
        _held = False
        act()


def program_ended() -> None:
    """From now on a signal has nothing to act on."""
    global _act, _ended
    _act, _ended = None, True


def _told(_number: int, _frame: object) -> None:
    global _held
    if _act is not None:
        _act()
        return
    if not _ended:
        _held = not _held
    with suppress(OSError):
        os.write(2, _LATE if _ended else _HELD if _held else _TAKEN_BACK)  # sys.stderr may be in a line
