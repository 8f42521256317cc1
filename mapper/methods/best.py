"""The method to use: multilevel tabu search in native code, never worse than the other methods.

Threads that talk are bundled in pairs, pairs of pairs and so on; the bundles are placed, and swaps of equal
bundles improve the placement at every level while the bundles are taken apart again, so seats are exact
throughout. The search starts from the other methods' placements as well as afresh, and returns the best of
all.
"""

from collections.abc import Callable

import numpy as np

from numaplan.mapper.methods.choicemap import choicemap
from numaplan.mapper.methods.cmlb import cmlb
from numaplan.mapper.methods.deloc import deloc
from numaplan.mapper.methods.eagermap import eagermap
from numaplan.mapper.methods.simple import compact, interleave, scatter
from numaplan.mapper.methods.spectral import spectral
from numaplan.mapper.methods.treematch import treematch
from numaplan.mapper.problem import Nodes, Problem


def best(problem: Problem) -> Nodes:
    """The best placement found for the problem's objective; the same for the same seed and effort."""
    from numaplan.mapper.solver import solve

    if problem.nodes == 1 or problem.threads == 1:
        return compact(problem)
    return solve(problem, np.array([*problem.starts, *_starts(problem)])).places


def _starts(problem: Problem) -> list[Nodes]:
    methods: list[Callable[[Problem], Nodes]] = [compact, scatter, interleave]
    if problem.effort != "fast":
        methods += [eagermap, cmlb, choicemap]
    if problem.effort == "max":
        methods += [deloc, spectral, treematch]
    return [method(problem) for method in methods]
