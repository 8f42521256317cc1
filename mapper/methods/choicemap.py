"""ChoiceMap: pairs of threads that choose each other, pairs of pairs, up to the size of a node.

Source: Soomro et al., ChoiceMap; no full public description was found, so this is our reading. Threads hold
preference lists by communication (ties: lowest thread). In each round every thread left proposes to the
first on its list that is left; those who propose to each other pair up, until no two are left. Pairs are
contracted and choose again while a doubled group still fits the smallest node; groups then join the nodes,
each the group that talks most to it, and what does not fit whole is split. O(N^2 log N) for each doubling.
"""

import numpy as np

from numaplan.mapper.methods.eagermap import contract
from numaplan.mapper.problem import Floats, Nodes, Problem


def choicemap(problem: Problem) -> Nodes:
    """Nodes by mutual preference."""
    groups = [[thread] for thread in range(problem.threads)]
    weights = problem.comm
    filled = problem.sizes[problem.sizes > 0]
    while 2 * len(groups[0]) <= filled.min() and len(groups) > 1:
        pairs = mutual_pairs(weights)
        groups = [[thread for member in pair for thread in groups[member]] for pair in pairs]
        weights = _contracted(weights, pairs)
    return seat_groups(problem, groups)


def mutual_pairs(weights: Floats) -> list[tuple[int, ...]]:
    """Pairs by mutual choice, strongest rounds first; an odd one out stands alone, last.

    The heaviest pair left always chooses each other, so every round makes at least one pair.
    """
    values = weights.copy()
    np.fill_diagonal(values, -1.0)
    left = np.ones(len(weights), dtype=bool)
    pairs: list[tuple[int, ...]] = []
    while left.sum() > 1:
        members = np.flatnonzero(left)
        choice = members[np.argmax(values[np.ix_(members, members)], axis=1)]
        chooser = dict(zip(members.tolist(), choice.tolist(), strict=True))
        found = [(a, b) for a, b in chooser.items() if a < b and chooser[b] == a]
        pairs += found
        left[[member for pair in found for member in pair]] = False
    return pairs + [(int(member),) for member in np.flatnonzero(left)]


def _contracted(weights: Floats, pairs: list[tuple[int, ...]]) -> Floats:
    member = np.empty(len(weights), dtype=np.int64)
    for number, pair in enumerate(pairs):
        member[list(pair)] = number
    return contract(weights, member, len(pairs))


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
            chosen = max(fitting, key=lambda group: float(sums[group].sum()))
            waiting.remove(chosen)
            places[chosen] = node
            sums += problem.comm[chosen].sum(axis=0)
            room -= len(chosen)
    return places
