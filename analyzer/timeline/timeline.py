"""Accesses to memory over time: slices, smoothing, and the clock ([CMLB], 3.1.2)."""

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from numaplan.common import UsageError

from ..samples.preparing import count_in_slices

SLICE_NS = 1_000_000
MAX_CELLS = 1 << 25  # slices times threads; beyond it slices are widened
OUTLIERS = 0.05

Vector = NDArray[np.float64]


class Timeline(msgspec.Struct, frozen=True):
    """Accesses in slices of time: slice s covers [start_ns + s * slice_ns, start_ns + (s + 1) * slice_ns).

    per_thread: (S, N) accesses of each thread in each slice; in_accesses: what is called a nanosecond is an
    access: the clock of emulated programs counts these.
    """

    start_ns: int
    slice_ns: int
    per_thread: NDArray[np.float64]
    in_accesses: bool = False

    @property
    def amount(self) -> Vector:
        """(S,) accesses of all threads in each slice."""
        answer: Vector = self.per_thread.sum(axis=1)
        return answer

    @property
    def smoothed(self) -> Vector:
        """(S,) the same without its outliers; what phases are found in."""
        return remove_outliers(self.amount)

    @property
    def unit(self) -> str:
        """What people read its times in: a million of what its clock counts."""
        return "M accesses" if self.in_accesses else "ms"

    def moment(self, place: int) -> str:
        """The start of a slice in `unit`, with the digits that tell it from the next one."""
        digits = max(0, math.ceil(-math.log10(self.slice_ns / 1e6)))
        return f"{(self.start_ns + place * self.slice_ns) / 1e6:,.{digits}f}"

    def slice_starts(self) -> NDArray[np.int64]:
        """(S,) start of each slice in ns."""
        return self.start_ns + np.arange(len(self.per_thread), dtype=np.int64) * self.slice_ns


def cycles_to_ns(cycles: ArrayLike, freq_khz: float) -> Vector:
    """Time in ns of a time stamp in clock cycles (Eq. 1: cycles * 1000000 / freq).

    cycles: any shape; freq_khz: clock frequency in kHz. Raises UsageError when it is not positive.
    """
    if not freq_khz > 0 or not np.isfinite(freq_khz):
        raise UsageError(f"clock frequency {freq_khz} kHz", "give the frequency of the time stamp counter")
    return np.asarray(cycles, np.float64) * 1_000_000 / freq_khz


def remove_outliers(values: ArrayLike, share: float = OUTLIERS) -> Vector:
    """The values with the `share` greatest of them replaced by linear interpolation between their neighbours.

    (S,) in and out. Of equal values the later ones go first; at the ends the nearest kept value is taken.
    """
    given = np.asarray(values, np.float64)
    count = int(len(given) * share)
    if count == 0:
        return given.copy()
    kept = np.ones(len(given), bool)
    kept[np.argsort(given, kind="stable")[-count:]] = False
    place = np.arange(len(given))
    return np.interp(place, place[kept], given[kept])


def slices_for(start_ns: int, end_ns: int, threads: int, slice_ns: int = SLICE_NS) -> tuple[int, int]:
    """(number of slices, ns of one) that cover [start_ns, end_ns] without exceeding the memory set aside.

    Raises UsageError for a slice that is not positive.
    """
    if slice_ns < 1:
        raise UsageError(f"slice of {slice_ns} ns", "give at least 1")
    span = max(0, end_ns - start_ns)
    most = max(1, MAX_CELLS // max(1, threads))
    slice_ns = max(slice_ns, -(-(span + 1) // most))
    return span // slice_ns + 1, slice_ns


class TimelineCounter:
    """A timeline of accesses that come in blocks, in any order, between two times known beforehand."""

    def __init__(self, threads: int, start_ns: int, end_ns: int, slice_ns: int = SLICE_NS) -> None:
        slices, self.slice_ns = slices_for(start_ns, end_ns, threads, slice_ns)
        self.start_ns = start_ns
        self._cells = np.zeros((slices, threads))

    def add(
        self,
        time_ns: NDArray[np.int64],
        thread: NDArray[np.integer],
        weight: Vector | None = None,
        chosen: NDArray[np.bool_] | None = None,
    ) -> None:
        """Count accesses; equally long arrays, thread in 0..N-1. Times outside are counted at the ends.

        weight: what each one counts (default: 1); chosen: which are counted (default: all).
        """
        count_in_slices(self._cells, self.start_ns, self.slice_ns, time_ns, thread, weight, chosen)

    def result(self) -> Timeline:
        """The timeline of all accesses so far."""
        return Timeline(self.start_ns, self.slice_ns, self._cells)


def access_timeline(
    time_ns: ArrayLike, thread: ArrayLike, *, threads: int, slice_ns: int = SLICE_NS
) -> Timeline:
    """Accesses in slices of time from the first to the last one.

    time_ns: int64 ns; thread: 0..N-1; equally long, the selected accesses only (the paper takes those that
    missed the last cache). Raises UsageError for arrays of different length or a thread out of range.
    """
    times, ids = np.asarray(time_ns).astype(np.int64), np.asarray(thread)
    if times.shape != ids.shape or times.ndim != 1:
        raise UsageError("time and thread differ in length", "give equally long flat arrays")
    if len(ids) and (int(ids.min()) < 0 or int(ids.max()) >= threads):
        raise UsageError(f"an access's thread is not in 0..{threads - 1}", "give 'threads' or drop it")
    if not len(times):
        return Timeline(0, slice_ns, np.zeros((0, threads)))
    counter = TimelineCounter(threads, int(times.min()), int(times.max()), slice_ns)
    counter.add(times, ids)
    return counter.result()
