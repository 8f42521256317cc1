"""Events between threads counted in blocks as large as their use allows (native part: leaves.c, roots.c)."""

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .blocks import check_columns, check_count, library

MOST_SAMPLES = 1 << 23  # that are counted together by default
LIMIT = 1 << 24  # of the native part
MOST_BUDGETS, MOST_BUDGET = 8, 1024  # as well
FIRST_CAPACITY = 1 << 16
# Bytes, of whole lines, that addresses are raised by: thirds of a root. Quarters end at the same places.
RAISED = (0, 5461 << 6, 10923 << 6)

Matrix = NDArray[np.float64]


class _Samples(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_size_t),
        ("first", ctypes.c_uint64),
        ("raised", ctypes.c_uint64),
        ("addr", ctypes.c_void_p),
        ("thread", ctypes.c_void_p),
        ("is_write", ctypes.c_void_p),
    )


class _Layers(ctypes.Structure):
    _fields_ = (
        ("threads", ctypes.c_uint32),
        ("groups", ctypes.c_uint32),
        ("budgets", ctypes.c_uint32),
        ("budget", ctypes.c_uint32 * 8),
        ("weight", ctypes.c_uint32 * 2),
        ("event_window", ctypes.c_uint64),
        ("pair_window", ctypes.c_uint64),
        ("events", ctypes.c_void_p),
        ("transfers", ctypes.c_void_p),
    )


class LeafCounts(NamedTuple):
    """What was counted.

    events: (budgets, groups, N, N) [writer][reader], grouped by time; transfers: (budgets, groups, N, N)
    lines that are thought to have passed between two threads, in an arbitrary unit, the lower number first,
    grouped by leaf; total: (budgets, N, N) the same of all groups, the mean over where blocks begin.
    """

    events: NDArray[np.uint32]
    transfers: Matrix
    total: Matrix


class LeafCounter:
    """Last-writer events in the leaves of halved memory, from samples in order of time; what they stand for.

    What meets in a leaf depends on where its block ends. So transfers are counted with blocks that begin
    at three places, a third of a root apart: however often they are halved, those of one place do not end
    where those of another do (but for blocks of one or two lines). Groups are of the first place alone:
    of several, one sample would be in more than one of them.

    budgets: samples of a block by others than its main thread above which it is halved, at most 8 of them,
    each at most 1024, ascending; groups: into how many matrices counts are split, events by turns of
    `event_window` samples, transfers by leaf; pair_window: samples of one stretch of time; weights: what an
    event by a load counts, and one by a store; most: samples that are kept and counted together.
    Raises UsageError for too many threads, ValueError for budgets that the native part does not take.
    """

    def __init__(
        self,
        threads: int,
        budgets: Sequence[int],
        *,
        groups: int,
        event_window: int,
        pair_window: int,
        weights: tuple[int, int] = (1, 1),
        most: int = MOST_SAMPLES,
    ) -> None:
        check_count(threads)
        if len(budgets) > MOST_BUDGETS or max(budgets) > MOST_BUDGET or sorted(budgets) != list(budgets):
            raise ValueError(f"budgets {tuple(budgets)}")
        self.threads, self._budgets, self._groups = threads, tuple(budgets), groups
        self._windows, self._weights = (event_window, pair_window), weights
        self._most = min(most, LIMIT)
        self._shape = len(budgets), groups, threads, threads
        self._sums = LeafCounts(
            np.zeros(self._shape, np.uint32),
            np.zeros(self._shape),
            np.zeros((len(budgets), threads, threads)),  # of all places but the first
        )
        self._addr = np.empty(0, np.uint64)
        self._thread = np.empty(0, np.uint16)
        self._is_write = np.empty(0, np.uint8)
        self._held = self._before = 0

    def add(self, addr: NDArray[np.uint64], thread: NDArray[np.uint16], is_write: NDArray[np.uint8]) -> None:
        """Keep the next samples in order of time: equally long contiguous arrays, threads in 0..N-1.

        Arrays that come alone are not copied, so they must stay as they are.
        """
        check_columns(self.threads, addr, thread, is_write)
        if not self._held and len(addr) <= self._most:
            self._addr, self._thread, self._is_write = addr, thread, is_write
            self._held = len(addr)
            return
        done = 0
        while done < len(addr):
            if self._held == self._most:
                self._count(self._sums)
                self._before += self._held
                self._held = 0
                self._addr, self._thread, self._is_write = addr[:0], thread[:0], is_write[:0]
            part = min(len(addr) - done, self._most - self._held)
            self._grow(self._held + part)
            to, source = slice(self._held, self._held + part), slice(done, done + part)
            self._addr[to], self._thread[to] = addr[source], thread[source]
            self._is_write[to] = is_write[source]
            self._held += part
            done += part

    def counts(self) -> LeafCounts:
        """Of all samples so far."""
        sums = LeafCounts(self._sums.events.copy(), self._sums.transfers.copy(), self._sums.total.copy())
        self._count(sums)
        total = (sums.total + sums.transfers.sum(axis=1)) / len(RAISED)
        return sums._replace(total=total)

    def _grow(self, samples: int) -> None:
        if samples <= len(self._addr):
            return
        size = min(self._most, max(FIRST_CAPACITY, samples, 2 * len(self._addr)))
        for name in ("_addr", "_thread", "_is_write"):
            old = getattr(self, name)
            larger = np.empty(size, old.dtype)
            larger[: self._held] = old[: self._held]
            setattr(self, name, larger)

    def _count(self, sums: LeafCounts) -> None:
        if not self._held:
            return
        first, *others = RAISED
        self._count_raised(first, self._groups, sums.events.ctypes.data, sums.transfers)
        for raised in others:
            self._count_raised(raised, 1, None, sums.total)

    def _count_raised(self, raised: int, groups: int, events: int | None, transfers: Matrix) -> None:
        columns = (column.ctypes.data for column in (self._addr, self._thread, self._is_write))
        samples = _Samples(self._held, self._before, raised, *columns)
        layers = _Layers(
            self.threads,
            groups,
            len(self._budgets),
            (ctypes.c_uint32 * 8)(*self._budgets),
            (ctypes.c_uint32 * 2)(*self._weights),
            *self._windows,
            events,
            transfers.ctypes.data,
        )
        if library().comm_leaves_count(ctypes.byref(layers), ctypes.byref(samples)):
            raise MemoryError("communication in leaves")
