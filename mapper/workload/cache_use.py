"""What threads would miss of last-level caches of other sizes, and with whom they shared one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from ..threads.problem import Floats, Nodes

if TYPE_CHECKING:
    from numaplan.profiler import Trace


class CacheUse(msgspec.Struct, frozen=True):
    """sizes: bytes of last-level caches, ascending; missed: (N, sizes) accesses of threads that miss each;
    own: bytes of the one that decided what reaches memory; domain: (N,) number of the cache that each thread
    had when it was recorded, with the threads that have the same."""

    sizes: tuple[int, ...]
    missed: Floats
    own: int
    domain: Nodes

    def by_lane(self, accesses: Floats, lane: Nodes, count: int) -> "CacheUse":
        """The same of lanes, each with the cache of its busiest thread."""
        missed, domain = np.zeros((count, len(self.sizes))), np.zeros(count, np.int64)
        np.add.at(missed, lane, self.missed)
        order = np.argsort(accesses, kind="stable")
        domain[lane[order]] = self.domain[order]
        return CacheUse(self.sizes, missed, self.own, domain)


def cache_use(whole: "Trace", trace: "Trace") -> CacheUse | None:
    """Of a trace, or a part of the whole, that knows caches of several sizes, and who shared one: under
    emulation, which models each process for itself, threads of one process only."""
    from numaplan.analyzer import cache_sizes
    from numaplan.machine import domains_of

    found = cache_sizes(trace, whole)
    if found is None:
        return None
    cpus = "SELECT thread, min(cpu) FROM samples WHERE thread >= 0 AND cpu >= 0 GROUP BY ALL"
    cpu_of, node_of = {int(thread): int(cpu) for thread, cpu in trace.rows(cpus)}, trace.machine.node_of_cpu
    rows = trace.thread_rows
    known = [row for row in rows if cpu_of.get(row.thread, -1) in node_of]
    seats = [(cpu_of[row.thread], node_of[cpu_of[row.thread]]) for row in known]
    modelled = [row.process if trace.meta.get("backend") == "emulate" else "" for row in known]
    caches = list(zip(modelled, domains_of(trace.machine, seats), strict=True))
    number = {cache: count for count, cache in enumerate(sorted(set(caches)))}
    domain = {row.thread: number[cache] for row, cache in zip(known, caches, strict=True)}
    missed = np.hstack([found.missed, found.missed_larger]) if found.larger else found.missed
    numbers = [row.thread for row in rows]
    return CacheUse(
        sizes=(*found.sizes, *found.larger),
        missed=missed[numbers],
        own=found.sizes[found.levels],
        domain=np.array([domain.get(thread, -1) for thread in numbers], np.int64),
    )


def merged_caches(uses: Sequence[tuple[Nodes, CacheUse | None]], count: int) -> CacheUse | None:
    """The mean of several runs, or ranks side by side, each of which has caches of its own; uses: which of
    all threads are those of each, and what these miss. None where one does not know, or knows other sizes."""
    known = [(rows, use) for rows, use in uses if use is not None]
    if len(known) < len(uses) or len({(use.sizes, use.own) for _, use in known}) != 1:
        return None
    first = known[0][1]
    missed, seen = np.zeros((count, len(first.sizes))), np.zeros(count)
    domain, caches = np.full(count, -1, np.int64), 0
    for rows, use in known:
        missed[rows] += use.missed
        new = (seen[rows] == 0) & (use.domain >= 0)
        domain[rows[new]] = caches + use.domain[new]
        seen[rows] += 1
        caches += 1 + int(use.domain.max(initial=-1))
    return CacheUse(first.sizes, missed / np.maximum(seen, 1)[:, None], first.own, domain)
