"""Which loads are to be balanced, phase by phase, and how far a placement is from that."""

import numpy as np

from .problem import Floats, Nodes, Problem
from .refine import Goal

MOST_THREADS = 512  # beyond this a round of exchanges takes long, and the solver's own answer has to do


def goal_of(problem: Problem, pull: Floats | None = None, most: float = np.inf) -> Goal:
    """The problem as `refine` takes it: which loads are to be balanced, and who stays."""
    rows, weights = np.zeros((0, problem.threads)), np.zeros(0)
    if problem.objective == "phased":
        rows, weights = phase_loads(problem)
    elif problem.objective == "balanced":
        rows, weights = problem.loads[None, :], np.ones(1)
    return Goal(
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
    goal = goal_of(problem)
    if not len(goal.loads):
        return 0.0
    sums = np.stack([np.bincount(places, weights=row, minlength=problem.nodes) for row in goal.loads])
    off = ((sums - goal.targets) * goal.scale).max(axis=1)
    least = ((goal.loads.max(axis=1)[:, None] - goal.targets) * goal.scale).min(axis=1)
    return float((off - np.maximum(least, 0.0)).max(initial=0.0))
