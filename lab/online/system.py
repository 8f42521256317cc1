"""The guest as a loop on the host sees it: processes, samples, and a clock that accesses drive."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numaplan.common import MachineLacksError
from numaplan.launcher import ThreadTimes, count_resident_pages
from numaplan.mapper import Ints
from numaplan.profiler import EVENT_CODE, LiveEvents, LiveSamples, no_samples

from .link import Link, ThreadState
from .rings import CACHED, STORE, Rings

PERIOD = 4001  # accesses a sample
ACCESSES_A_SECOND = 50e6  # of all cpus: what the machine makes on an idle host, counting
EVENTS = LiveEvents("lab", (), (), PERIOD, machine_wide=True, unloaded=True)
_POLL_SECONDS = 0.02
_EMPTY_SECONDS = 0.2  # in which no ring fills up


@dataclass(frozen=True)
class _Moment:
    """One moment by our clock and that of the host (ns)."""

    seconds: float
    host_ns: int


class GuestSystem:
    """A guest's operating system while one program runs, and its sampler.

    A second is so many accesses of the program's: whatever the host does beside, as much of the program runs
    between two looks. Times of the guest's kernel are translated. `take` looks at everything at once.
    """

    what = EVENTS

    def __init__(self, link: Link, rings: Rings) -> None:
        self._link, self._rings = link, rings
        self._begun = False
        self._last = _Moment(0.0, 0)
        self._states: dict[int, ThreadState] = {}
        self._threads: dict[int, list[int]] = {}
        self._times: dict[int, tuple[int, int, float, float]] = {}  # as read, and by our clock
        self._pieces: list[NDArray[Any]] = []
        self._lost = 0
        self._emptied = 0.0

    def now(self) -> float:
        """Seconds of accesses."""
        return self._rings.since_start() * PERIOD / ACCESSES_A_SECOND if self._begun else 0.0

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Until the program has made that many seconds' accesses."""
        if not self._begun:
            try:
                self._begin()
            except MachineLacksError:  # the program has ended before
                return True
        until = self.now() + seconds
        while not stop.wait(_POLL_SECONDS):
            if time.monotonic() - self._emptied > _EMPTY_SECONDS:
                self._empty()
            if self.now() >= until:
                return False
        return True

    def take(self) -> LiveSamples:
        """The samples since the last call; a look at all threads goes with it."""
        if not self._begun:
            return no_samples()
        self._empty()
        raw, lost = np.concatenate(self._pieces), self._lost
        raw = raw[(raw["flags"] & CACHED) == 0]  # it would have cost the same anywhere
        self._pieces, self._lost = [], 0
        tasks, row = np.unique(raw["task"], return_inverse=True)
        before, named = self._last, self._link.name_tasks(tasks)
        self._look(before)
        tid, pid = named[row].T
        known = tid > 0
        raw = raw[known]
        host_ns = np.clip(raw["time_ns"].astype(np.int64), before.host_ns, self._last.host_ns)
        seconds = np.interp(
            host_ns, (before.host_ns, self._last.host_ns), (before.seconds, self._last.seconds)
        )
        stores = (raw["flags"] & STORE) > 0
        return LiveSamples(
            time_ns=(seconds * 1e9).astype(np.int64),
            pid=pid[known],
            tid=tid[known],
            cpu=raw["cpu"].astype(np.int64),
            addr=raw["address"].astype(np.uint64),
            event=np.where(stores, EVENT_CODE["store"], EVENT_CODE["load"]).astype(np.uint8),
            is_write=stores,
            latency_ns=np.full(len(raw), np.nan),
            missed=np.ones(len(raw), dtype=np.bool_),
            count=raw["period"].astype(np.float64),
            instructions=(),
            lost=lost + int(np.count_nonzero(~known)),
        )

    def close(self) -> None:
        """No more samples."""
        self._rings.stop()

    def members(self, _roots: Sequence[int], _now: float) -> list[int]:
        """All processes but the agent's, at the last look."""
        return sorted(self._threads)

    def is_alive(self, _pid: int) -> bool:
        """The loop ends with the run."""
        return True

    def thread_ids(self, pid: int) -> list[int]:
        """At the last look."""
        return self._threads.get(pid, [])

    def thread_times(self, _pid: int, tid: int) -> ThreadTimes | None:
        """At the last look."""
        state = self._states.get(tid)
        if state is None:
            return None
        _ran, _waited, ran, waited = self._times[tid]
        return ThreadTimes(state.cpu, round(ran), round(waited))

    def allowed_cpus(self, tid: int) -> frozenset[int] | None:
        """At the last look, or as bound since."""
        state = self._states.get(tid)
        return state.cpus if state else None

    def bind(self, tid: int, cpus: frozenset[int]) -> None:
        """Let a thread run on these cpus alone; raises OSError."""
        self._link.bind(tid, cpus)
        if tid in self._states:
            self._states[tid] = self._states[tid]._replace(cpus=cpus)

    def page_nodes(self, pid: int, pages: Ints) -> Ints:
        """Now; raises OSError."""
        return self._link.page_nodes(pid, pages)

    def move_pages(self, pid: int, pages: Ints, node: int) -> Ints:
        """Now; raises OSError."""
        return self._link.page_nodes(pid, pages, node)

    def resident_pages(self, pid: int, node_ids: Sequence[int], page_bytes: int) -> list[float]:
        """As the guest's numa_maps says."""
        lines = self._link.read(f"/proc/{pid}/numa_maps").splitlines()
        return count_resident_pages(lines, node_ids, page_bytes)

    def numa_balancing(self) -> int:
        """Nobody's to switch here: configurations do."""
        return 0

    def _begin(self) -> None:
        """The agent answers once the program is about to start."""
        self._link.greet()
        self._rings.start(PERIOD)
        self._begun = True
        self._last = _Moment(0.0, time.monotonic_ns())

    def _empty(self) -> None:
        piece, lost = self._rings.take()
        self._pieces.append(piece)
        self._lost += lost
        self._emptied = time.monotonic()

    def _look(self, before: _Moment) -> None:
        states = self._link.look()
        self._last = _Moment(self.now(), time.monotonic_ns())
        self._times = self._translated(states, (self._last.seconds - before.seconds) * 1e9)
        self._states = {state.tid: state for state in states}
        self._threads = {}
        for state in sorted(states):
            self._threads.setdefault(state.pid, []).append(state.tid)

    def _translated(
        self, states: Sequence[ThreadState], passed_ns: float
    ) -> dict[int, tuple[int, int, float, float]]:
        """Each thread's times, by the guest's clock and by ours, in which the busiest thread was always busy.

        The guest counts much less: where it has more cpus than the host, a thread that should go on does not
        know of it before its cpu has its turn on the host.
        """
        none = (0, 0, 0.0, 0.0)
        before = {state.tid: self._times.get(state.tid, none) for state in states}
        busiest = max(
            (state.ran_ns + state.waited_ns - sum(before[state.tid][:2]) for state in states), default=0
        )
        scale = passed_ns / busiest if busiest > 0 else 0.0
        return {
            state.tid: (
                state.ran_ns,
                state.waited_ns,
                before[state.tid][2] + (state.ran_ns - before[state.tid][0]) * scale,
                before[state.tid][3] + (state.waited_ns - before[state.tid][1]) * scale,
            )
            for state in states
        }
