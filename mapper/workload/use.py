"""How much a program's threads use: accesses, lines of each other, and when they run at the same time."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from ..threads.problem import Floats, Nodes
from .activity import Activity, joined
from .cache_use import CacheUse, cache_use, merged_caches
from .part_counters import KEPT, TAKEN, WITHIN, all_transfers, counters_of

if TYPE_CHECKING:
    from numaplan.analyzer import Analysis, TraceSamples
    from numaplan.profiler import Trace

MAYBE_OTHERS, OWN_CACHES = ("unknown", "lfb", "l3", "remote_cache"), {"unknown", "l1", "l2"}  # levels
FEW = 64  # lines taken, below which a thread does not tell how many of them a cache has
SEEN = 0.01  # of all lines taken, those among threads on one cache from which the others' are told, too


class ThreadUse(msgspec.Struct, frozen=True):
    """accesses: (N,) of each thread; lines: (N, N) that two threads take from each other, half of them each,
    where they have no cache in common; together: (N, N) how far the other (column) runs while the thread
    does, 0..1; exact: whether all of them were counted, and not estimated from samples; beyond: (N,) of the
    accesses, those that the thread's first cache did not answer (None: not known, or loads count what
    reaches memory anyway); caches: what they miss of other caches, if known; kept: (N, N) of the lines, those
    that two threads which share their last cache find there, as they had left their writer's own (None: none
    are known to be); chance: (N, N) how far the lines may be others in the next run, one standard deviation
    (None: they are taken to be the same); activity: when threads run, from which `together` is (None: not
    known); sleeps: (N,) how often each waited for data or the time until it was woken (None: not known)."""

    accesses: Floats
    lines: Floats
    together: Floats
    exact: bool = False
    beyond: Floats | None = None
    caches: CacheUse | None = None
    kept: Floats | None = None
    chance: Floats | None = None
    activity: Activity | None = None
    sleeps: Floats | None = None

    def by_lane(self, lane: Nodes, count: int) -> "ThreadUse":
        """The same of lanes: threads one after another."""
        lines = among(self.lines, lane, count)
        together = among(self.accesses[:, None] * self.together, lane, count)
        accesses = np.bincount(lane, self.accesses, count).astype(np.float64)
        np.fill_diagonal(lines, 0.0)
        together /= np.maximum(accesses, 1e-300)[:, None]
        beyond = None if self.beyond is None else np.bincount(lane, self.beyond, count).astype(np.float64)
        caches = self.caches and self.caches.by_lane(self.accesses, lane, count)
        kept = None if self.kept is None else among(self.kept, lane, count)
        if kept is not None:
            np.fill_diagonal(kept, 0.0)
        chance = None if self.chance is None else np.sqrt(among(self.chance**2, lane, count))
        return ThreadUse(
            accesses,
            lines,
            np.minimum(together, 1.0),
            self.exact,
            beyond,
            caches,
            kept,
            chance,
            self.activity and self.activity.by_lane(lane, count),
            None if self.sleeps is None else np.bincount(lane, self.sleeps, count).astype(np.float64),
        )

    @property
    def near(self) -> Floats:
        """(N, N) of the lines, those that two threads which share their last cache still take."""
        return self.lines if self.kept is None else np.maximum(self.lines - self.kept, 0.0)

    @property
    def near_share(self) -> Floats:
        """(N, N) share 0..1 that `near` is of the lines; 1 where there are none."""
        answer: Floats = np.divide(self.near, self.lines, out=np.ones_like(self.lines), where=self.lines > 0)
        return answer

    def with_lines(self, lines: Floats) -> "ThreadUse":
        """The same with other lines, of which as large a share is kept."""
        kept = None if self.kept is None else lines * (1 - self.near_share)
        return msgspec.structs.replace(self, lines=lines, kept=kept)

    def dealt(self, deal: Callable[[Floats], Floats]) -> "ThreadUse":
        """The same with lines dealt to pairs in another way, and what is kept of them alike."""
        kept = None if self.kept is None else deal(self.kept)
        return msgspec.structs.replace(self, lines=deal(self.lines), kept=kept)

    @property
    def working(self) -> Floats | None:
        """(N,) share of its accesses that leaves a thread's first cache; little where it waits by polling."""
        if self.beyond is None:
            return None
        answer: Floats = np.minimum(self.beyond / np.maximum(self.accesses, 1.0), 1.0)
        return answer


def among(matrix: Floats, lane: Nodes, count: int) -> Floats:
    """(L, L) the sums of a matrix of threads over lanes."""
    answer = np.zeros((count, count))
    np.add.at(answer, (lane[:, None], lane[None, :]), matrix)
    return answer


