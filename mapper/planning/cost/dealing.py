"""Siblings that do alike and whose numbers are chance, dealt in turn to the nodes of all of them.

Which of a server's children, or threads, gets which number is chance: one connection more at its start, and
each is one later. If those that work follow each other in turn on the nodes that they have, none of these
gets more of them by that.
"""

from collections.abc import Iterable

import numpy as np

from ...threads.problem import Nodes


def dealt(siblings: Iterable[Nodes], places: Nodes, rows: Nodes) -> Nodes:
    """(N,) the same places, but each group's siblings follow each other in turn on the nodes of theirs.

    siblings: of each group, in order of creation; places: (N,) of each thread; rows: (places,) row of each
    place's node.
    """
    answer = places.copy()
    for own in siblings:
        nodes = rows[places[own]]
        if (nodes == nodes[:1]).all():
            continue  # nor from cache to cache of one node
        turn = _evenly(nodes)
        for node in np.unique(nodes):
            answer[own[turn == node]] = _evenly(places[own[nodes == node]])
    return answer


def _evenly(values: Nodes) -> Nodes:
    """The same, each as evenly among the others as its number allows."""
    found, which, count = np.unique(values, return_inverse=True, return_counts=True)
    which = np.sort(which)
    number = np.arange(len(values)) - np.searchsorted(which, which)
    answer: Nodes = found[which[np.lexsort((which, (number + 0.5) / count[which]))]]
    return answer
