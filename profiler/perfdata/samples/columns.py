"""The arrays that samples are decoded into: equally long, growing as blocks of records come."""

import numpy as np
from numpy.typing import NDArray

NAMES = ("time", "pid", "tid", "cpu", "ip", "addr", "phys_addr", "period", "weight", "data_src")
_SIGNED = ("time", "pid", "tid", "cpu")
_KINDS: dict[str, type[np.generic]] = {"event": np.int32, "cpumode": np.uint8, "call": np.int32}
_FIRST_ROOM = 1 << 12
_MOST_EXPECTED = 1 << 26

Column = NDArray[np.generic]


class Columns:
    """Columns of samples. Those no sample fills stay zero and cost no memory: nobody touches their pages."""

    def __init__(self) -> None:
        self.count = 0
        self._room = 0
        self._stale = 0  # rows that may hold what was forgotten
        self._filled: set[str] = set()
        self._arrays: dict[str, Column] = {}
        self._allocate(_FIRST_ROOM)

    def _allocate(self, room: int) -> None:
        self._room = room
        for name in (*NAMES, *_KINDS):
            kind = _KINDS.get(name, np.int64 if name in _SIGNED else np.uint64)
            fresh: Column = np.zeros(room, dtype=kind)
            if name in self._filled:
                fresh[: self.count] = self._arrays[name][: self.count]
            self._arrays[name] = fresh

    def expect(self, samples: int) -> None:
        """Take address space for so many samples; memory is taken only as they come."""
        samples = min(samples, _MOST_EXPECTED)
        if samples > self._room:
            self._allocate(samples)

    def reserve(self, more: int) -> None:
        """Make room for `more` further samples."""
        if self.count + more > self._room:
            self._allocate(max(self.count + more, self._room * 2))

    def repeat(self, first: int, times: NDArray[np.int64]) -> None:
        """Repeat each row from `first` on so many times (0: leave it out)."""
        last, more = self.count, int(times.sum())
        kept = {name: self._arrays[name][first:last].copy() for name in self._filled}
        self.reserve(max(more - (last - first), 0))
        self.count = first + more
        for name, values in kept.items():
            self._arrays[name][first : self.count] = np.repeat(values, times)
            self._arrays[name][self.count : last] = 0

    def fill(self, name: str) -> Column:
        """The whole array of a column that is about to be written."""
        self._filled.add(name)
        return self._arrays[name]

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def clear(self) -> None:
        """Forget the samples; what comes next overwrites them."""
        self._stale = max(self._stale, self.count)
        self.count = 0

    def blank(self, more: int) -> None:
        """Make the next `more` rows zero, for samples that do not fill all columns that others have."""
        last = min(self.count + more, self._stale)
        for name in self._filled:
            self._arrays[name][self.count : last] = 0

    def finish(self) -> dict[str, Column]:
        """The columns, cut to the samples they hold."""
        return {name: array[: self.count] for name, array in self._arrays.items()}
