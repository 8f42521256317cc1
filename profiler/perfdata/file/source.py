"""The bytes of a recording: decompressed where needed, and mapped, giving back memory that has been read."""

import mmap
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from numaplan.common import UsageError

_STEP = 64 << 20
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
    """A file's bytes as an array. Raises UsageError when it cannot be opened."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._map: mmap.mmap | None = None
        self._released = 0
        try:
            with path.open("rb") as file:
                if path.is_file() and os.fstat(file.fileno()).st_size:
                    self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                    self.data: NDArray[np.uint8] = np.frombuffer(self._map, dtype=np.uint8)
                else:
                    start = file.read(8)  # of a pipe or device, which may have no end
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

    number: tells several files in `workdir` apart. Raises UsageError when it cannot be read or written.
    """
    import gzip
    import lzma

    path = Path(name)
    target = workdir / f"recording-{number}.data"
    try:
        if name == "-":
            with target.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file, _CHUNK)
            return target
        if not path.is_file():
            return path
        with path.open("rb") as file:
            start = file.read(8)
        if start.startswith(_GZIP):
            with gzip.open(path) as packed:
                _copy(packed.read, target, path)
        elif start.startswith(_XZ):
            with lzma.open(path) as packed:
                _copy(packed.read, target, path)
        else:
            return path
    except (OSError, EOFError, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{name}: {reason}", "give a whole file that perf record wrote") from error
    return target


def _copy(read: Callable[[int], bytes], target: Path, path: Path) -> None:
    most = _FREE_OUTPUT + _MOST_RATIO * path.stat().st_size
    written = 0
    with target.open("wb") as file:
        while chunk := read(_CHUNK):
            written += len(chunk)
            if written > most:
                raise UsageError(f"{path}: unpacks to more than {_MOST_RATIO} times its size", "record again")
            file.write(chunk)
