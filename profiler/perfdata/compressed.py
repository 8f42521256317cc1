"""zstd records: one stream over all of them, in which events straddle records."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from numaplan.profiler.perfdata.errors import PerfDataError
from numaplan.profiler.perfdata.zstd import ZstdError, open_stream

# What is decompressed goes through one buffer that stays in the cache; no record is longer than 64 KiB.
_ROOM = 512 << 10
# Beyond what honest recordings reach a small file would take for ever.
_MOST_RATIO = 4000
_FREE_OUTPUT = 64 << 20

Buffer = NDArray[np.uint8]


class Inflater:
    """Decompresses the payloads of COMPRESSED records; holds back the event that a payload cut in two."""

    def __init__(self, name: str) -> None:
        self.rest = 0  # bytes of an event whose end has not come
        self._name = name
        self._stream = open_stream()
        self._buffer = np.empty(_ROOM, dtype=np.uint8)
        self._taken = 0
        self._given = 0

    @property
    def cut(self) -> bool:
        """Whether something has begun whose end has not come."""
        return self.rest > 0 or self._stream.partial

    def feed(self, payload: Buffer, where: int, walk: Callable[[Buffer], int]) -> None:
        """Decompress one record's payload and have `walk` read what comes out.

        walk: returns how many bytes it used, all but those of an event that goes on. Raises PerfDataError,
        naming the record at file offset `where`, when the stream is damaged or grows out of proportion, and
        whatever `walk` raises.
        """
        self._taken += len(payload)
        at, full = 0, False
        while at < len(payload) or full:
            before = self.rest
            try:
                at, self.rest = self._stream.step(payload, at, self._buffer, before)
            except ZstdError as error:
                raise PerfDataError(
                    f"{self._name}: damaged zstd data in the record at offset {where} ({error})",
                    "record again",
                ) from None
            self._count(self.rest - before, where)
            full = self.rest == _ROOM
            if full or at == len(payload):
                self._drain(walk)

    def _count(self, more: int, where: int) -> None:
        self._given += more
        if self._given > _FREE_OUTPUT + _MOST_RATIO * self._taken:
            raise PerfDataError(
                f"{self._name}: zstd data at offset {where} grows without bound", "record again"
            )

    def _drain(self, walk: Callable[[Buffer], int]) -> None:
        rest = self._buffer[walk(self._buffer[: self.rest]) : self.rest].copy()
        self.rest = len(rest)
        self._buffer[: self.rest] = rest
