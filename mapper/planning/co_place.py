"""Threads and pages together: threads may follow their memory where that costs hardly any communication."""

import numpy as np

from numaplan.analyzer import PageCounts
from numaplan.machine import Machine, latencies

from ..memory.pages import PagePlan, place_pages
from ..threads.cost import objective_value
from ..threads.phases import MOST_THREADS, goal_of
from ..threads.problem import Floats, Nodes, Problem
from ..threads.refine import refine

SLACK = 0.01  # how much dearer the objective may become for the pages' sake, relatively
MOST_ROUNDS = 6
WORTH = 1e-3  # of all waiting that a round must save


def co_place(
    problem: Problem, places: Nodes, stats: PageCounts, usable: Machine, machine: Machine, *, next_touch: bool
) -> tuple[Nodes, PagePlan]:
    """Threads and pages placed in turn until neither improves; at least what pages alone give.

    places: (N,) positions among the usable machine's nodes with cpus. Pages go to the threads that use them
    as far as memory allows; where it does not, threads are drawn to the pages. Pins, balance and seats hold.
    """
    ids = np.array([node.id for node in usable.cpu_nodes])

    def pages_of(chosen: Nodes) -> PagePlan:
        return place_pages(stats, ids[chosen], machine, next_touch=next_touch)

    pages = pages_of(places)
    if problem.threads > MOST_THREADS or problem.nodes < 2 or pages.traffic is None:
        return places, pages
    waits = relative_waits(machine)
    rows = [machine.index_of_node(int(node)) for node in ids]
    spent = float((pages.traffic * waits).sum())
    first = objective_value(problem, places)
    for _ in range(MOST_ROUNDS):
        pull = _pull(problem, stats, pages, waits[rows])
        if not pull.any():
            break
        goal = goal_of(problem, pull, most=first * (1 + SLACK))
        moved = refine(goal, _other_nodes(problem, places, pull, first * (1 + SLACK)))
        if (moved == places).all():
            break
        candidate = pages_of(moved)
        assert candidate.traffic is not None
        now = float((candidate.traffic * waits).sum())
        if now >= spent * (1 - WORTH):
            break
        places, pages, spent = moved, candidate, now
    return places, pages


def _other_nodes(problem: Problem, places: Nodes, pull: Floats, most: float) -> Nodes:
    """The same groups of threads on the nodes of their size that they are drawn to, if that is not dearer."""
    waits = np.zeros((problem.nodes, problem.nodes))
    np.add.at(waits, places, pull)
    if (np.diag(waits) <= waits.min(axis=1)).all():
        return places
    from scipy.optimize import linear_sum_assignment

    alike = (problem.sizes[:, None] == problem.sizes) & np.isclose(problem.targets[:, None], problem.targets)
    if problem.fixed is not None:
        held = np.unique(places[problem.fixed >= 0])
        alike[held] = alike[:, held] = False
        alike[held, held] = True
    groups, nodes = linear_sum_assignment(np.where(alike, waits, 1e6 * (1 + waits.max())))
    name = np.empty(problem.nodes, dtype=np.int64)
    name[groups] = nodes
    moved: Nodes = name[places]
    return moved if objective_value(problem, moved) <= most else places


def relative_waits(machine: Machine) -> Floats:
    """(K, K) how much longer than a local access one takes, in local accesses; by distance if need be."""
    known = latencies(machine) if machine.latency_ns else machine.distance_matrix
    local = np.diag(known)[[place for place, node in enumerate(machine.nodes) if node.cpus]].min()
    answer: Floats = known / max(float(local), 1e-9) - 1.0
    return answer


def _pull(problem: Problem, stats: PageCounts, pages: PagePlan, waits: Floats) -> Floats:
    """(N, K) what each thread's accesses to the pages where they are would wait on each node.

    In the unit of the communication: all accesses weigh as much as all communication.
    """
    assert pages.homes is not None
    used = (pages.homes >= 0) & (stats.thread >= 0) & (stats.thread < problem.threads)
    counts = np.zeros((problem.threads, waits.shape[1]))
    np.add.at(counts, (stats.thread[used], pages.homes[used]), stats.all_accesses[used])
    total = float(counts.sum())
    if total <= 0:
        return np.zeros((problem.threads, problem.nodes))
    weight = float(problem.comm.sum()) / 2 or 1.0
    answer: Floats = counts @ waits.T * (weight / total)
    return answer
