"""The samples of the last intervals, as the arrays that an observation is made of."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from numaplan.launcher.online.kernel import PAGE_BYTES
from numaplan.launcher.online.observation import Flags, Floats, Ints
from numaplan.profiler.live_sampling import LiveSamples

_MOST = 1 << 20  # samples kept


class Table(NamedTuple):
    """Samples as equally long arrays: seconds of CLOCK_MONOTONIC, ids, page number, row of the node that the
    thread was on, accesses that it stands for, latency (NaN unknown).
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


def table_of(samples: LiveSamples, node_of_cpu: Ints, pids: Ints) -> Table:
    """The samples of these processes (ascending) on known cpus.

    node_of_cpu: node row by cpu id, -1 unknown, the last entry for ids beyond.
    """
    cpus = np.where((samples.cpu >= 0) & (samples.cpu < len(node_of_cpu)), samples.cpu, len(node_of_cpu) - 1)
    node = node_of_cpu[cpus]
    kept = (node >= 0) & np.isin(samples.pid, pids)
    latency = np.where(samples.latency > 0, samples.latency.astype(np.float64), np.nan)
    return Table(
        time_s=samples.time_ns / 1e9,
        pid=samples.pid,
        tid=samples.tid,
        page=(samples.addr // np.uint64(PAGE_BYTES)).astype(np.int64),
        node=node,
        weight=samples.count,
        is_write=samples.is_write,
        missed=samples.missed,
        latency=latency,
    ).where(kept)


@dataclass
class Window:
    """Keeps the samples of the last `seconds`."""

    seconds: float
    table: Table | None = None

    def add(self, fresh: Table, now: float) -> Table:
        """Take in new samples and return all that are not too old."""
        if self.table is None:
            merged = fresh
        else:
            merged = Table._make(np.concatenate(pair) for pair in zip(self.table, fresh, strict=True))
        young = merged.time_s > now - self.seconds
        if len(young) > _MOST:
            young[: len(young) - _MOST] = False
        self.table = merged.where(young)
        return self.table
