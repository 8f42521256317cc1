"""The program's streams between the guest's serial ports (here: sockets) and descriptors of this process."""

import os
import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

_CHUNK = 1 << 18


class Outlet:
    """Moves all that arrives on a socket to a descriptor, and knows how much that was.

    A descriptor whose reader has gone (EPIPE) or whose disk is full takes no more: `broken` is called,
    and the rest is dropped.
    """

    def __init__(self, source: socket.socket, broken: Callable[[], None]) -> None:
        self._broken = broken
        self._source = source
        self._target = -1
        self._moved = 0
        self._change = threading.Condition()
        threading.Thread(target=self._run, daemon=True).start()

    def direct(self, target: int) -> None:
        """Where to from now on (-1: nowhere); counts from 0 again."""
        with self._change:
            self._target, self._moved = target, 0

    def wait(self, count: int, limit: float) -> bool:
        """Wait until `count` bytes have been passed on; False if they do not come within `limit` seconds."""
        with self._change:
            return self._change.wait_for(lambda: self._moved >= count, limit)

    def _run(self) -> None:
        with suppress(OSError):
            while data := self._source.recv(_CHUNK):
                self._write(data)
                with self._change:
                    self._moved += len(data)
                    self._change.notify_all()

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view and self._target >= 0:
                view = view[os.write(self._target, view) :]
        except BlockingIOError:
            select.select([], [self._target], [])
            self._write(bytes(view))
        except OSError:
            self._target = -1
            self._broken()


def pass_on(source: int, target: socket.socket) -> None:
    """Move a descriptor's content to a socket, then close that direction: the program sees the end."""
    with suppress(OSError, ValueError):
        while data := os.read(source, _CHUNK):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def own_stdin() -> int:
    """Our standard input, or -1 where there is none to read: closed, or a terminal that is not ours now."""
    try:
        if os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp():
            return -1
        os.fstat(0)
    except OSError:
        return -1
    return 0
