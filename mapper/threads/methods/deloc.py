"""DeLoc: keep locality inside pairs, spread what is busy at the same time over the nodes.

Source: [DELOC]. The public description says that it takes a time series of communication events, clusters
tasks that would congest memory at the same time, keeps locality inside pairs of tasks and spreads those
clusters. Our reading: pairs are formed by mutual preference (as in ChoiceMap); a pair's activity is its
memory load in each phase of the run (in one phase when no phases are known); the busiest pairs choose
first, each the node whose busiest phase it raises least, then the one it talks most to. No parameters.
O(N^2 log N + N K phases).
"""

import numpy as np

from ..problem import Floats, Nodes, Problem
from .choicemap import mutual_pairs


def deloc(problem: Problem) -> Nodes:
    """Nodes by spreading busy pairs."""
    activity = problem.loads[None, :] if problem.phases is None else problem.phases
    places = np.full(problem.threads, -1, dtype=np.int64)
    room = problem.sizes.copy()
    busy = np.zeros((len(activity), problem.nodes))
    waiting = [list(pair) for pair in mutual_pairs(problem.comm)]
    waiting.sort(key=lambda pair: -float(activity[:, pair].sum(axis=1).max()))
    talk = np.zeros((problem.threads, problem.nodes))  # of each thread to those already on each node
    while waiting:
        group = waiting.pop(0)
        if room.max() < len(group):  # only single seats are left
            waiting = [[group[0]], [group[1]], *waiting]
            continue
        added = activity[:, group].sum(axis=1)
        node = _quietest(problem, added, busy, room, len(group), talk[group].sum(axis=0))
        places[group] = node
        room[node] -= len(group)
        busy[:, node] += added
        talk[:, node] += problem.comm[group].sum(axis=0)
    return places


def _quietest(problem: Problem, added: Floats, busy: Floats, room: Nodes, size: int, talk: Floats) -> int:
    """The node with room whose busiest phase stays lowest for its size; then the one talked to most."""
    nodes = np.flatnonzero(room >= size)
    peaks = (busy[:, nodes] + added[:, None]).max(axis=0) / problem.sizes[nodes]
    return int(nodes[np.lexsort((-talk[nodes], peaks))[0]])
