"""Streaming zstd into a buffer of ours: by the system's library where it is there, else by the package.

The library writes straight into the buffer, so that a record costs what decompressing it costs and no file,
however packed, makes it take memory; the package `zstandard` has no such call.
"""

import ctypes
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Buffer = NDArray[np.uint8]

_LIBRARY = "libzstd.so.1"
# A zstd block is at least 4 bytes and gives at most 128 KiB: so many bytes in give at most 128 MiB out.
_SLICE = 4096
_BLOCK_HEAD = 3


class ZstdError(Exception):
    """Data that are not what zstd wrote."""


class ZstdStream(Protocol):
    """Frames one after the other, in pieces of any size. partial: a block has begun that has not ended."""

    partial: bool

    def step(self, payload: Buffer, at: int, out: Buffer, filled: int) -> tuple[int, int]:
        """Decompress from payload[at:] into out[filled:]; returns both places after it.

        All is done when the payload is used up and `out` is not full. Raises ZstdError.
        """


def open_stream() -> ZstdStream:
    """A stream at the start of its first frame."""
    library = _library()
    return LibraryStream(library) if library is not None else PackageStream()


class _Place(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("size", ctypes.c_size_t), ("at", ctypes.c_size_t))


@cache
def _library() -> Any:
    try:
        library = ctypes.CDLL(_LIBRARY)
        library.ZSTD_createDStream.restype = ctypes.c_void_p
        library.ZSTD_freeDStream.argtypes = [ctypes.c_void_p]
        library.ZSTD_decompressStream.argtypes = [
            ctypes.c_void_p,
            ctypes.POINTER(_Place),
            ctypes.POINTER(_Place),
        ]
        library.ZSTD_decompressStream.restype = ctypes.c_size_t
        library.ZSTD_isError.argtypes = [ctypes.c_size_t]
        library.ZSTD_getErrorName.argtypes = [ctypes.c_size_t]
        library.ZSTD_getErrorName.restype = ctypes.c_char_p
    except (OSError, AttributeError):
        return None
    return library


class LibraryStream:
    """By libzstd (its stable interface)."""

    def __init__(self, library: Any) -> None:
        self.partial = False
        self._library = library
        self._stream = library.ZSTD_createDStream()
        if not self._stream:
            raise MemoryError("zstd")

    def __del__(self) -> None:
        if getattr(self, "_stream", None):
            self._library.ZSTD_freeDStream(self._stream)

    def step(self, payload: Buffer, at: int, out: Buffer, filled: int) -> tuple[int, int]:
        """See ZstdStream."""
        source = _Place(payload.ctypes.data, len(payload), at)
        target = _Place(out.ctypes.data, len(out), filled)
        answer = self._library.ZSTD_decompressStream(self._stream, ctypes.byref(target), ctypes.byref(source))
        if self._library.ZSTD_isError(answer):
            raise ZstdError(self._library.ZSTD_getErrorName(answer).decode("ascii", "replace"))
        # What it wants next: the head of a block, or, within one, its rest; 0 at the end of a frame.
        self.partial = answer > _BLOCK_HEAD
        return source.at, target.at


class PackageStream:
    """By the package zstandard, in slices so small that what they give has room."""

    partial = False  # it does not say

    def __init__(self) -> None:
        import zstandard

        self._error = zstandard.ZstdError
        self._decompressor = zstandard.ZstdDecompressor()
        self._frame = self._decompressor.decompressobj()
        self._ready = np.empty(0, dtype=np.uint8)

    def step(self, payload: Buffer, at: int, out: Buffer, filled: int) -> tuple[int, int]:
        """See ZstdStream."""
        if not len(self._ready):
            data = payload[at : at + _SLICE].tobytes()
            at += len(data)
            self._ready = np.frombuffer(self._decompressed(data), dtype=np.uint8)
        size = min(len(self._ready), len(out) - filled)
        out[filled : filled + size] = self._ready[:size]
        self._ready = self._ready[size:]
        return at, filled + size

    def _decompressed(self, data: bytes) -> bytes:
        parts = []
        try:
            while data:
                parts.append(self._frame.decompress(data))
                data = b""
                if self._frame.eof:  # another frame follows: some writers make one a record
                    data = self._frame.unused_data
                    self._frame = self._decompressor.decompressobj()
        except self._error as error:
            raise ZstdError(str(error)) from None
        return b"".join(parts)
