"""What online policies decide by, from a trace: latency by node, 3DyRM figures, misses, exclusivity.

Sources: [IMAR], 4.1 and 4.2 (latency, Eq. 1, 2, 4, 5); [DINO], 3 (misses per thousand instructions and its
classes); [EXCL], Eq. 7. What a trace does not hold is -1, as everywhere in a trace.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from numaplan.common import UsageError
from numaplan.profiler import LEVEL_CODE, Trace

from .samples.cache_sizes import DRAM_LEVELS
from .samples.periods import event_weights, weighed_counts
from .samples.trace_samples import DRAM_EVENTS

CACHE_LINE = 64
UNKNOWN = -1.0
DEVIL, SUPER_DEVIL = 2.0, 100.0  # misses per thousand instructions
INSTRUCTIONS = ("instructions", "instructions:u", "inst_retired.any", "inst_retired.any:u")
MISSES = ("llc_misses_local", "llc_misses_remote")

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class NodeUse:
    """Threads on nodes: nodes (K,) ids; samples (N, K) while a thread ran on a node; timed (N, K) how many of
    them have a latency; latency (N, K) their mean in the recorder's unit (cycles), -1 where none has."""

    nodes: list[int]
    samples: NDArray[np.int64]
    timed: NDArray[np.int64]
    latency: Matrix

    @property
    def node_latency(self) -> Matrix:
        """(K,) mean latency of all threads on each node; -1 where none is known."""
        return _ratio((np.maximum(self.latency, 0) * self.timed).sum(axis=0), self.timed.sum(axis=0))

    @property
    def home(self) -> NDArray[np.int64]:
        """(N,) position in `nodes` of where each thread ran most; -1 without samples."""
        where = np.asarray(self.samples.argmax(axis=1) if len(self.nodes) else np.zeros(len(self.samples)))
        return np.where(self.samples.sum(axis=1) > 0, where, -1).astype(np.int64)


def node_use(trace: Trace) -> NodeUse:
    """Where the threads of a trace ran, and how long their accesses took there."""
    count = _threads(trace)
    rows = trace.rows(
        "SELECT thread, node, count(*), count(*) FILTER (latency >= 0), "
        "coalesce(avg(latency) FILTER (latency >= 0), -1) FROM samples "
        f"WHERE thread >= 0 AND thread < {count} AND node >= 0 GROUP BY thread, node"
    )
    nodes = sorted({int(row[1]) for row in rows})
    samples, timed = np.zeros((2, count, len(nodes)), np.int64)
    latency = np.full((count, len(nodes)), UNKNOWN)
    for thread, node, number, with_latency, mean in rows:
        place = int(thread), nodes.index(int(node))
        samples[place], timed[place], latency[place] = int(number), int(with_latency), float(mean)
    return NodeUse(nodes, samples, timed, latency)


def _threads(trace: Trace) -> int:
    return 1 + max((row.thread for row in trace.thread_rows), default=-1)


def counter_totals(trace: Trace) -> dict[str, Matrix]:
    """(N,) total of each event that was counted, by thread; -1 for threads without that counter."""
    count = _threads(trace)
    totals: dict[str, Matrix] = {}
    rows = trace.rows(
        f"SELECT event, thread, sum(value) FROM counters WHERE thread >= 0 AND thread < {count} GROUP BY ALL"
    )
    for event, thread, value in rows:
        totals.setdefault(str(event), np.full(count, UNKNOWN))[int(thread)] = float(value)
    return totals


def misses_per_kilo_instructions(trace: Trace) -> Matrix:
    """(N,) misses of the last cache per thousand instructions (DINO's input); -1 where not known.

    Misses are those counted or, where only sampled, samples times the period of their event; another node's
    cache counts as a miss of one's own.
    """
    instructions, misses = _instructions_and_misses(trace)
    return _ratio(misses * 1000, instructions)


def trace_roofline(trace: Trace) -> tuple[Matrix, Matrix, Matrix]:
    """`dynamic_roofline` of a trace's threads, with instructions as operations and the mean of latencies."""
    instructions, misses = _instructions_and_misses(trace)
    columns = trace.arrays(
        "SELECT t.process AS process, t.start_ns::DOUBLE AS start, t.end_ns::DOUBLE AS finish, "
        "coalesce(s.latency, -1)::DOUBLE AS latency FROM threads t LEFT JOIN (SELECT thread, "
        "avg(latency) AS latency FROM samples WHERE latency >= 0 GROUP BY thread) s USING (thread) "
        "ORDER BY t.thread"
    )
    whole = float(trace.meta.get("duration_ns") or 0)
    seconds = (np.where(columns["finish"] < 0, whole, columns["finish"]) - columns["start"]) / 1e9
    rate = np.divide(1.0, seconds, out=np.zeros_like(seconds), where=seconds > 0)
    process = np.unique(columns["process"], return_inverse=True)[1]
    return dynamic_roofline(instructions * rate, misses * rate, columns["latency"], process)


