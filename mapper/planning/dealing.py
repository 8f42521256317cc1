"""Children of one process that do alike, dealt in turn to the places of those that work.

Which of a server's children gets which number is chance: one connection more at its start, and each is one
later. If those that work follow each other in turn on the places that they have, none of these gets more of
them by that.
"""

from collections.abc import Sequence

import numpy as np

from ..threads.problem import Floats, Nodes
from ..workload.siblings import working


def turns(children: Sequence[Nodes], places: Nodes, accesses: Floats) -> int:
    """How often the next child that works is on another place."""
    busy = [own[working(own, accesses)] for own in children]
    return sum(int(np.count_nonzero(np.diff(places[own]))) for own in busy)


def dealt(children: Sequence[Nodes], places: Nodes, accesses: Floats) -> Nodes:
    """(N,) the same, but children that work follow each other in turn on the places that they have."""
    answer = places.copy()
    for own in children:
        busy = own[working(own, accesses)]
        answer[busy] = _in_turn(places[busy])
    return answer


def _in_turn(places: Nodes) -> Nodes:
    """The same places, each as evenly among the others as its number allows."""
    found, count = np.unique(places, return_counts=True)
    place = np.repeat(np.arange(len(found)), count)
    number = np.concatenate([np.arange(many) for many in count])
    order = np.lexsort((place, (number + 0.5) / count[place]))
    answer: Nodes = found[place[order]]
    return answer
