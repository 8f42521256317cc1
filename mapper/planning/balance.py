"""What balance is worth: the objective `balanced` of a plan by the method `best`.

The named methods and `map_threads` give each node its exact number of threads and ask for the nearest balance
whatever it costs. A plan can do better where that is not what the program needs:

- Threads of negligible load, such as helpers and timers, have no seat to count and no load to balance: each
  is where the threads are that it communicates with.
- Where no placement keeps the tolerance, a placement that is a little less balanced yet may save much
  communication. It is taken where the load of the busiest node grows by a smaller factor than communication
  shrinks, and by no more than MOST of a node's share.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..threads.cost import imbalance, objective_value, one_hot
from ..threads.mapping import place_threads
from ..threads.methods import find_method
from ..threads.problem import Nodes, Problem, node_sizes, with_pins

NEGLIGIBLE = 0.05  # of the mean thread's load
MOST = 0.25  # of a node's share, that the deviation may grow by beyond the least
STEPS = 5
LARGEST = 256  # threads, beyond which the exact seats of all are asked for, once

Flags = NDArray[np.bool_]


def balanced_places(problem: Problem, seats: Nodes) -> Nodes:
    """(N,) node positions; seats: (K,) cpus of each node.

    As the method `best` gives them where all threads have a load and the tolerance can be kept.
    """
    if problem.threads > LARGEST or problem.sparse is not None or problem.nodes < 2:
        return place_threads(find_method("best"), problem)
    light = negligible(problem)
    if not light.any():
        return _worth_its_price(problem)
    friend = _friends(problem, light)
    busy = np.flatnonzero(~light)
    row = np.full(problem.threads, -1)
    row[busy] = np.arange(len(busy))
    of = row[friend]  # which of the busy ones each thread is with; -1: nobody's
    places = np.full(problem.threads, -1) if problem.fixed is None else problem.fixed.copy()
    places[busy] = _worth_its_price(_together(problem, busy, of, seats))
    known = of >= 0
    places[known] = places[busy[of[known]]]
    return _follow(problem, places, light)


def negligible(problem: Problem) -> Flags:
    """(N,) threads without a load to speak of."""
    light: Flags = problem.loads < NEGLIGIBLE * problem.loads.mean()
    return light


def _friends(problem: Problem, light: Flags) -> Nodes:
    """(N,) the busy thread that each goes with: itself, or the one that it communicates with most, directly
    or over others; a light thread that communicates with nobody stays itself."""
    friend = np.arange(problem.threads)
    settled = ~light
    left = light & problem.comm.any(axis=1)
    if problem.fixed is not None:
        left &= problem.fixed < 0
    while left.any():
        talk = np.where(settled[None, :], problem.comm, 0.0)
        now = left & talk.any(axis=1)
        if not now.any():
            break
        friend[now] = friend[talk[now].argmax(axis=1)]
        settled |= now
        left &= ~now
    return friend


def _together(problem: Problem, busy: Nodes, of: Nodes, seats: Nodes) -> Problem:
    """The problem of the busy threads, each with what those that go with it communicate."""
    known = np.flatnonzero(of >= 0)
    member = one_hot(of[known], len(busy))
    comm = member.T @ problem.comm[np.ix_(known, known)] @ member
    comm = (comm + comm.T) / 2
    np.fill_diagonal(comm, 0.0)
    fixed = None if problem.fixed is None else problem.fixed[busy]
    sizes = node_sizes(len(busy), seats)
    if fixed is not None:
        sizes = with_pins(sizes, fixed)
    loads = problem.loads[busy]
    scale = float(loads.sum()) / (float(problem.loads.sum()) or 1.0)
    phases = None if problem.phases is None else problem.phases[:, busy]
    return replace(
        problem,
        comm=comm,
        loads=loads,
        sizes=sizes,
        targets=problem.targets * scale,
        fixed=fixed,
        phases=phases,
    )


def _follow(problem: Problem, places: Nodes, light: Flags) -> Nodes:
    """Each light thread where those are that it communicates with most; others where there is room."""
    room = problem.sizes - np.bincount(places[places >= 0], minlength=problem.nodes)
    pinned = np.zeros(problem.threads, bool) if problem.fixed is None else problem.fixed >= 0
    for thread in np.flatnonzero(light & ~pinned).tolist():
        there = places >= 0
        talk = np.bincount(places[there], problem.comm[thread][there], problem.nodes)
        node = int(talk.argmax()) if talk.any() else int(room.argmax())
        if places[thread] < 0:
            room[node] -= 1
        places[thread] = node
    return places


def _worth_its_price(problem: Problem) -> Nodes:
    """The placement within the tolerance; where there is none, one whose balance is worth what it costs."""
    best = find_method("best")
    places = place_threads(best, problem)
    least = imbalance(problem, places)
    if least <= problem.tolerance + 1e-9 or not problem.comm.any():
        return places
    price = _price(problem, places)
    for step in range(1, STEPS + 1):
        wider = replace(problem, tolerance=least + MOST * step / STEPS, starts=(places,))
        found = place_threads(best, wider)
        if (now := _price(problem, found)) < price * (1 - 1e-9):
            places, price = found, now
    return places


def _price(problem: Problem, places: Nodes) -> float:
    return objective_value(problem, places) * (1.0 + imbalance(problem, places))
