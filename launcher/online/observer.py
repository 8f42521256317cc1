"""From samples and /proc to the observation that a policy decides on."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from numaplan.mapper import (
    Flags,
    Floats,
    Ints,
    MachineView,
    Observation,
    Pages,
    Processes,
    Threads,
    Touches,
    age_weight,
    find_rows,
    groups_of,
    page_keys,
    split_keys,
)
from numaplan.profiler import LiveSamples

from ..process import page_moves as kernel, procfs
from .bindings import Bindings
from .samples import (
    Counts,
    Interval,
    SampleTable,
    Window,
    count_events,
    rows_of,
    sample_table,
    weighed_by_time,
)

_MOST_PAGES = 1 << 16  # asked for their place at once


class _ThreadReadings(NamedTuple):
    """(T,) what /proc says about the threads: ids, rows, and ns since the last observation."""

    tids: Ints
    process: Ints
    leader: Flags
    cpu: Ints
    ran_ns: Ints
    waited_ns: Ints
    movable: Flags


@dataclass
class Observer:
    """Observes processes once an interval.

    window_s: how long a sample counts (0: for one interval, as in the papers); estimate: make up misses and
    instructions where they are not counted; resident: also count resident pages by node; memory_share:
    samples do not tell how many accesses they stand for, and threads are taken to wait for memory for this
    share of their run time (0: they do tell); timed: their latencies show load, and so are worth more than
    distances.
    """

    machine: MachineView
    bindings: Bindings
    window_s: float
    estimate: bool = False
    resident: bool = False
    memory_share: float = 0.0
    timed: bool = True

    def __post_init__(self) -> None:
        self._system = self.bindings.system
        self._window = Window(self.window_s)
        self._times: dict[int, procfs.ThreadTimes] = {}
        self._last = self._system.now()
        self._narrowed = self.machine
        self._page_nodes_before = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        table = np.full(int(self.machine.cpu_ids.max()) + 2, -1, dtype=np.int64)
        table[self.machine.cpu_ids] = self.machine.cpu_node
        self._node_of_cpu = table
        self._row_of_cpu = {int(cpu): row for row, cpu in enumerate(self.machine.cpu_ids)}
        on_node = (self.machine.cpu_node == row for row in self.machine.cpu_nodes)
        self._cpus_by_node = [frozenset(self.machine.cpu_ids[rows].tolist()) for rows in on_node]

    def observe(self, samples: LiveSamples, roots: Sequence[int]) -> Interval:
        """Observe the processes `roots` and their descendants at this moment."""
        now = self._system.now()
        interval, self._last = max(now - self._last, 1e-3), now
        pids = np.array(self._system.members(roots, now), dtype=np.int64)
        current = sample_table(samples, self._node_of_cpu, pids, self.timed)
        readings = self._read_threads(pids)
        if self.memory_share:
            waited = self.memory_share * float(readings.ran_ns.sum())
            current = weighed_by_time(current, waited, float(np.diag(self.machine.latency_ns).mean()))
        table = self._window.add(current, now, interval)
        order = np.argsort(readings.tids)
        table = table.where(rows_of(readings.tids, order, table.tid) >= 0)
        pages, page_row = self._pages(table, pids)
        touches = self._touches(table, page_row, rows_of(readings.tids, order, table.tid), now)
        counts = count_events(readings.tids, samples, current, readings.ran_ns, self.estimate)
        page_nodes = self._page_nodes(current, pages, pids)
        if self.memory_share:  # too few to tell this interval from those before
            accessed = (touches.thread, pages.node[touches.page], touches.accesses)
        else:
            accessed = (rows_of(readings.tids, order, current.tid), page_nodes, current.weight)
        accesses = self._by_node(*accessed, len(readings.tids))
        threads = self._threads(readings, touches, accesses, interval, counts)
        machine = self._machine_for(pids)
        observation = Observation(now, interval, machine, self._processes(pids), threads, pages, touches)
        return Interval(
            observation,
            current,
            page_nodes,
            float(readings.waited_ns.sum()) / max(1.0, float((readings.ran_ns + readings.waited_ns).sum())),
            samples.lost,
        )

    def _read_threads(self, pids: Ints) -> _ThreadReadings:
        rows: list[tuple[int, int, procfs.ThreadTimes, bool]] = []
        for number, pid in enumerate(pids.tolist()):
            living = self._system.thread_ids(pid)
            movable, leaves = self.bindings.movable(pid, living), self._may_leave_its_node(pid)
            for tid in living:
                times = self._system.thread_times(pid, tid)
                if times is not None and times.cpu in self._row_of_cpu:
                    rows.append((number, tid, times, leaves and movable[tid]))
        pairs = [(times, self._times.get(tid, times)) for _number, tid, times, _movable in rows]
        self._times = {tid: times for _number, tid, times, _movable in rows}
        self.bindings.forget(set(self._times))
        tids = np.array([tid for _number, tid, _times, _movable in rows], dtype=np.int64)
        process = np.array([number for number, _tid, _times, _movable in rows], dtype=np.int64)
        return _ThreadReadings(
            tids,
            process,
            tids == pids[process] if len(rows) else np.empty(0, dtype=np.bool_),
            np.array([self._row_of_cpu[now.cpu] for now, _ in pairs], dtype=np.int64),
            np.array([now.ran_ns - then.ran_ns for now, then in pairs], dtype=np.int64),
            np.array([now.waited_ns - then.waited_ns for now, then in pairs], dtype=np.int64),
            np.array([movable for _number, _tid, _times, movable in rows], dtype=np.bool_),
        )

    def _may_leave_its_node(self, pid: int) -> bool:
        """Whether a process has cpus on several nodes; else a policy would send its pages to where its
        threads cannot follow."""
        cpus, nodes = self.bindings.process_cpus(pid), self._cpus_by_node
        return len(nodes) < 2 or sum(not cpus.isdisjoint(node) for node in nodes) > 1

    def _machine_for(self, pids: Ints) -> MachineView:
        """The machine without the cpus on which none of the processes may run."""
        open_cpus = frozenset[int]().union(*map(self.bindings.process_cpus, pids.tolist()))
        closed = frozenset(self._row_of_cpu) - open_cpus
        if len(closed) == len(self._row_of_cpu):  # they have ended
            return self.machine
        if closed != self._narrowed.closed:
            self._narrowed = replace(self.machine, closed=closed)
        return self._narrowed

    def _pages(self, table: SampleTable, pids: Ints) -> tuple[Pages, Ints]:
        """The touched pages with their nodes, and the page row of each sample."""
        process = np.searchsorted(pids, table.pid)
        keys, page_row = groups_of(page_keys(process, table.page))
        where, number = split_keys(keys)
        node = np.full(len(keys), -1, dtype=np.int64)
        rows = np.arange(len(keys))
        if len(rows) > _MOST_PAGES:  # those with most accesses
            rows = np.sort(np.argsort(-np.bincount(page_row, table.weight))[:_MOST_PAGES])
        for index, pid in enumerate(pids.tolist()):
            mine = rows[where[rows] == index]
            with suppress(OSError):  # it may have ended
                node[mine] = self._node_rows(self._system.page_nodes(pid, number[mine]))
        node = self._with_remembered(page_keys(pids[where], number), node)
        return Pages(where, number, node, kernel.PAGE_BYTES), page_row

    def _with_remembered(self, keys: Ints, node: Ints) -> Ints:
        """(M,) the pages' nodes, those of the observation before where the kernel does not tell.

        Some kernels (6.1 to 6.5) say of pages that await a hint fault that they are not there; nobody has
        touched them since they began to, and so nothing has moved them. keys: (M,) ascending, by pid.
        """
        before, page_nodes = self._page_nodes_before
        node = np.where(node < 0, _nodes_at(page_nodes, find_rows(before, keys)), node)
        self._page_nodes_before = keys, node
        return node

    def _node_rows(self, node_ids: Ints) -> Ints:
        rows = np.full(int(max(self.machine.node_ids.max(), node_ids.max(initial=0))) + 2, -1, dtype=np.int64)
        rows[self.machine.node_ids] = np.arange(self.machine.nodes)
        return rows[node_ids]

    def _touches(self, table: SampleTable, page_row: Ints, thread_row: Ints, now: float) -> Touches:
        nodes, count = self.machine.nodes, max(1, int(thread_row.max(initial=0)) + 1)
        keys, group = groups_of((page_row * count + thread_row) * nodes + table.node)
        weight = table.weight * age_weight(now - table.time_s)
        size = len(keys)
        timed = ~np.isnan(table.latency)
        sums = np.bincount(group[timed], (weight * np.where(timed, table.latency, 0.0))[timed], size)
        timed_weight = np.bincount(group[timed], weight[timed], size)
        last = np.full(size, -np.inf)
        np.maximum.at(last, group, table.time_s)
        return Touches(
            page=keys // nodes // count,
            thread=keys // nodes % count,
            node=keys % nodes,
            accesses=np.bincount(group, weight, size).astype(np.float64),
            writes=np.bincount(group[table.is_write], weight[table.is_write], size).astype(np.float64),
            latency_ns=np.divide(sums, timed_weight, out=np.full(size, np.nan), where=timed_weight > 0),
            last_s=last,
        )

    def _by_node(self, thread: Ints, node: Ints, weight: Floats, count: int) -> Floats:
        """(T, K) sums of weights by rows of threads and nodes, where both are known."""
        known, nodes = (thread >= 0) & (node >= 0), self.machine.nodes
        cells = thread[known] * nodes + node[known]
        sums = np.bincount(cells, weight[known], count * nodes).reshape(count, nodes)
        return sums.astype(np.float64, copy=False)

    def _threads(
        self, readings: _ThreadReadings, touches: Touches, accesses: Floats, interval: float, counts: Counts
    ) -> Threads:
        """The threads' rows."""
        count = len(readings.tids)
        return Threads(
            tid=readings.tids,
            process=readings.process,
            leader=readings.leader,
            cpu=readings.cpu,
            node=self.machine.cpu_node[readings.cpu],
            movable=readings.movable,
            busy=np.clip((readings.ran_ns + readings.waited_ns) / (interval * 1e9), 0.0, 1.0),
            instructions=counts.instructions,
            operations=counts.instructions if counts.counted else np.zeros(count),
            llc_misses=counts.misses,
            accesses=accesses,
            latency_ns=_mean_latency(touches, count),
        )

    def _processes(self, pids: Ints) -> Processes:
        pages = np.zeros((len(pids), self.machine.nodes))
        if self.resident:
            ids = self.machine.node_ids.tolist()
            for row, pid in enumerate(pids.tolist()):
                pages[row] = self._system.resident_pages(pid, ids, kernel.PAGE_BYTES)
        return Processes(pids, pages)

    def _page_nodes(self, current: SampleTable, pages: Pages, pids: Ints) -> Ints:
        """(n,) node rows of the fresh samples' pages."""
        wanted = page_keys(np.searchsorted(pids, current.pid), current.page)
        return _nodes_at(pages.node, find_rows(page_keys(pages.process, pages.number), wanted))


def _nodes_at(node: Ints, rows: Ints) -> Ints:
    """The nodes in these rows, -1 where a row is."""
    return np.append(node, -1)[rows]


def _mean_latency(touches: Touches, threads: int) -> Floats:
    timed = ~np.isnan(touches.latency_ns)
    weight = np.bincount(touches.thread[timed], touches.accesses[timed], threads)
    total = np.bincount(touches.thread[timed], (touches.accesses * touches.latency_ns)[timed], threads)
    mean: Floats = np.divide(total, weight, out=np.full(threads, np.nan), where=weight > 0)
    return mean
