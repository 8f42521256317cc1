"""Candidate placements of threads: near their memory as it is, or as the mapper solves again."""

import numpy as np

from ...arithmetic import assign
from ...observation import Ints, Observation
from .grouping import OBJECTIVES, Grouping, GroupingProblem
from .outlook import Outlook


def seated(observation: Observation) -> Ints:
    """Rows of the threads that may be moved and need a cpu."""
    threads = observation.threads
    return np.flatnonzero(threads.movable & threads.running)


def free_seats(observation: Observation, movers: Ints) -> Ints:
    """(K,) threads each node may have of the movers: its cpus less the others' threads, more when they are
    too few.
    """
    machine, threads = observation.machine, observation.threads
    others = threads.running.copy()
    others[movers] = False
    taken = np.bincount(threads.node[others], minlength=machine.nodes)
    rounds = 1
    while True:
        seats: Ints = np.maximum(machine.seats * rounds - taken, 0)
        if seats.sum() >= len(movers) or not machine.seats.any():
            return seats
        rounds += 1


def near_memory(
    outlook: Outlook, observation: Observation, movers: Ints, seats: Ints, cost_of_moving: float
) -> Ints:
    """(T,) nodes so that threads wait least for memory where it lies; a move must save its cost (ns a
    second).
    """
    nodes = observation.threads.node.copy()
    costs = outlook.distance_costs()[movers]
    costs += cost_of_moving * (np.arange(len(seats)) != nodes[movers][:, None])
    owner = np.repeat(np.arange(len(seats)), seats)
    nodes[movers] = owner[assign(costs[:, owner])]
    return nodes


def group_threads(
    outlook: Outlook, observation: Observation, movers: Ints, seats: Ints, before: dict[str, Grouping]
) -> dict[str, Grouping]:
    """What the mapper puts together, by objective."""
    count = observation.threads.count
    comm = outlook.sharing.communication(count)[np.ix_(movers, movers)]
    loads = np.bincount(outlook.sharing.thread, outlook.sharing.weight, minlength=count).astype(np.float64)
    distances = observation.machine.distances
    tids, nodes = observation.threads.tid[movers], observation.threads.node[movers]
    return {
        objective: GroupingProblem(
            tids, seats, comm, loads[movers], distances, objective, before.get(objective)
        ).grouping(nodes)
        for objective in OBJECTIVES
    }


def labelled(outlook: Outlook, observation: Observation, movers: Ints, seats: Ints, group: Ints) -> Ints:
    """(T,) nodes: each group gets the node where most of its memory lies, of those with as many seats."""
    nodes, rows = observation.threads.node.copy(), np.flatnonzero(seats)
    costs = outlook.distance_costs()[movers]
    away = costs.max(initial=0.0) * 1e-3 * (np.arange(len(seats)) != nodes[movers][:, None])
    by_group = np.zeros((len(rows), len(rows)))
    for at, row in enumerate(rows.tolist()):
        by_group[at] = (costs + away)[group == row][:, rows].sum(axis=0)
    # A group fits only where as many have a seat.
    by_group[seats[rows][:, None] > seats[rows][None, :]] += 1e30
    label = np.empty(len(seats), dtype=np.int64)
    label[rows] = rows[assign(by_group)]
    nodes[movers] = label[group]
    return nodes
