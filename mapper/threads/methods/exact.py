"""The optimum with a proof, by branch and bound in native code, for few threads.

For `balanced` the least deviation of any node's load comes first, and where it is beyond the tolerance that
much and the tolerance's share of it more is allowed; then the least communication. Exponential: MOST_THREADS
is what a few seconds allow on hard instances with four nodes.
"""

from dataclasses import replace

import numpy as np

from numaplan.common import UsageError

from ..cost import imbalance
from ..problem import Nodes, Problem
from ..solver import Solution, solve_exactly
from .best import best
from .simple import compact

MOST_THREADS = 14
STEPS = 40_000_000


def exact(problem: Problem) -> Nodes:
    """The optimal nodes; raises UsageError when there are too many threads for a proof."""
    if problem.threads > MOST_THREADS:
        raise UsageError(
            f"exact: {problem.threads} threads, at most {MOST_THREADS} can be proven", "use --method best"
        )
    if problem.nodes == 1 or problem.threads == 1:
        return compact(problem)
    start = best(problem)
    if problem.objective == "balanced":
        silent = replace(problem, comm=np.zeros_like(problem.comm))
        nearest = imbalance(problem, _proven(solve_exactly(silent, start, STEPS)))
        if nearest > problem.tolerance + 1e-9:
            problem = replace(problem, tolerance=nearest * (1 + problem.tolerance) * (1 + 1e-12))
    return _proven(solve_exactly(problem, start, STEPS))


def _proven(solution: Solution) -> Nodes:
    if not solution.proven:
        raise UsageError("exact: no proof within the steps allowed", "use --method best")
    return solution.places
