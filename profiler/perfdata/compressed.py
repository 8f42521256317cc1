"""zstd records: one stream over all of them, in which events straddle records."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .errors import PerfDataError
from .zstd import ZstdError, open_stream

# What is decompressed goes through one buffer, of many records so that reading them costs little more than
# their samples; none is longer than 64 KiB.
_ROOM = 256 << 10
# Beyond what honest recordings reach a small file would take for ever.
_MOST_RATIO = 4000
_FREE_OUTPUT = 64 << 20

Buffer = NDArray[np.uint8]


class Inflater:
    """Decompresses the payloads of COMPRESSED records; holds back the event that a payload cut in two.

    walk: reads what comes out; returns how many bytes it used, all but those of an event that goes on.
    """

    def __init__(self, name: str, walk: Callable[[Buffer], int]) -> None:
        self.rest = 0  # bytes that wait: for more, or for the end of an event
        self._name = name
        self._walk = walk
        self._stream = open_stream()
        self._buffer = np.empty(_ROOM, dtype=np.uint8)
        self._taken = 0
        self._given = 0

    @property
    def cut(self) -> bool:
        """Whether something has begun whose end has not come."""
        return self.rest > 0 or self._stream.partial

    def feed(self, payload: Buffer, where: int) -> None:
        """Decompress one record's payload; what comes out is read when it is much, or at `drain`.

        Raises PerfDataError, naming the record at file offset `where`, when the stream is damaged (what came
        before is read then) or grows out of proportion, and whatever `walk` raises.
        """
        self._taken += len(payload)
        at, full = 0, False
        while at < len(payload) or full:
            before = self.rest
            try:
                at, self.rest = self._stream.step(payload, at, self._buffer, before)
            except ZstdError as error:
                self.drain()
                raise PerfDataError(
                    f"{self._name}: damaged zstd data in the record at offset {where} ({error})",
                    "record again",
                ) from None
            self._count(self.rest - before, where)
            full = self.rest == _ROOM
            if full:
                self.drain()

    def _count(self, more: int, where: int) -> None:
        self._given += more
        if self._given > _FREE_OUTPUT + _MOST_RATIO * self._taken:
            self.drain()
            raise PerfDataError(
                f"{self._name}: zstd data at offset {where} grows without bound", "record again"
            )

    def drain(self) -> None:
        """Have what came out read, all but an event that goes on."""
        if not self.rest:
            return
        rest = self._buffer[self._walk(self._buffer[: self.rest]) : self.rest].copy()
        self.rest = len(rest)
        self._buffer[: self.rest] = rest
