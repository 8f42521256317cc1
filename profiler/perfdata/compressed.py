"""zstd records: one stream over all of them, in which events straddle records."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from numaplan.profiler.perfdata.errors import PerfDataError

# A zstd block is at least 4 bytes and gives at most 128 KiB: so many bytes in give at most 128 MiB out.
_SLICE = 4096
_ENOUGH = 1 << 20
# Beyond what honest recordings reach a small file would fill the memory.
_MOST_RATIO = 4000
_FREE_OUTPUT = 64 << 20


class Inflater:
    """Decompresses the payloads of COMPRESSED records; holds back the event that a payload cut in two."""

    def __init__(self, name: str) -> None:
        import zstandard

        self._name = name
        self._decompressor = zstandard.ZstdDecompressor()
        self._stream = self._decompressor.decompressobj()
        self._error = zstandard.ZstdError
        self._rest = b""
        self._taken = 0
        self._given = 0

    @property
    def rest(self) -> int:
        """Bytes of an event whose end has not come."""
        return len(self._rest)

    def buffers(self, payload: memoryview, where: int) -> Iterator[NDArray[np.uint8]]:
        """Records to walk, in turn; call `keep` with what the walk of each could not use before the next.

        Raises PerfDataError, naming the record at file offset `where`, when the stream is damaged or grows
        out of proportion.
        """
        parts, held = [self._rest], len(self._rest)
        for at in range(0, len(payload), _SLICE):
            part = self._inflate(bytes(payload[at : at + _SLICE]), where)
            parts.append(part)
            held += len(part)
            if held >= _ENOUGH or at + _SLICE >= len(payload):
                yield np.frombuffer(b"".join(parts), dtype=np.uint8)
                parts, held = [self._rest], len(self._rest)

    def keep(self, rest: NDArray[np.uint8]) -> None:
        """Hold back the bytes that a walk left over."""
        self._rest = rest.tobytes()

    def _inflate(self, data: bytes, where: int) -> bytes:
        self._taken += len(data)
        output = []
        try:
            while data:
                output.append(self._stream.decompress(data))
                data = b""
                if self._stream.eof:  # another frame follows: some writers make one a record
                    data = self._stream.unused_data
                    self._stream = self._decompressor.decompressobj()
        except self._error as error:
            raise PerfDataError(
                f"{self._name}: damaged zstd data in the record at offset {where} ({error})", "record again"
            ) from None
        self._given += sum(map(len, output))
        if self._given > _FREE_OUTPUT + _MOST_RATIO * self._taken:
            raise PerfDataError(
                f"{self._name}: zstd data at offset {where} grows without bound", "record again"
            )
        return b"".join(output)
