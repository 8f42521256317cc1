"""How far the difference of what two placements cost may be off: samples, chance, and what nothing shows."""

import numpy as np

from ...threads.problem import Floats
from ..cost.placement import Placement
from ..cost.timed_task import TimedTask

SURE = 2.0  # standard errors
UNSEEN = 0.1  # of the cost, by which it may be off where nothing shows what processes exchange


def doubt(task: TimedTask, one: Placement, other: Placement) -> float:
    """ns by which the difference of two costs may be off because it is told from samples, because who
    exchanges lines with whom is chance, and because nothing shows what processes exchange."""
    memory = abs(one.cost.memory_ns + one.cost.queue_ns - other.cost.memory_ns - other.cost.queue_ns)
    misses, events = (max(known, 1.0) for known in task.samples)
    apart = _line_ns(task, one) - _line_ns(task, other)
    unsure = SURE * float(
        np.linalg.norm([memory / misses**0.5, _seen(task, apart, events), _chance(task, apart)])
    )
    return max(unsure, UNSEEN * one.cost.total_ns) if task.exchange_unseen else unsure


def _seen(task: TimedTask, apart: Floats, events: float) -> float:
    """Standard error in ns of the lines of threads that are nearer in one than in the other, as so many
    events show whose they are: of each pair its number varies as its root, and all together are not in doubt.

    apart: (N, N) ns by which a line of each pair costs more in one placement.
    """
    pairs = np.triu(task.use.lines + task.use.lines.T, 1)
    total = float(pairs.sum())
    if total <= 0:
        return 0.0
    beyond = apart - float((pairs * apart).sum()) / total
    return float(np.sqrt((pairs * beyond**2).sum() * total / events))


def _chance(task: TimedTask, apart: Floats) -> float:
    """Standard deviation in ns of what threads exchange that are nearer in one than in the other."""
    if task.use.chance is None:
        return 0.0
    pairs = np.triu(task.use.chance + task.use.chance.T, 1)
    known = apart[pairs > 0]
    return float(np.linalg.norm(pairs[pairs > 0] * (known - known.mean()))) if len(known) else 0.0


def _line_ns(task: TimedTask, one: Placement) -> Floats:
    """(N, N) what a line costs between two threads; alike where they are moved about."""
    if not one.bound:
        return np.zeros_like(task.use.lines)
    near = np.where(np.equal.outer(one.places, one.places), task.use.near_share, 1.0)
    return near * task.line_ways(one.cpus, task.cpus.seats(one.places))
