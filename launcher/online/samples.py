"""The samples of an interval as the arrays that its observation is made of, and what they say about threads:
instructions and last-level misses, counted, or estimated where they are not."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from numaplan.mapper import CROWDED, NUMBER_END, Flags, Floats, Ints, Observation, groups_of
from numaplan.profiler import LiveSamples

from ..process.page_moves import PAGE_BYTES

_MOST = 1 << 20  # samples kept
_MOST_ACCESSES = 1e5
_INTERVALS = 2.5
LINES_PER_PAGE = 64.0
INSTRUCTIONS_PER_NS = 1.0


class SampleTable(NamedTuple):
    """Samples as equally long arrays: seconds of CLOCK_MONOTONIC, ids, page number, row of the node that the
    thread was on, accesses that it stands for, latency in ns (NaN unknown).
    """

    time_s: Floats
    pid: Ints
    tid: Ints
    page: Ints
    node: Ints
    weight: Floats
    is_write: Flags
    missed: Flags
    latency: Floats

    def where(self, rows: Flags) -> "SampleTable":
        """The chosen ones."""
        return SampleTable._make(column[rows] for column in self)


class Interval(NamedTuple):
    """An observation, the samples that are new in it, the node row of each one's page (-1: not known), the
    share of their time that the threads waited for a cpu, and how many events were lost.
    """

    observation: Observation
    samples: SampleTable
    page_nodes: Ints
    waiting: float
    lost: int

    @property
    def avoidable(self) -> float:
        """The share of their time that threads waited for a cpu because of where they are: none where no node
        has more of them than cpus while another has room."""
        machine, threads = self.observation.machine, self.observation.threads
        free = machine.seats - np.bincount(threads.node, threads.busy, machine.nodes)
        return self.waiting if min(-free[free < 0].sum(), free[free > 0].sum()) > CROWDED else 0.0

    def share_of(self, tids: Ints) -> float:
        """The share of the interval's accesses that these threads made; 1 when there are none."""
        total = float(self.samples.weight.sum())
        return float(self.samples.weight[np.isin(self.samples.tid, tids)].sum()) / total if total > 0 else 1.0


def sample_table(samples: LiveSamples, node_of_cpu: Ints, pids: Ints, timed: bool) -> SampleTable:
    """The samples of these processes (ascending) on known cpus, but for addresses that no memory has.

    node_of_cpu: node row by cpu id, -1 unknown, the last entry for ids beyond; timed: do latencies count.
    """
    cpus = np.where((samples.cpu >= 0) & (samples.cpu < len(node_of_cpu)), samples.cpu, len(node_of_cpu) - 1)
    node = node_of_cpu[cpus]
    page = (samples.addr // np.uint64(PAGE_BYTES)).astype(np.int64)
    kept = (node >= 0) & np.isin(samples.pid, pids) & (page < NUMBER_END)
    return SampleTable(
        time_s=samples.time_ns / 1e9,
        pid=samples.pid,
        tid=samples.tid,
        page=page,
        node=node,
        weight=samples.count,
        is_write=samples.is_write,
        missed=samples.missed,
        latency=samples.latency_ns if timed else np.full(len(node), np.nan),
    ).where(kept)


def weighed_by_time(table: SampleTable, waited_ns: float, latency_ns: float) -> SampleTable:
    """Samples with unknown weights: weigh them so that all together wait this long.

    A sample represents at most 100,000 accesses: a few samples cannot show more.
    """
    if not len(table.tid):
        return table
    each = min(_MOST_ACCESSES, waited_ns / latency_ns / len(table.tid))
    return table._replace(weight=np.full(len(table.tid), each))


@dataclass
class Window:
    """Keeps the samples of the last `seconds` or, if those were longer, intervals; 0: only the new ones."""

    seconds: float
    table: SampleTable | None = None

    def add(self, new: SampleTable, now: float, interval: float = 0.0) -> SampleTable:
        """Take in new samples and return all that are not too old; interval: seconds since the last call."""
        merged = new
        if self.table is not None and self.seconds:
            merged = SampleTable._make(np.concatenate(pair) for pair in zip(self.table, new, strict=True))
        recent = (merged.time_s > now - max(self.seconds, _INTERVALS * interval)) | (not self.seconds)
        if len(recent) > _MOST:
            recent[: len(recent) - _MOST] = False
        self.table = merged.where(recent)
        return self.table


class Counts(NamedTuple):
    """(T,) each; zeros where neither counted nor estimated. counted: they are no estimates."""

    instructions: Floats
    misses: Floats
    counted: bool


def count_events(
    tids: Ints, samples: LiveSamples, current: SampleTable, ran_ns: Ints, estimate: bool
) -> Counts:
    """Of threads with these ids.

    estimate: where instructions are not counted, one for each ns that a thread ran; where samples do not tell
    of misses either, one for each cache line of each page that it was seen to touch.
    """
    rows = rows_of(tids, np.argsort(tids), current.tid)
    ours = current.missed & (rows >= 0)
    misses = np.bincount(rows[ours], current.weight[ours], len(tids)).astype(np.float64)
    if samples.instructions:
        counted = dict(samples.instructions)
        return Counts(np.array([counted.get(tid, 0.0) for tid in tids.tolist()]), misses, True)
    if not estimate:
        return Counts(np.zeros(len(tids)), np.zeros(len(tids)), False)
    if not ours.any():
        known, count = rows >= 0, max(1, len(tids))
        _, page = groups_of(current.page[known])
        pairs, _ = groups_of(page * count + rows[known])
        misses = np.bincount(pairs % count, minlength=len(tids)).astype(np.float64) * LINES_PER_PAGE
    return Counts(ran_ns.astype(np.float64) * INSTRUCTIONS_PER_NS, misses, False)


def rows_of(tids: Ints, order: Ints, wanted: Ints) -> Ints:
    """The row of each wanted tid, -1 where there is none; order: argsort of tids."""
    if not len(tids):
        return np.full(len(wanted), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(tids, wanted, sorter=order), len(tids) - 1)
    rows: Ints = np.where(tids[order[at]] == wanted, order[at], -1)
    return rows
