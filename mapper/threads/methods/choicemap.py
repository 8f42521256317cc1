"""ChoiceMap: pairs of threads that choose each other, pairs of pairs, up to the size of a node.

Source: [CHOICEMAP]; no full public description was found, so this is our reading. Threads hold
preference lists by communication (ties: lowest thread). In each round every thread left proposes to the
first on its list that is left; those who propose to each other pair up, until no two are left. Pairs are
contracted and choose again while a doubled group still fits the smallest node; groups then join the nodes,
each the group that talks most to it, and what does not fit whole is split. O(N^2 log N) for each doubling.
"""

import numpy as np
from numpy.typing import NDArray

from ..problem import Floats, Nodes, Problem
from .eagermap import contract


def choicemap(problem: Problem) -> Nodes:
    """Nodes by mutual preference."""
    groups = [[thread] for thread in range(problem.threads)]
    weights = problem.comm
    filled = problem.sizes[problem.sizes > 0]
    while 2 * len(groups[0]) <= filled.min() and len(groups) > 1:
        pairs = mutual_pairs(weights)
        groups = [[thread for member in pair for thread in groups[member]] for pair in pairs]
        weights = contract(weights, pairs)
    return seat_groups(problem, groups)


def mutual_pairs(weights: Floats) -> list[tuple[int, ...]]:
    """Pairs by mutual choice, strongest rounds first; an odd one out stands alone, last.

    The heaviest pair left always chooses each other, so every round makes at least one pair.
    """
    values = weights.copy()
    np.fill_diagonal(values, -1.0)
    left = np.ones(len(weights), dtype=bool)
    choice = np.argmax(values, axis=1)
    pairs: list[tuple[int, ...]] = []
    while left.sum() > 1:
        members = np.flatnonzero(left)
        mutual = members[(choice[choice[members]] == members) & (members < choice[members])]
        pairs += zip(mutual.tolist(), choice[mutual].tolist(), strict=True)
        gone = np.concatenate([mutual, choice[mutual]])
        left[gone] = False
        values[:, gone] = -1.0
        # Who lost the one it had chosen chooses again; the others would choose the same.
        again = np.flatnonzero(left & ~left[choice])
        choice[again] = _first_greatest(values[again], left)
    return pairs + [(int(member),) for member in np.flatnonzero(left)]


def _first_greatest(rows: Floats, left: NDArray[np.bool_]) -> Nodes:
    """The column of each row's greatest value; of equal ones the first that is left."""
    best: Nodes = np.argmax(rows, axis=1)
    # A row of nothing but -1 is that of the last one left, or of threads that are gone.
    return np.where(left[best], best, int(np.argmax(left)))


def seat_groups(problem: Problem, groups: list[list[int]]) -> Nodes:
    """Fill node after node with the group that talks most to it; split groups only when none fits whole."""
    places = np.full(problem.threads, -1, dtype=np.int64)
    waiting = list(groups)
    for node, size in enumerate(problem.sizes.tolist()):
        sums = np.zeros(problem.threads)
        room = size
        while room:
            fitting = [group for group in waiting if len(group) <= room]
            if not fitting:  # the group that talks most gives its threads one by one
                waiting = sorted(
                    ([thread] for group in waiting for thread in group), key=lambda group: group[0]
                )
                continue
            first = np.cumsum([0, *(len(group) for group in fitting[:-1])])
            chosen = fitting[int(np.argmax(np.add.reduceat(sums[np.concatenate(fitting)], first)))]
            waiting.remove(chosen)
            places[chosen] = node
            sums += problem.comm[chosen].sum(axis=0)
            room -= len(chosen)
    return places
