"""What a policy sees of one interval: the machine, the threads, the pages that were touched, as plain arrays.

Nodes and cpus are *rows* here (0..K-1, 0..C-1), threads and processes too; the operating system's ids stand
in `node_ids`, `cpu_ids`, `Threads.tid` and `Processes.pid` and appear again only in actions. Whatever a
machine cannot measure is zero (counts) or NaN (latencies), never made up; `latency_or_distance` fills in
where a policy can do with an estimate.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from numaplan.machine import Machine, bandwidths, latencies

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

CROWDED = 0.5  # busy threads of a node more than cpus, from which on it has too many
RUNNING = 0.05  # of an interval; who ran or wanted to run for more needs a cpu


@dataclass(frozen=True)
class MachineView:
    """The machine in rows.

    node_ids: (K,) operating-system ids; cpu_ids: (C,); cpu_node: (C,) row of each cpu's node; distances:
    (K, K) as firmware says, 10 is local; latency_ns: (K, K) without load, from cpus of the row to memory of
    the column; bandwidth_mb_s: (K, K) likewise; has_memory: (K,) whether pages can be put there (all where no
    size is known); closed: ids of cpus on which no thread that is seen may run (a cpuset, taskset).
    """

    node_ids: Ints
    cpu_ids: Ints
    cpu_node: Ints
    distances: Floats
    latency_ns: Floats
    bandwidth_mb_s: Floats
    has_memory: Flags
    closed: frozenset[int] = frozenset()

    @staticmethod
    def of(machine: Machine) -> "MachineView":
        """The view of a machine; latencies and bandwidths are those that costs are counted with."""
        cpus = np.array(machine.cpus, dtype=np.int64)
        row = {node: index for index, node in enumerate(machine.node_ids)}
        distances = machine.distance_matrix
        has_memory = np.array([node.memory_bytes > 0 for node in machine.nodes])
        return MachineView(
            node_ids=np.array(machine.node_ids, dtype=np.int64),
            cpu_ids=cpus,
            cpu_node=np.array([row[machine.node_of_cpu[cpu]] for cpu in machine.cpus], dtype=np.int64),
            distances=distances,
            latency_ns=latencies(machine),
            bandwidth_mb_s=bandwidths(machine),
            has_memory=has_memory if has_memory.any() else ~has_memory,
        )

    @property
    def nodes(self) -> int:
        """K."""
        return len(self.node_ids)

    @cached_property
    def open_cpus(self) -> Flags:
        """(C,) whether threads may run there."""
        return ~np.isin(self.cpu_ids, [*self.closed])

    @cached_property
    def seats(self) -> Ints:
        """(K,) how many cpus each node has for the threads."""
        return np.bincount(self.cpu_node[self.open_cpus], minlength=self.nodes)

    @cached_property
    def cpu_nodes(self) -> Ints:
        """Rows of the nodes that have such cpus, ascending."""
        return np.flatnonzero(self.seats)

    @cached_property
    def memory_for(self) -> Ints:
        """(K,) the row of the node where each one's pages are best: its own, or the nearest with memory."""
        having = np.flatnonzero(self.has_memory)
        nearest = having[np.argmin(self.latency_ns[:, having], axis=1)]
        return np.where(self.has_memory, np.arange(self.nodes), nearest)


@dataclass(frozen=True)
class Processes:
    """(P,) processes: pid, and `pages` (P, K): resident pages of each on every node (zeros where unknown)."""

    pid: Ints
    pages: Floats

    @property
    def count(self) -> int:
        """P."""
        return len(self.pid)


@dataclass(frozen=True)
class Threads:
    """(T,) threads.

    process: row of the process; leader: is it the process's first thread; cpu, node: rows of where it ran
    last; movable: may it be moved (not bound by others, not ended); busy: 0..1, the share of the interval
    in which it ran or wanted to run; instructions, operations, llc_misses: counts in the interval
    (operations: floating point where counted, else instructions); accesses: (T, K) memory accesses to each
    node, scaled by the sampling period; latency_ns: (T,) their mean latency, NaN where not measured.
    """

    tid: Ints
    process: Ints
    leader: Flags
    cpu: Ints
    node: Ints
    movable: Flags
    busy: Floats
    instructions: Floats
    operations: Floats
    llc_misses: Floats
    accesses: Floats
    latency_ns: Floats

    @property
    def count(self) -> int:
        """T."""
        return len(self.tid)

    @property
    def running(self) -> Flags:
        """(T,) whether it needs a cpu."""
        return self.busy > RUNNING


@dataclass(frozen=True)
class Pages:
    """(M,) pages with a sample, and all others whose place is known; sorted by (process, number).

    process: row; number: virtual address / bytes_per_page; node: row of the memory it is in, -1 unknown.
    """

    process: Ints
    number: Ints
    node: Ints
    bytes_per_page: int = 4096

    @property
    def count(self) -> int:
        """M."""
        return len(self.number)


@dataclass(frozen=True)
class Touches:
    """(Z,) who touched what: one row a page, thread and node that the thread was on.

    page, thread, node: rows; accesses, writes: counts, each sample weighted by its age (`age_weight`);
    latency_ns: the weighted mean, NaN where not measured; last_s: time of the last sample, on the
    observation's clock.
    """

    page: Ints
    thread: Ints
    node: Ints
    accesses: Floats
    writes: Floats
    latency_ns: Floats
    last_s: Floats

    @property
    def count(self) -> int:
        """Z."""
        return len(self.page)


@dataclass(frozen=True)
class Observation:
    """One interval, ending at `time_s` on the loop's clock and `interval_s` long."""

    time_s: float
    interval_s: float
    machine: MachineView
    processes: Processes
    threads: Threads
    pages: Pages
    touches: Touches

    @cached_property
    def latency_or_distance(self) -> Floats:
        """(Z,) the touches' latencies; the machine's unloaded ones where none was measured, NaN without a
        place.
        """
        touches, place = self.touches, self.pages.node[self.touches.page]
        known = np.where(place >= 0, self.machine.latency_ns[touches.node, place], np.nan)
        return np.where(np.isnan(touches.latency_ns), known, touches.latency_ns)

    @cached_property
    def page_accesses(self) -> Floats:
        """(M, K) accesses to each page from each node (the papers' A-hat)."""
        touches, shape = self.touches, (self.pages.count, self.machine.nodes)
        return sums_by_cell(touches.page, touches.node, touches.accesses, shape)


def sums_by_cell(row: Ints, column: Ints, weight: Floats, shape: tuple[int, int]) -> Floats:
    """(rows, columns) the weights (n,) added up by row and column."""
    sums = np.bincount(row * shape[1] + column, weight, minlength=shape[0] * shape[1])
    return sums.reshape(shape).astype(np.float64, copy=False)


def age_weight(seconds_left: Floats) -> Floats:
    """(n,) weight of samples taken so long before the policy runs: 1 / (1 + t) ([IMAR], Eq. 7)."""
    return 1.0 / (1.0 + np.maximum(seconds_left, 0.0))


def no_pages(bytes_per_page: int = 4096) -> tuple[Pages, Touches]:
    """Empty tables, for an interval without samples."""
    none, nothing = np.empty(0, dtype=np.int64), np.empty(0)
    return Pages(none, none, none, bytes_per_page), Touches(
        none, none, none, nothing, nothing, nothing, nothing
    )
