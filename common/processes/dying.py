"""A command whose program died of what the terminal sent to both dies of it too: by that shells end loops."""

import ctypes
import signal
import sys
from contextlib import suppress

_PR_SET_DUMPABLE = 4
_number = 0


def will_die_of(number: int) -> None:
    """The program that we ran died of this signal, which the terminal sent to us, too; 0: it did not."""
    global _number
    _number = number


def die_as_program(code: int) -> None:
    """Die of that signal, where it is what the exit code tells; else do nothing. All is tidied up already."""
    if not _number or code != 128 + _number:
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # no core of ours beside the program's
    signal.signal(_number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (_number,))
    signal.raise_signal(_number)