def _instructions_and_misses(trace: Trace) -> tuple[Matrix, Matrix]:
    """(N,) instructions, -1 where not counted; (N,) misses of the last cache where instructions are known."""
    totals = counter_totals(trace)
    count = _threads(trace)
    found = next((totals[name] for name in INSTRUCTIONS if name in totals), None)
    if found is None:
        return np.full(count, UNKNOWN), np.zeros(count)
    counted = [totals[name] for name in MISSES if name in totals]
    return found, np.sum(np.maximum(counted, 0), axis=0) if counted else _sampled_misses(trace, count)


def dino_classes(mpki: ArrayLike) -> list[str]:
    """`turtle`, `devil` or `super-devil` (below 2, up to 100, above 100 MPKI); `unknown` below 0."""
    names = []
    for value in np.asarray(mpki, np.float64).tolist():
        known = "super-devil" if value > SUPER_DEVIL else "devil" if value >= DEVIL else "turtle"
        names.append("unknown" if value < 0 else known)
    return names


def dynamic_roofline(
    operations: ArrayLike, accesses: ArrayLike, latency: ArrayLike, process: ArrayLike
) -> tuple[Matrix, Matrix, Matrix]:
    """3DyRM (intensity, performance, relative performance) of threads, each (N,); -1 where not known.

    operations: a thread's operations a second; accesses: lines it took from memory a second; latency: its
    mean; process: number of its process, over whose threads the mean performance is taken.
    Eq. 1: I = O / (A * 64); Eq. 4: P = O * I / L; Eq. 5: P / mean P of the process. Not known where an input
    is not positive. Raises UsageError for arrays of different length.
    """
    given = [np.asarray(values, np.float64) for values in (operations, accesses, latency)]
    group = np.asarray(process, np.int64)
    if len({values.shape for values in (*given, group)}) != 1 or group.ndim != 1:
        raise UsageError("3DyRM inputs differ in length", "give equally long flat arrays")
    work, lines, wait = given
    known = (work > 0) & (lines > 0) & (wait > 0)
    intensity = np.divide(work, lines * CACHE_LINE, out=np.full_like(work, UNKNOWN), where=known)
    performance = np.divide(work * intensity, wait, out=np.full_like(work, UNKNOWN), where=known)
    relative = np.full_like(work, UNKNOWN)
    for number in np.unique(group[known]).tolist():
        own = known & (group == number)
        relative[own] = performance[own] / performance[own].mean()
    return intensity, performance, relative


def exclusivity(threads_on_node: ArrayLike) -> Matrix:
    """(G,) Eq. 7: the greatest share of a group's threads that is on one node; -1 for a group without any.

    threads_on_node: (G, K) how many threads of each group are on each node.
    """
    counts = np.asarray(threads_on_node, np.float64)
    if counts.ndim != 2 or (counts < 0).any():
        raise UsageError(
            "threads on nodes are not a table of counts", "give groups by nodes, nothing negative"
        )
    return _ratio(counts.max(axis=1, initial=0), counts.sum(axis=1))


def process_exclusivity(trace: Trace) -> dict[str, float]:
    """Exclusivity of each process by where its threads ran most; -1 where no sample tells."""
    use = node_use(trace)
    names = [row.process for row in trace.thread_rows]
    order = list(dict.fromkeys(names))
    counts = np.zeros((len(order), max(1, len(use.nodes))))
    for name, home in zip(names, use.home.tolist(), strict=True):
        if home >= 0:
            counts[order.index(name), home] += 1
    return dict(zip(order, exclusivity(counts).tolist(), strict=True))


def _sampled_misses(trace: Trace, count: int) -> Matrix:
    codes = (DRAM_EVENTS, (*DRAM_LEVELS, LEVEL_CODE["remote_cache"]))
    events, levels = (", ".join(map(str, part)) for part in codes)
    misses = np.zeros(count)
    counted, _ = weighed_counts(trace)
    for thread, number in trace.rows(
        f"SELECT s.thread, {counted} FROM samples s WHERE s.thread >= 0 AND s.thread < {count} AND "
        f"(enum_code(s.event) IN ({events}) OR enum_code(s.level) IN ({levels})) GROUP BY s.thread"
    ):
        misses[int(thread)] = float(number)
    present = [int(row[0]) for row in trace.rows("SELECT DISTINCT enum_code(event) FROM samples")]
    return misses * max(1, event_weights(trace.meta, present)[0])


def _ratio(sums: Matrix, counts: NDArray[np.float64] | NDArray[np.int64]) -> Matrix:
    """Sums over counts, equally shaped; -1 where nothing was counted."""
    answer: Matrix = np.divide(sums, counts, out=np.full_like(sums, UNKNOWN), where=counts > 0)
    return answer
