"""What a frame between hosts carries, and how many bytes of a program that is."""

import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LAUNCHER_PORTS = range(2222, 2722)  # of the remote shell (lab/native/cluster), and given to the launcher
_ETHERNET, _IP4, _TCP, _UDP = 14, 0x0800, 6, 17
_IP_HEAD, _TCP_HEAD, _UDP_HEAD = 20, 20, 8  # bytes, at least
_SYN = 2
_WRAP = 1 << 32


class Segment(NamedTuple):
    """A piece of a conversation: who says it to whom, by which ports, how many bytes.

    first: the number of its first byte, None where bytes have none (UDP); starts: nothing was said before.
    """

    conversation: tuple[bytes, int, int]
    size: int
    first: int | None = None
    starts: bool = False


def read_segment(frame: bytes) -> Segment | None:
    """What TCP or UDP over IP version 4 carries in a frame; None for everything else."""
    at = _ETHERNET + (frame[_ETHERNET] & 15) * 4 if len(frame) > _ETHERNET + _IP_HEAD else len(frame)
    if int.from_bytes(frame[12:_ETHERNET], "big") != _IP4 or len(frame) < at + _UDP_HEAD:
        return None
    left = _ETHERNET + int.from_bytes(frame[16:18], "big") - at
    who = (frame[26:34], *struct.unpack_from(">HH", frame, at))
    if frame[23] == _UDP:
        return Segment(who, max(left - _UDP_HEAD, 0))
    if frame[23] != _TCP or len(frame) < at + _TCP_HEAD:
        return None
    starts = bool(frame[at + 13] & _SYN)
    (number,) = struct.unpack_from(">I", frame, at + 4)
    return Segment(who, max(left - (frame[at + 12] >> 4) * 4, 0), (number + starts) % _WRAP, starts)


class Traffic:
    """Bytes that programs on hosts sent each other, [from][to]: the application's and the launcher's.

    Each byte of a conversation counts once, however often it was sent; headers do not.
    """

    def __init__(self, hosts: int) -> None:
        self.application: NDArray[np.int64] = np.zeros((hosts, hosts), dtype=np.int64)
        self.launcher: NDArray[np.int64] = np.zeros((hosts, hosts), dtype=np.int64)
        self._next: dict[tuple[bytes, int, int], int] = {}  # byte of each conversation

    def add(self, source: int, target: int, frame: bytes) -> None:
        """Count a frame from a host to another."""
        segment = read_segment(frame)
        if segment is None:
            return
        _, *ports = segment.conversation
        launchers = any(port in LAUNCHER_PORTS for port in ports)
        counted = self.launcher if launchers else self.application
        counted[source, target] += segment.size if segment.first is None else self._new(segment)

    def _new(self, segment: Segment) -> int:
        """By how many bytes the conversation has gone on; what was left out on the way is to come yet."""
        assert segment.first is not None
        if segment.starts:
            self._next[segment.conversation] = segment.first
        said = self._next.setdefault(segment.conversation, segment.first)
        new = (segment.first + segment.size - said) % _WRAP
        if not segment.size or new >= _WRAP // 2:  # nothing, or nothing that was not said before
            return 0
        self._next[segment.conversation] = (said + new) % _WRAP
        return new