def merged_use(
    uses: Sequence[tuple[Sequence[tuple[str, str]], ThreadUse]],
    threads: Sequence[tuple[str, str]],
    merged: "Analysis",
) -> ThreadUse:
    """The mean of several runs, or ranks side by side; uses: the threads of each, and their use.

    threads: (process, path) of all, as in `merged`, their analysis as one.
    """
    index = {key: number for number, key in enumerate(threads)}
    made, seen, moved, slept, beyond = (np.zeros(len(index)) for _ in range(5))
    together, known, lines, kept, chance = (np.zeros((len(index), len(index))) for _ in range(5))
    for keys, use in uses:
        rows = _rows(keys, index)
        made[rows] += use.accesses
        moved[rows] += use.lines.sum(axis=1)
        seen[rows] += 1
        if use.sleeps is not None:
            slept[rows] += use.sleeps
        if use.beyond is not None:
            beyond[rows] += use.beyond
        both = np.ix_(rows, rows)
        known[both] += 1
        together[both] += use.together
        lines[both] += use.lines
        if use.kept is not None:
            kept[both] += use.kept
        if use.chance is not None:
            chance[both] += use.chance**2
    seen = np.maximum(seen, 1)
    # Of ranks recorded apart it is not known: they are taken to run at the same time.
    together = np.where(known > 0, together / np.maximum(known, 1), 1.0)
    np.fill_diagonal(together, 0.0)
    total = float(merged.comm.sum())
    by_chance = any(use.chance is not None for _, use in uses)
    scale = float((moved / seen).sum()) / total if total > 0 else 0.0
    return ThreadUse(
        accesses=made / seen,
        lines=lines,
        kept=kept,
        chance=np.sqrt(chance) / np.maximum(known, 1) if by_chance else None,
        together=together,
        activity=joined([(_rows(keys, index), use.activity) for keys, use in uses], len(index)),
        exact=all(use.exact for _, use in uses),
        beyond=beyond / seen if all(use.beyond is not None for _, use in uses) else None,
        caches=merged_caches([(_rows(keys, index), use.caches) for keys, use in uses], len(index)),
        sleeps=slept / seen if all(use.sleeps is not None for _, use in uses) else None,
    ).with_lines(lines / np.maximum(known, 1) if by_chance else merged.comm * scale)


def _rows(keys: Sequence[tuple[str, str]], index: Mapping[tuple[str, str], int]) -> Nodes:
    return np.array([index[key] for key in keys], np.int64)


def thread_use(whole: "Trace", trace: "Trace", samples: "TraceSamples", analysis: "Analysis") -> ThreadUse:
    """Of a trace, or a part of the whole; what counters know is exact, the rest is what samples stand for."""
    from numaplan.analyzer import activity, living_together, looked_at, together

    totals = counters_of(whole, trace)
    period = max(analysis.period, 1)
    seen = np.array([thread.samples for thread in analysis.threads], np.float64)
    counts = [np.maximum(totals[name], 0.0) for name in ("loads", "stores") if name in totals]
    made = sum(counts, np.zeros(len(seen))) if counts else seen * period
    known = counts and "l1_misses" in totals and analysis.load_source != "dram"
    none = np.zeros(len(seen))
    taken, within, kept = (np.maximum(totals.get(name, none), 0.0) for name in (TAKEN, WITHIN, KEPT))
    comm = all_transfers(trace, samples, analysis)
    total = float(comm.sum())
    moved = float(taken.sum()) if TAKEN in totals else min(total / 2, _from_others(trace)) * period
    # What a shared cache answered would be taken from another one if the two had none in common.
    lines = comm * ((moved + float(kept.sum())) / total if total > 0 else 0.0)
    lives = [(row.start_ns, row.end_ns) for row in trace.thread_rows]
    looks = looked_at(trace)
    ran = Activity(*(looks or activity(samples, lives)), looked=looks is not None)
    return ThreadUse(
        accesses=made,
        lines=lines,
        kept=lines * _kept_share(trace, kept, within, taken) if kept.any() else None,
        together=together(ran.lasts, ran.running) * living_together(lives),
        activity=ran,
        exact=TAKEN in totals,
        beyond=np.maximum(totals["l1_misses"], 0.0) if known else None,
        caches=cache_use(whole, trace),
        sleeps=np.maximum(totals["sleeps"], 0.0) if "sleeps" in totals else None,
    )


def _from_others(trace: "Trace") -> float:
    """Samples whose line may have come out of another core's cache, by where it was found, or as that is not
    known: what memory or the thread's first caches answered did not, whoever wrote it long before. No bound
    where no sample tells of more than the first caches."""
    found = dict(trace.rows("SELECT level, count(*) FROM samples GROUP BY ALL"))
    if not found.keys() - OWN_CACHES:
        return math.inf
    return float(sum(found.get(level, 0) for level in MAYBE_OTHERS))


def _kept_share(trace: "Trace", kept: Floats, within: Floats, taken: Floats) -> Floats:
    """(N, N) the share 0..1 of the lines of two threads that a cache which both share has.

    kept: (N,) lines of others that each thread found in its cache; taken: that it took from another thread;
    within: of these, from one on its cache. A pair's are asked for by who reads them, and again by who writes
    them once more: what a thread asks for beyond what it reads. A thread that asked for few on its cache, as
    it was alone there or exchanged them with others, is taken to have as many kept as all have.
    """
    near, asked = kept + within, kept + taken
    overall = kept.sum() / near.sum() if near.sum() >= SEEN * asked.sum() else 0.0
    share = np.full(len(kept), overall)
    np.divide(kept, near, out=share, where=near >= FEW)
    moved = np.zeros((len(kept), len(kept)))
    found = trace.arrays(
        "SELECT writer, reader, sum(events) AS events FROM transfers "
        f"WHERE least(writer, reader) >= 0 AND greatest(writer, reader) < {len(kept)} GROUP BY ALL"
    )
    moved[found["writer"].astype(np.int64), found["reader"].astype(np.int64)] = found["events"]
    read, given = moved.sum(axis=0), moved.sum(axis=1)
    again = np.divide(np.maximum(asked - read, 0.0), given, out=np.zeros(len(kept)), where=given > 0)
    by_writer = moved * again[:, None]
    part, whole = moved * share + by_writer * share[:, None], moved + by_writer
    answer: Floats = np.add.outer(share, share) / 2
    np.divide(part + part.T, whole + whole.T, out=answer, where=whole + whole.T > 0)
    return answer
