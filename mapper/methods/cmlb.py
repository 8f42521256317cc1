"""CMLB: greedy groups by communication that refuse a thread whose load would spoil the group's balance.

Source: the CMLB paper, Algorithms 2-5, with the corrections of print errors that its own figure needs: the
early return of Algorithm 5 (lines 7-11) is not taken, a group makes per-1 picks, and the seats counted are
those left after the candidate's own. Where the paper is silent: ties go to the lowest thread, sizes of
nodes are those of the problem. O(N^2 log N).
"""

import numpy as np
from numpy.typing import NDArray

from numaplan.mapper.problem import Floats, Nodes, Problem

Flags = NDArray[np.bool_]


def cmlb(problem: Problem) -> Nodes:
    """Nodes by CMLB."""
    remaining = np.arange(problem.threads)
    places = np.empty(problem.threads, dtype=np.int64)
    for node, (size, target) in enumerate(zip(problem.sizes.tolist(), problem.targets.tolist(), strict=True)):
        group, remaining = _one_group(problem, remaining, size, target)
        places[group] = node
    return places


def _one_group(problem: Problem, remaining: Nodes, size: int, target: float) -> tuple[list[int], Nodes]:
    if not size:
        return [], remaining
    group, remaining = [int(remaining[0])], remaining[1:]
    sums = problem.comm[group[0]].copy()
    load = float(problem.loads[group[0]])
    while len(group) < size:
        position = _choice(
            sums[remaining], problem.loads[remaining], target - load, size - len(group) - 1, target
        )
        chosen = int(remaining[position])
        remaining = np.delete(remaining, position)
        group.append(chosen)
        sums += problem.comm[chosen]
        load += float(problem.loads[chosen])
    return group, remaining


def _choice(sums: Floats, loads: Floats, room: float, seats: int, target: float) -> int:
    """Position of the first candidate of the rank that fits, or of the head of the rank (Algorithm 4)."""
    fits = _fitting(loads, room, seats, target)
    return int(np.argmax(np.where(fits, sums, -1.0) if fits.any() else sums))


def _fitting(loads: Floats, room: float, seats: int, target: float) -> Flags:
    """Which candidates leave room that the seats after them can fill (Algorithm 5).

    loads: those of all candidates; room: target minus the group's load; seats: free after the candidate.
    """
    left = room - loads
    slack = 1e-9 * max(1.0, abs(target))
    if seats == 0:
        return np.abs(left) <= slack
    ends = [end for end in {seats, len(loads) - 1 - seats} if 0 <= end < len(loads)]
    ordered = np.partition(loads, ends) if ends else loads
    lowest = _sum_without(loads, np.sort(ordered[: seats + 1]), seats, smallest=True)
    highest = _sum_without(loads, np.sort(ordered[::-1][: seats + 1])[::-1], seats, smallest=False)
    return (lowest - slack <= left) & (left <= highest + slack)


def _sum_without(loads: Floats, extremes: Floats, seats: int, *, smallest: bool) -> Floats:
    """For each candidate the sum of the `seats` extreme loads among the others.

    extremes: the seats+1 extreme loads, most extreme first (fewer when there are fewer candidates).
    """
    inside = loads <= extremes[seats - 1] if smallest else loads >= extremes[seats - 1]
    first = float(extremes[:seats].sum())
    following = float(extremes[seats]) if len(extremes) > seats else 0.0
    return np.where(inside, first - loads + following, first)
