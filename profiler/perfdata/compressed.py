"""zstd records: one stream over all of them, in which events straddle records."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from numaplan.profiler.perfdata.errors import PerfDataError

# A zstd block is at least 4 bytes and gives at most 128 KiB: so many bytes in give at most 128 MiB out.
_SLICE = 4096
_CHUNK = 64 << 10
# What is decompressed goes through one buffer that stays in the cache.
_ROOM = 768 << 10
# Beyond what honest recordings reach a small file would fill the memory.
_MOST_RATIO = 4000
_FREE_OUTPUT = 64 << 20

Walk = Callable[[NDArray[np.uint8]], int]


class Inflater:
    """Decompresses the payloads of COMPRESSED records; holds back the event that a payload cut in two."""

    def __init__(self, name: str) -> None:
        import zstandard

        self.rest = 0  # bytes of an event whose end has not come
        self._name = name
        self._decompressor = zstandard.ZstdDecompressor()
        self._stream = self._decompressor.decompressobj(write_size=_CHUNK)
        self._error = zstandard.ZstdError
        self._buffer = np.empty(_ROOM, dtype=np.uint8)
        self._taken = 0
        self._given = 0

    def feed(self, payload: memoryview, where: int, walk: Walk) -> None:
        """Decompress one record's payload and have `walk` read what comes out.

        walk: returns how many bytes it used, all but those of an event that goes on. Raises PerfDataError,
        naming the record at file offset `where`, when the stream is damaged or grows out of proportion, and
        whatever `walk` raises.
        """
        for at in range(0, len(payload), _SLICE):
            output = self._inflate(payload[at : at + _SLICE], where)
            if self.rest + len(output) > len(self._buffer):
                self._drain(walk)
            if self.rest + len(output) > _ROOM:  # hundreds of times its size: no recording, but readable
                whole = np.concatenate([self._buffer[: self.rest], np.frombuffer(output, dtype=np.uint8)])
                self._keep(whole[walk(whole) :])
            else:
                self._buffer[self.rest : self.rest + len(output)] = np.frombuffer(output, dtype=np.uint8)
                self.rest += len(output)
        self._drain(walk)

    def _drain(self, walk: Walk) -> None:
        self._keep(self._buffer[walk(self._buffer[: self.rest]) : self.rest].copy())

    def _keep(self, rest: NDArray[np.uint8]) -> None:
        """Hold back what a walk left over: less than a record, which is 64 KiB at most."""
        self.rest = len(rest)
        self._buffer[: self.rest] = rest

    def _inflate(self, data: bytes | memoryview, where: int) -> bytes:
        self._taken += len(data)
        output = b""
        try:
            while len(data):
                part = self._stream.decompress(data)
                output = output + part if output else part
                data = b""
                if self._stream.eof:  # another frame follows: some writers make one a record
                    data = self._stream.unused_data
                    self._stream = self._decompressor.decompressobj(write_size=_CHUNK)
        except self._error as error:
            raise PerfDataError(
                f"{self._name}: damaged zstd data in the record at offset {where} ({error})", "record again"
            ) from None
        self._given += len(output)
        if self._given > _FREE_OUTPUT + _MOST_RATIO * self._taken:
            raise PerfDataError(
                f"{self._name}: zstd data at offset {where} grows without bound", "record again"
            )
        return output
