"""How much a program's threads use: accesses, lines of each other, and when they run at the same time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from ..threads.problem import Floats, Nodes

if TYPE_CHECKING:
    from numaplan.analyzer import Analysis
    from numaplan.profiler import Trace


STRETCHES = 64  # of the run: few enough that samples show who runs in each
RUNS = 0.1  # of the busiest thread's accesses, from which a thread counts among those that run


class ThreadUse(msgspec.Struct, frozen=True):
    """accesses: (N,) of each thread; lines: (N, N) that two threads take from each other, half of them each;
    together: (N, N) how far the other (column) runs while the thread does, 0..1; exact: whether all of them
    were counted, and not estimated from samples."""

    accesses: Floats
    lines: Floats
    together: Floats
    exact: bool = False

    def by_lane(self, lane: Nodes, count: int) -> "ThreadUse":
        """The same of lanes: threads one after another."""
        lines, together = np.zeros((count, count)), np.zeros((count, count))
        np.add.at(lines, (lane[:, None], lane[None, :]), self.lines)
        weight = self.accesses[:, None] * self.together
        np.add.at(together, (lane[:, None], lane[None, :]), weight)
        accesses = np.bincount(lane, self.accesses, count).astype(np.float64)
        np.fill_diagonal(lines, 0.0)
        together /= np.maximum(accesses, 1e-300)[:, None]
        return ThreadUse(accesses, lines, np.minimum(together, 1.0), self.exact)


def merged_use(
    uses: Sequence[tuple[Sequence[tuple[str, str]], ThreadUse]],
    threads: Sequence[tuple[str, str]],
    merged: "Analysis",
) -> ThreadUse:
    """The mean of several runs, or ranks side by side; uses: the threads of each, and their use.

    threads: (process, path) of all, as in `merged`, their analysis as one.
    """
    index = {key: number for number, key in enumerate(threads)}
    made, seen, moved = np.zeros(len(index)), np.zeros(len(index)), np.zeros(len(index))
    for keys, use in uses:
        rows = [index[key] for key in keys]
        made[rows] += use.accesses
        moved[rows] += use.lines.sum(axis=1)
        seen[rows] += 1
    seen = np.maximum(seen, 1)
    total = float(merged.comm.sum())
    return ThreadUse(
        accesses=made / seen,
        lines=merged.comm * (float((moved / seen).sum()) / total if total > 0 else 0.0),
        together=running_together(merged.timeline.per_thread),
        exact=all(use.exact for _, use in uses),
    )


def thread_use(trace: "Trace", analysis: "Analysis", *, counted: bool = True) -> ThreadUse:
    """Of a trace; what its counters know is exact, the rest is what samples stand for.

    counted: whether counters count: they are of whole recordings.
    """
    from numaplan.analyzer import counter_totals

    totals = counter_totals(trace) if counted else {}
    period = max(analysis.period, 1)
    samples = np.array([thread.samples for thread in analysis.threads], np.float64)
    counts = [np.maximum(totals[name], 0.0) for name in ("loads", "stores") if name in totals]
    made = sum(counts, np.zeros(len(samples))) if counts else samples * period
    total = float(analysis.comm.sum())
    moved = float(np.maximum(totals["coherence"], 0.0).sum()) if "coherence" in totals else total / 2 * period
    return ThreadUse(
        accesses=made,
        lines=analysis.comm * (moved / total if total > 0 else 0.0),
        together=running_together(analysis.timeline.per_thread),
        exact="coherence" in totals,
    )


def running_together(accesses: Floats) -> Floats:
    """(N, N) how much of the other's (column) time falls into the thread's, of its accesses (S, N) by slice.

    A thread that makes half as many accesses in a slice as those that run do in the mean ran for half of it.
    """
    edges = np.unique(np.linspace(0, len(accesses), STRETCHES + 1).astype(np.int64)[:-1])
    made = np.add.reduceat(accesses, edges, axis=0) if len(accesses) else accesses
    runs = made >= RUNS * made.max(axis=1, initial=0.0)[:, None]
    usual = (made * runs).sum(axis=1) / np.maximum(runs.sum(axis=1), 1)
    active = np.divide(made, usual[:, None], out=np.zeros_like(made), where=usual[:, None] > 0)
    active = np.minimum(active, 1.0)
    ran = active.sum(axis=0)
    answer: Floats = (active.T @ active) / np.where(ran > 0, ran, 1.0)[:, None]
    np.fill_diagonal(answer, 0.0)
    return answer
