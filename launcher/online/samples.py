"""The samples of the last intervals, as the arrays that an observation is made of."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from numaplan.launcher.online.kernel import PAGE_BYTES
from numaplan.launcher.online.observation import Flags, Floats, Ints
from numaplan.launcher.online.policies.page_sets import NUMBER_END
from numaplan.profiler.live_samples import LiveSamples

_MOST = 1 << 20  # samples kept
_MOST_ACCESSES = 1e5
_INTERVALS = 2.5


class Table(NamedTuple):
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

    def where(self, rows: Flags) -> "Table":
        """The chosen ones."""
        return Table._make(column[rows] for column in self)


def table_of(samples: LiveSamples, node_of_cpu: Ints, pids: Ints, timed: bool = True) -> Table:
    """The samples of these processes (ascending) on known cpus, but for addresses that no memory has.

    node_of_cpu: node row by cpu id, -1 unknown, the last entry for ids beyond; timed: do latencies count.
    """
    cpus = np.where((samples.cpu >= 0) & (samples.cpu < len(node_of_cpu)), samples.cpu, len(node_of_cpu) - 1)
    node = node_of_cpu[cpus]
    page = (samples.addr // np.uint64(PAGE_BYTES)).astype(np.int64)
    kept = (node >= 0) & np.isin(samples.pid, pids) & (page < NUMBER_END)
    return Table(
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


def weighed_by_time(table: Table, waited_ns: float, latency_ns: float) -> Table:
    """Samples that say nothing of how many accesses they stand for: let all wait so long together.

    A sample stands for 100,000 accesses at most: of a few samples no more can be known.
    """
    if not len(table.tid):
        return table
    each = min(_MOST_ACCESSES, waited_ns / latency_ns / len(table.tid))
    return table._replace(weight=np.full(len(table.tid), each))


@dataclass
class Window:
    """Keeps the samples of the last `seconds` or, if those were longer, intervals; 0: only the new ones."""

    seconds: float
    table: Table | None = None

    def add(self, fresh: Table, now: float, interval: float = 0.0) -> Table:
        """Take in new samples and return all that are not too old; interval: seconds since the last call."""
        merged = fresh
        if self.table is not None and self.seconds:
            merged = Table._make(np.concatenate(pair) for pair in zip(self.table, fresh, strict=True))
        young = (merged.time_s > now - max(self.seconds, _INTERVALS * interval)) | (not self.seconds)
        if len(young) > _MOST:
            young[: len(young) - _MOST] = False
        self.table = merged.where(young)
        return self.table
