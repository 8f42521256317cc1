"""The optimum with a proof, by branch and bound in native code, for few threads.

For `balanced` the least imbalance beyond the tolerance comes first, then the least communication.
Exponential; MOST_THREADS is what a few seconds allow on hard instances with four nodes.
"""

from numaplan.common import UsageError
from numaplan.mapper.methods.best import best
from numaplan.mapper.methods.simple import compact
from numaplan.mapper.problem import Nodes, Problem

MOST_THREADS = 14
STEPS = 40_000_000


def exact(problem: Problem) -> Nodes:
    """The optimal nodes; raises UsageError when there are too many threads for a proof."""
    from numaplan.mapper.solver import solve_exactly

    if problem.threads > MOST_THREADS:
        raise UsageError(
            f"exact: {problem.threads} threads, at most {MOST_THREADS} can be proven", "use --method best"
        )
    if problem.nodes == 1 or problem.threads == 1:
        return compact(problem)
    solution = solve_exactly(problem, best(problem), STEPS)
    if not solution.proven:
        raise UsageError("exact: no proof within the steps allowed", "use --method best")
    return solution.places
