"""The conversation with the guest's agent while a program runs: what is where, and moving it.

Its other side is lab/native/guest/remote.c.
"""

import os
import secrets
import socket
import struct
import threading
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numaplan.common import MachineLacksError

_HELLO = 0x6F6C6C65682D6E6E
_GREETING = struct.Struct("<2Q")
_REQUEST = struct.Struct("<2I2i")
_LENGTH, _ERROR = struct.Struct("<I"), struct.Struct("<i")
_LOOK, _NAMES, _PAGES, _BIND, _READ = range(1, 6)
_MOST_BYTES = 64 << 20
_MASK_BYTES = 128
PAGE_BYTES = 4096  # of a guest, which is x86-64
_NO_ANSWER_SECONDS = 120.0


class ThreadState(NamedTuple):
    """A thread: where it ran last, ns that it ran and waited by the guest's clock, its mask."""

    pid: int
    tid: int
    cpu: int
    ran_ns: int
    waited_ns: int
    cpus: frozenset[int]


class Link:
    """Asks the agent; each call raises MachineLacksError once the guest does not answer any more."""

    def __init__(self, port: socket.socket, stop: threading.Event) -> None:
        self._port, self._stop = port, stop

    def greet(self) -> None:
        """Begin anew: whatever was said before in this port is passed over."""
        number = secrets.randbits(64)
        greeting = _GREETING.pack(_HELLO, number)
        self._send(greeting)
        seen = b""
        while seen != greeting:
            seen = (seen + self._receive(1))[-len(greeting) :]

    def look(self) -> list[ThreadState]:
        """All threads of the program."""
        _now, *lines = self._ask(_LOOK).decode().splitlines()
        return [_thread(line.split()) for line in lines]

    def name_tasks(self, tasks: NDArray[np.uint64]) -> NDArray[np.int64]:
        """(n, 2) thread and process id of each of the kernel's tasks, by its address; 0 where it is gone."""
        answer = self._ask(_NAMES, data=tasks.astype("<u8").tobytes())
        return np.frombuffer(answer, dtype="<u4").reshape(-1, 2).astype(np.int64)

    def page_nodes(self, pid: int, pages: NDArray[np.int64], node: int = -1) -> NDArray[np.int64]:
        """(n,) the node of each page number, after moving them to `node` if that is given; raises OSError."""
        addresses = (pages * PAGE_BYTES).astype("<u8").tobytes()
        answer = self._ask(_PAGES, pid, node, addresses)
        _check(answer)
        status = np.frombuffer(answer, dtype="<i4", offset=_ERROR.size).astype(np.int64)
        return np.where(status >= 0, status, -1)

    def bind(self, tid: int, cpus: frozenset[int]) -> None:
        """Let a thread run on these cpus alone; raises OSError."""
        mask = sum(1 << cpu for cpu in cpus).to_bytes(_MASK_BYTES, "little")
        _check(self._ask(_BIND, tid, data=mask))

    def read(self, path: str) -> bytes:
        """A file's content as it is in the guest, nothing where there is none."""
        return self._ask(_READ, data=path.encode())

    def _ask(self, what: int, number: int = 0, node: int = 0, data: bytes = b"") -> bytes:
        self._send(_REQUEST.pack(what, len(data), number, node) + data)
        (length,) = _LENGTH.unpack(self._receive(_LENGTH.size))
        if length > _MOST_BYTES:
            raise MachineLacksError("an answer of the guest's agent is damaged", "run it again")
        return self._receive(length)

    def _send(self, data: bytes) -> None:
        try:
            self._port.settimeout(_NO_ANSWER_SECONDS)
            self._port.sendall(data)
        except OSError:
            raise MachineLacksError("the guest takes no requests", "run it again") from None

    def _receive(self, count: int) -> bytes:
        """Raises MachineLacksError also when the loop is to stop: the run has ended, and nobody answers."""
        data, waited = bytearray(), 0.0
        self._port.settimeout(0.1)
        while len(data) < count:
            try:
                more = self._port.recv(count - len(data))
            except TimeoutError:
                waited += 0.1
                if self._stop.is_set() or waited > _NO_ANSWER_SECONDS:
                    raise MachineLacksError("the program has ended", "") from None
                continue
            except OSError:
                more = b""
            if not more:
                raise MachineLacksError("the guest has gone", "run it again")
            data += more
        return bytes(data)


def _thread(words: list[str]) -> ThreadState:
    pid, tid, cpu, ran, waited = map(int, words[:5])
    mask = int(words[5], 16)
    cpus = frozenset(number for number in range(mask.bit_length()) if mask >> number & 1)
    return ThreadState(pid, tid, cpu, ran, waited, cpus)


def _check(answer: bytes) -> None:
    (error,) = _ERROR.unpack_from(answer)
    if error:
        raise OSError(error, os.strerror(error))
