"""Run a method on a problem, with what methods themselves do not know: pinned threads, phases."""

from dataclasses import replace

import numpy as np

from numaplan.common import UsageError
from numaplan.mapper.cost import objective_value
from numaplan.mapper.methods import Method
from numaplan.mapper.problem import Floats, Nodes, Problem
from numaplan.mapper.refine import Exchange, Task, refine

MOST_THREADS = 512  # beyond this a round of exchanges takes long, and the solver's own answer has to do

PINNING = ("best", "exact")  # methods that know pins themselves


def place_threads(method: Method, problem: Problem) -> Nodes:
    """(N,) node positions by a method, pinned threads where they are pinned.

    A method that knows no pins gives a placement in which pinned threads are exchanged in where that costs
    least. For the objective `phased` `best` goes on from balance in every phase alike to what each phase
    matters. Raises UsageError for `exact` with phases: its proof would not hold.
    """
    phased = problem.objective == "phased"
    if phased and method.name == "exact":
        raise UsageError("the method exact proves nothing about phases", "take --method best")
    plain = problem if method.name in PINNING else replace(problem, fixed=None)
    if phased:
        several = len(phase_loads(problem)[0]) > 1
        plain = replace(plain, objective="balanced", every_phase=several)
    places = hold_pins(problem, method.function()(plain))
    if not phased or method.name != "best" or problem.links is not None or problem.threads > MOST_THREADS:
        return places
    return refine(task_of(problem), places)


def task_of(problem: Problem, pull: Floats | None = None, most: float = np.inf) -> Task:
    """The problem as `refine` takes it: which loads are to be balanced, and who stays."""
    rows, weights = np.zeros((0, problem.threads)), np.zeros(0)
    if problem.objective == "phased":
        rows, weights = phase_loads(problem)
    elif problem.objective == "balanced":
        rows, weights = problem.loads[None, :], np.ones(1)
    return Task(
        problem=problem,
        loads=rows,
        weights=weights,
        pull=np.zeros((problem.threads, problem.nodes)) if pull is None else pull,
        fixed=np.zeros(problem.threads, dtype=bool) if problem.fixed is None else problem.fixed >= 0,
        most=most,
    )


def phase_loads(problem: Problem) -> tuple[Floats, Floats]:
    """(P, N) loads by phase and (P,) how much each matters: its rate of accesses over the highest one.

    A controller that is overloaded while hardly anything is accessed delays nobody. Without phases the whole
    run is one.
    """
    if problem.phases is None or not problem.phases.any():
        return problem.loads[None, :], np.ones(1)
    rates = problem.phase_rates if problem.phase_rates is not None else problem.phases.sum(axis=1)
    return problem.phases, rates / (float(rates.max()) or 1.0)


def phase_imbalance(problem: Problem, places: Nodes) -> float:
    """The largest deviation of a node's load from its share in any phase, relative, weighted by the phase.

    Beyond what a thread that is heavier than a node's share makes unavoidable anyway.
    """
    task = task_of(problem)
    if not len(task.loads):
        return 0.0
    sums = np.stack([np.bincount(places, weights=row, minlength=problem.nodes) for row in task.loads])
    off = ((sums - task.targets) * task.scale).max(axis=1)
    least = ((task.loads.max(axis=1)[:, None] - task.targets) * task.scale).min(axis=1)
    return float((off - np.maximum(least, 0.0)).max(initial=0.0))


def hold_pins(problem: Problem, places: Nodes) -> Nodes:
    """The placement with every pinned thread on its node; whom it displaces is who costs least."""
    if problem.fixed is None or not ((problem.fixed >= 0) & (problem.fixed != places)).any():
        return places
    choices = [_exchange_in(problem, start) for start in (_renamed(problem, places), places)]
    return min(choices, key=lambda found: objective_value(problem, found))


def _renamed(problem: Problem, places: Nodes) -> Nodes:
    """The same groups on other nodes of the same size, so that most pins hold as they are."""
    from scipy.optimize import linear_sum_assignment

    pinned = np.asarray(problem.fixed)
    held = np.zeros((problem.nodes, problem.nodes))
    np.add.at(held, (places[pinned >= 0], pinned[pinned >= 0]), 1.0)
    held[problem.sizes[:, None] != problem.sizes[None, :]] = -len(places)
    groups, nodes = linear_sum_assignment(held, maximize=True)
    name = np.empty(problem.nodes, dtype=np.int64)
    name[groups] = nodes
    return name[places]


def _exchange_in(problem: Problem, places: Nodes) -> Nodes:
    pinned = np.asarray(problem.fixed)
    state = Exchange(task_of(problem), places)
    for thread in np.flatnonzero(pinned >= 0).tolist():
        if state.places[thread] == pinned[thread]:
            continue
        others = np.flatnonzero((state.places == pinned[thread]) & (pinned != state.places))
        changes = state.communication_changes()[thread, others]
        state.exchange(thread, int(others[changes.argmin()]))
    return state.places
