"""The bytes of a recording: a memory map that gives back what has been read."""

import mmap
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from numaplan.common import UsageError

_STEP = 64 << 20


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
                    self.data = np.frombuffer(file.read(), dtype=np.uint8)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(f"{path}: {reason}", "give a file that perf record wrote") from error

    def passed(self, upto: int) -> None:
        """Bytes before `upto` have been read: let go of their memory (they can be read again)."""
        end = upto - upto % mmap.PAGESIZE
        if self._map is not None and end - self._released >= _STEP:
            self._map.madvise(mmap.MADV_DONTNEED, self._released, end - self._released)
            self._released = end
