"""The method to use: multilevel search with tabu refinement in native code, never worse than the other methods.

Threads that talk are bundled in pairs, pairs of pairs and so on; the bundles are placed, and swaps of equal
bundles improve the placement at every level while the bundles are taken apart again, so seats are exact
throughout. The search starts from the other methods' placements as well as afresh, and returns the best of all.
"""

import numpy as np

from numaplan.mapper.methods.cmlb import cmlb
from numaplan.mapper.methods.eagermap import eagermap
from numaplan.mapper.methods.simple import compact, interleave, scatter
from numaplan.mapper.problem import Nodes, Problem


def best(problem: Problem) -> Nodes:
    """The best placement found for the problem's objective; the same for the same seed and effort."""
    from numaplan.mapper.solver import solve

    if problem.nodes == 1 or problem.threads == 1:
        return compact(problem)
    return solve(problem, np.array([start(problem) for start in starts_for(problem)])).places


def starts_for(problem: Problem) -> list:
    starts = [compact, scatter, interleave]
    if problem.effort != "fast":
        starts += [eagermap, cmlb]
    return starts
