"""Which threads could run at a time: an emulator saw who waited for a turn, the lab who had a cpu or waited
for one (table `running`)."""

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter

from numaplan.profiler import Trace

FEWEST, MOST = 64, 4096  # looks: of fewer, samples tell more
BESIDE = 64  # looks around one, and how many times as long as between these it may stand
LONG = 8

Floats = NDArray[np.float64]


def looked_at(trace: Trace) -> tuple[Floats, Floats] | None:
    """(S,) how long each look stands for, and (S, N) which threads could run then, 1 or 0.

    A look stands for the time until the next one (after the last as long as mostly). By the recording's clock
    one thread of a process runs after the other; with a cpu for each they would take as much less as there
    are of them. So the time is divided by how many could run, in the mean of processes of which any could.
    In the lab they count as one: its clock counts the accesses of all, and it looks at all at once.

    None: there are too few looks. Of a process what its last look showed. Threads that only look again and
    again whether others are done can run, too.
    """
    rows = trace.thread_rows
    found = trace.arrays("SELECT DISTINCT time_ns, thread FROM running ORDER BY ALL")
    time, thread = found["time_ns"], found["thread"]
    times = _evenly(np.unique(time))
    if len(times) < FEWEST:
        return None
    as_one = trace.meta.get("backend") == "lab"
    process = np.unique(["" if as_one else row.process for row in rows], return_inverse=True)[1]
    running = np.zeros((len(times), len(rows)), bool)
    order = np.argsort(process[thread], kind="stable")
    for mine in np.split(order, np.flatnonzero(np.diff(process[thread][order])) + 1):
        own = np.flatnonzero(process == process[thread[mine[0]]])
        running[:, own] = _of_process(times, time[mine], np.searchsorted(own, thread[mine]), len(own))
    start, end = np.array([(row.start_ns, row.end_ns) for row in rows], np.int64).T
    # A turn is written down as it ends, maybe with its thread's life.
    running &= (times[:, None] >= start) & ((times[:, None] <= end) | (end < 0))
    apart = np.diff(times)
    lasts = np.append(apart, np.median(apart)).astype(np.float64)
    return lasts / _at_once(running, process), running.astype(np.float64)


def _at_once(running: NDArray[np.bool_], process: NDArray[np.int64]) -> Floats:
    """(S,) how many threads of a process could run, in the mean of those of which any could; at least 1."""
    every = np.zeros((len(running), int(process.max(initial=0)) + 1), bool)
    for number, thread in zip(process.tolist(), running.T, strict=True):
        every[:, number] |= thread
    answer: Floats = running.sum(axis=1) / np.maximum(every.sum(axis=1), 1)
    return np.maximum(answer, 1.0)


def _evenly(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """At most MOST of the times, which ascend."""
    if len(times) <= MOST:
        return times
    even = np.linspace(times[0], times[-1], MOST)
    return times[np.unique(np.searchsorted(times, even))]


def _of_process(
    times: NDArray[np.int64], time: NDArray[np.int64], thread: NDArray[np.int64], threads: int
) -> NDArray[np.bool_]:
    """(times, threads) what the last look before each time showed, while it stands; time, thread: of rows."""
    looks, number = np.unique(time, return_inverse=True)
    last = np.searchsorted(looks, times, side="right") - 1
    last[times > looks[last] + _stands_for(looks)[last]] = -1
    asked, place = np.unique(last, return_inverse=True)  # of maybe very many looks
    row = np.full(len(looks) + 1, -1)
    row[asked] = np.arange(len(asked))
    row[-1] = -1  # before the first look, and when it is gone
    seen = np.zeros((len(asked), threads), bool)
    kept = row[number] >= 0
    seen[row[number[kept]], thread[kept]] = True
    return seen[place]


def _stands_for(looks: NDArray[np.int64]) -> NDArray[np.int64]:
    """(L,) how long each look of a process stands at most: where the next one is far later than usual, it has
    waited for another process. After the last it is gone as soon as another one would be usual."""
    apart = np.diff(looks)
    if not len(apart):
        return np.zeros(len(looks), np.int64)
    stands: NDArray[np.int64] = median_filter(apart, min(BESIDE, len(apart)), mode="nearest")
    return np.append(LONG * stands, stands[-1])
