"""What a loop sees and does of an operating system: of this one, or (`nlab`) of a virtual machine's."""

import os
import threading
import time
from collections.abc import Sequence
from typing import Protocol

from numaplan.mapper import Ints

from ..process import page_moves, procfs

Cpus = frozenset[int]


class System(Protocol):
    """An operating system with the processes that a loop refines."""

    def now(self) -> float:
        """Seconds of the clock that samples bear, and by which the loop keeps its pace."""

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Let so many seconds pass; True as soon as `stop` is set."""

    def members(self, roots: Sequence[int], now: float, /) -> Sequence[int]:
        """The processes that roots and their descendants are, ascending. now: seconds."""

    def is_alive(self, pid: int, /) -> bool:
        """Whether a process exists and is no zombie."""

    def thread_ids(self, pid: int) -> list[int]:
        """The threads of a process, ascending; none when it has ended."""

    def thread_times(self, pid: int, tid: int, /) -> procfs.ThreadTimes | None:
        """Where a thread ran last and how long, by this clock; None when it has ended."""

    def allowed_cpus(self, tid: int) -> Cpus | None:
        """The cpus that a thread may run on, None when it has ended or is not to be asked."""

    def bind(self, tid: int, cpus: Cpus) -> None:
        """Let a thread run on these cpus alone; raises OSError."""

    def page_nodes(self, pid: int, pages: Ints) -> Ints:
        """(n,) the node id of each page number of a process, -1 unknown; raises OSError."""

    def move_pages(self, pid: int, pages: Ints, node: int) -> Ints:
        """(n,) the same after moving them to a node; raises OSError."""

    def resident_pages(self, pid: int, node_ids: Sequence[int], page_bytes: int) -> list[float]:
        """Resident pages of a process on each of the nodes, zeros when not known."""

    def numa_balancing(self) -> int:
        """The kernel's own setting: 0 off, 1 on, 2 tiering."""


class LocalSystem:
    """The one that we run on."""

    def __init__(self) -> None:
        self._families = procfs.Families()

    def now(self) -> float:
        """CLOCK_MONOTONIC."""
        return time.monotonic()

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Sleep."""
        return stop.wait(min(seconds, threading.TIMEOUT_MAX))

    def members(self, roots: Sequence[int], now: float) -> list[int]:
        """As /proc says."""
        return self._families.members(roots, now)

    def is_alive(self, pid: int) -> bool:
        """As /proc says."""
        return procfs.is_alive(pid)

    def thread_ids(self, pid: int) -> list[int]:
        """As /proc says."""
        return procfs.thread_ids(pid)

    def thread_times(self, pid: int, tid: int) -> procfs.ThreadTimes | None:
        """As /proc says."""
        return procfs.thread_times(pid, tid)

    def allowed_cpus(self, tid: int) -> Cpus | None:
        """As the kernel says."""
        try:
            return frozenset(os.sched_getaffinity(tid))
        except OSError:
            return None

    def bind(self, tid: int, cpus: Cpus) -> None:
        """By sched_setaffinity."""
        os.sched_setaffinity(tid, cpus)

    def page_nodes(self, pid: int, pages: Ints) -> Ints:
        """By move_pages(2)."""
        return page_moves.page_nodes(pid, pages)

    def move_pages(self, pid: int, pages: Ints, node: int) -> Ints:
        """By move_pages(2)."""
        return page_moves.move_pages(pid, pages, node)

    def resident_pages(self, pid: int, node_ids: Sequence[int], page_bytes: int) -> list[float]:
        """As numa_maps says."""
        return procfs.resident_pages(pid, node_ids, page_bytes)

    def numa_balancing(self) -> int:
        """As /proc says."""
        return procfs.numa_balancing()
