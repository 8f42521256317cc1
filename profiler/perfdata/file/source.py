"""The bytes of a recording: decompressed where needed, and mapped, giving back memory that has been read."""

import io
import mmap
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from numaplan.common import UsageError

_STEP = 64 << 20
_MAGIC_BYTES = 8
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\0"
_CHUNK = 1 << 20
# Packed recordings shrink by ten or so; a thousand times means a file made to fill the disk.
_MOST_RATIO = 1000
MAGIC = {b"PERFILE2": "<", b"2ELIFREP": ">"}  # the order of its bytes, by what a file begins with
OLD_MAGIC = b"PERFFILE"  # before 3.4: the same bytes in both orders
_FREE_OUTPUT = 64 << 20


class PerfDataError(UsageError):
    """A perf.data file that cannot be read; `what` names the file and the offset of the damage."""


class Source:
    """A file's bytes as an array. Raises UsageError when it cannot be opened. name: of it in messages."""

    def __init__(self, path: Path, name: str = "") -> None:
        self.name = name or str(path)
        self._map: mmap.mmap | None = None
        self._released = 0
        try:
            with path.open("rb") as file:
                if path.is_file() and os.fstat(file.fileno()).st_size:
                    self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                    self.data: NDArray[np.uint8] = np.frombuffer(self._map, dtype=np.uint8)
                else:
                    start = file.read(_MAGIC_BYTES)  # of a pipe or device, which may have no end
                    rest = file.read() if start in (*MAGIC, OLD_MAGIC) else b""
                    self.data = np.frombuffer(start + rest, dtype=np.uint8)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(f"{path}: {reason}", "give a file that perf record wrote") from error

    def passed(self, upto: int) -> None:
        """Bytes before `upto` have been read: let go of their memory (they can be read again)."""
        end = upto - upto % mmap.PAGESIZE
        if self._map is not None and end - self._released >= _STEP:
            self._map.madvise(mmap.MADV_DONTNEED, self._released, end - self._released)
            self._released = end


def decompressed(name: str, workdir: Path, number: int = 0) -> Path:
    """The recording `name` as a file to map: itself, or the content of a gzip or xz file, or stdin (`-`).

    number: tells several files in `workdir` apart. Raises UsageError when it cannot be read or written, and
    for what is packed or comes from stdin and is no recording, as soon as its first bytes say so.
    """
    import lzma

    path = Path(name)
    if name != "-" and not path.is_file():
        return path
    target = workdir / f"recording-{number}.data"
    try:
        with nullcontext(sys.stdin.buffer) if name == "-" else path.open("rb") as file:
            incoming = Incoming(file)
            start = incoming.peek(_MAGIC_BYTES)[:_MAGIC_BYTES]
            packed = start.startswith((_GZIP, _XZ))
            if name != "-" and not packed:
                return path
            _copy(shown(name), incoming, _unpacked(start, incoming), target)
    except (OSError, EOFError, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{shown(name)}: {reason}", "give a whole file that perf record wrote") from error
    return target


def shown(name: str) -> str:
    """What messages call a recording that was given as `name`."""
    return "stdin" if name == "-" else name


def no_recording(name: str, start: bytes) -> PerfDataError:
    """The error for what begins otherwise than recordings do."""
    begins = repr(start[:_MAGIC_BYTES]) if start else "empty"
    return PerfDataError(
        f"{name}: no perf.data file (offset 0: {begins})", "give a file that perf record wrote"
    )


class Incoming(io.BufferedReader):
    """A file or pipe that can be looked into. Its first bytes are read alone: a pipe may bring more late."""

    def __init__(self, file: IO[bytes]) -> None:
        self._counted = _Counted(file)
        super().__init__(self._counted, _CHUNK)

    @property
    def taken(self) -> int:
        """Bytes read so far."""
        return self._counted.taken


class _Counted(io.RawIOBase):
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer) if self.taken else min(_MAGIC_BYTES, len(buffer)))
        buffer[: len(data)] = data
        self.taken += len(data)
        return len(data)


def _unpacked(start: bytes, incoming: Incoming) -> IO[bytes]:
    import gzip
    import lzma

    if start.startswith(_GZIP):
        return cast(IO[bytes], gzip.GzipFile(fileobj=incoming))
    return lzma.LZMAFile(incoming) if start.startswith(_XZ) else incoming


def _copy(name: str, incoming: Incoming, content: IO[bytes], target: Path) -> None:
    written = 0
    with target.open("wb") as file:
        while (chunk := content.read(_CHUNK)) or not written:
            if not written and not chunk.startswith((*MAGIC, OLD_MAGIC)):
                raise no_recording(name, chunk)
            written += len(chunk)
            if written > _FREE_OUTPUT + _MOST_RATIO * incoming.taken:
                raise UsageError(f"{name}: unpacks to more than {_MOST_RATIO} times its size", "record again")
            file.write(chunk)
