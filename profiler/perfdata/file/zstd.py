"""COMPRESSED records: one zstd stream over all of them, in which events straddle records.

It is decompressed into a buffer of ours, by the system's library where it is there, else by the package. The
library writes straight into the buffer, so that a record costs what decompressing it costs and no file,
however packed, makes it take memory; the package `zstandard` has no such call.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .source import PerfDataError

Buffer = NDArray[np.uint8]

_LIBRARY = "libzstd.so.1"
# A zstd block is at least 4 bytes and gives at most 128 KiB: so many bytes in give at most 128 MiB out.
_SLICE = 4096
_BLOCK_HEAD = 3
# What is decompressed goes through one buffer, of many records so that reading them costs little more than
# their samples; none is longer than 64 KiB.
_ROOM = 256 << 10
# Beyond what honest recordings reach a small file would take for ever.
_MOST_RATIO = 4000
_FREE_OUTPUT = 64 << 20


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
