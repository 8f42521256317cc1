"""How far the difference of what two placements cost may be off: samples, chance, and what nothing shows."""

import numpy as np

from ..threads.problem import Floats
from .placement import Placement
from .timed_task import TimedTask

SURE = 2.0  # standard errors
UNSEEN = 0.1  # of the cost, by which it may be off where nothing shows what processes exchange


def doubt(task: TimedTask, one: Placement, other: Placement) -> float:
    """ns by which the difference of two costs may be off because it is told from samples, because who
    exchanges lines with whom is chance, and because nothing shows what processes exchange."""
    memory = abs(one.cost.memory_ns + one.cost.queue_ns - other.cost.memory_ns - other.cost.queue_ns)
    of_others = [each.cost.lines_ns - task.unbound.own_lines_ns(each.cpus) for each in (one, other)]
    lines = abs(of_others[0] - of_others[1])
    parts = np.array([memory, lines]) / np.sqrt(np.maximum(task.samples, 1.0))
    unsure = SURE * float(np.hypot(np.hypot(*parts), _chance(task, one, other)))
    return max(unsure, UNSEEN * one.cost.total_ns) if task.exchange_unseen else unsure


def _chance(task: TimedTask, one: Placement, other: Placement) -> float:
    """Standard deviation in ns of what threads exchange that are nearer in one than in the other."""
    if task.use.chance is None:
        return 0.0
    pairs = np.triu(task.use.chance + task.use.chance.T, 1)
    apart = (_line_ns(task, one) - _line_ns(task, other))[pairs > 0]
    return float(np.linalg.norm(pairs[pairs > 0] * (apart - apart.mean()))) if len(apart) else 0.0


def _line_ns(task: TimedTask, one: Placement) -> Floats:
    """(N, N) what a line costs between two threads; alike where they are moved about."""
    if not one.bound:
        return np.zeros_like(task.use.lines)
    near = np.where(np.equal.outer(one.places, one.places), task.use.near_share, 1.0)
    return near * task.line_ways(one.cpus, task.cpus.seats(one.places))
