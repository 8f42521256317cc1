"""Did it help? What an interval cost, and whether one is worse than another beyond chance.

The cost of an access is its latency where that is sampled, else the unloaded latency between the node of the
thread and the node of the page; clearly more waiting for a cpu makes all of it longer. An interval in which
threads shared cpus, or reached far, costs more.
"""

from dataclasses import dataclass, replace

import numpy as np

from numaplan.launcher.online.observation import Flags, Floats
from numaplan.launcher.online.observing import Looked

_LEAST_SAMPLES = 30
MORE_WAITING = 0.1  # of the time: less comes and goes where there are more threads than cpus
WORSE = 0.02  # less is not worth undoing anything
_PIECES, _MOST_PIECES = 8, 1000  # of an interval, and of all
_CERTAIN = 2.0  # standard errors


@dataclass(frozen=True)
class Cost:
    """Mean cost of an access in ns, its standard error, samples, the share that was local (NaN: none), and
    the share of their time that threads waited for a cpu because of where they are.
    """

    mean: float
    error: float
    samples: int
    local_share: float
    waiting: float = 0.0

    def stretched(self) -> "Cost":
        """With the waiting for cpus, which makes every access longer."""
        stretch = 1.0 / max(1e-3, 1.0 - self.waiting)
        return replace(self, mean=self.mean * stretch, error=self.error * stretch)


def cost_of(looked: Looked, waiting_only: bool = False) -> Cost:
    """The cost of an interval's fresh samples. waiting_only: a policy that trades distance for room."""
    fresh, place = looked.fresh, looked.fresh_place
    known = place >= 0
    node, page, count = fresh.node[known], place[known], fresh.weight[known]
    if waiting_only:
        return Cost(1.0 / max(1e-3, 1.0 - looked.waiting), 0.0, len(count), _share(node == page, count))
    waits = looked.observation.machine.latency_ns[node, page]
    latency = fresh.latency[known]
    waits = np.where(np.isnan(latency), waits, latency)
    total = count.sum()
    if total <= 0:
        return Cost(np.nan, np.nan, 0, np.nan)
    mean = float((waits * count).sum() / total)
    error = _error(fresh.time_s[known], waits * count, count, looked.observation.interval_s)
    return Cost(mean, error, len(count), _share(node == page, count), looked.avoidable)


def _error(time_s: Floats, waits: Floats, count: Floats, interval_s: float) -> float:
    """The standard error of the mean wait, from how the means of pieces of the interval differ.

    Samples of one moment are alike: many of them are no better than one. A single piece tells nothing.
    """
    piece = np.minimum((time_s - time_s.min()) / max(interval_s, 1e-3) * _PIECES, _MOST_PIECES).astype(
        np.int64
    )
    sums = np.bincount(piece, count)
    there = sums > 0
    means, sums = np.bincount(piece, waits)[there] / sums[there], sums[there]
    if len(means) < 2:
        return float("inf")
    weight = sums / sums.sum()
    return float(((weight * (means - (means * weight).sum()) ** 2).sum() / (len(means) - 1)) ** 0.5)


def _share(local: Flags, count: Floats) -> float:
    total = float(count.sum())
    return float(count[local].sum()) / total if total else float("nan")


def verdict(before: Cost, after: Cost) -> str:
    """`better`, `worse` or `open` (too few samples, or no clear difference)."""
    if min(before.samples, after.samples) < _LEAST_SAMPLES:
        return "open"
    if abs(after.waiting - before.waiting) > MORE_WAITING:
        before, after = before.stretched(), after.stretched()
    doubt = max(WORSE * before.mean, _CERTAIN * (before.error**2 + after.error**2) ** 0.5)
    if after.mean > before.mean + doubt:
        return "worse"
    return "better" if after.mean < before.mean - doubt else "open"
