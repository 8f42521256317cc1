"""Signals that come while we wait for a program, and who sent them; Python's own handlers do not run."""

import ctypes
import os
import select
import signal
import struct
from collections.abc import Sequence
from typing import NamedTuple, Self

from ..loading import load_native

_RECORD = struct.Struct("=3i")  # native/signals: struct received_signal
_MANY = 4096


class ReceivedSignal(NamedTuple):
    """A signal; by_kernel: the terminal's, which goes to the whole group; sender: else the pid it is from."""

    number: int
    by_kernel: bool
    sender: int


class Signals:
    """While entered, `numbers` and SIGCHLD are returned by `wait` and do no more; what was ignored stays so.

    One at a time in a process. Raises MachineLacksError when the native part is missing.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = (*numbers, signal.SIGCHLD)
        self._native = load_native("common", "signals")
        self._from = self._to = -1

    def __enter__(self) -> Self:
        self._from, self._to = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        count = len(self._numbers)
        self._native.signals_receive((ctypes.c_int32 * count)(*self._numbers), count, self._to)
        return self

    def __exit__(self, *_: object) -> None:
        self._native.signals_stop_receiving()
        os.close(self._from)
        os.close(self._to)

    def wait(self) -> list[ReceivedSignal]:
        """Sleep until a signal comes; all that have come, oldest first."""
        poller = select.poll()
        poller.register(self._from, select.POLLIN)
        poller.poll()
        return self.received()

    def received(self) -> list[ReceivedSignal]:
        """What has come and was not returned yet, oldest first."""
        found: list[ReceivedSignal] = []
        try:
            while data := os.read(self._from, _MANY * _RECORD.size):
                found += [
                    ReceivedSignal(n, bool(kernel), pid) for n, kernel, pid in _RECORD.iter_unpack(data)
                ]
        except BlockingIOError:
            pass
        return found

    def stop(self) -> bool:
        """Stop ourselves as Ctrl-Z does until we are told to go on; False: something came first."""
        return bool(self._native.signals_stop_unless_pending(self._from))
