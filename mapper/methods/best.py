"""The method to use: multilevel tabu search in native code, never worse than the other methods.

Threads that talk are bundled in pairs, pairs of pairs and so on; the bundles are placed, and swaps of equal
bundles improve the placement at every level while the bundles are taken apart again, so seats are exact
throughout. The search starts from the quick methods' placements as well as afresh. What the slow ones find is
looked at afterwards: should it be better, the search begins again from there. At effort `fast` nothing but
the quickest is tried; beyond SLOW_LIMIT threads the slow ones are left to effort `max`, and TreeMatch also
where it would go through all groups. Large sparse tasks start from the baselines alone: no other method takes
them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from numaplan.mapper.cost import load_deviation, objective_value
from numaplan.mapper.methods.choicemap import choicemap
from numaplan.mapper.methods.cmlb import cmlb
from numaplan.mapper.methods.deloc import deloc
from numaplan.mapper.methods.eagermap import eagermap
from numaplan.mapper.methods.simple import compact, interleave, scatter
from numaplan.mapper.methods.spectral import spectral
from numaplan.mapper.methods.treematch import is_exhaustive, treematch
from numaplan.mapper.problem import Nodes, Problem

if TYPE_CHECKING:
    from numaplan.mapper.solver import Solution


SLOW_LIMIT = 256  # threads; eigenvectors and candidate groups would take longer than the search

Function = Callable[[Problem], Nodes]


def best(problem: Problem) -> Nodes:
    """The best placement found for the problem's objective; the same for the same seed and effort."""
    from numaplan.mapper.solver import solve

    if problem.nodes == 1 or problem.threads == 1:
        return compact(problem)
    starts = [*problem.starts, *(_start(problem, method) for method in _quick(problem))]
    solution = solve(problem, np.array(starts))
    for method in _slow(problem):
        found = _start(problem, method)
        if _matters(problem, found, solution):
            starts.append(found)
            solution = solve(problem, np.array(starts))
    return solution.places


def _quick(problem: Problem) -> list[Function]:
    baselines: list[Function] = [compact, scatter, interleave]
    if problem.effort == "fast" or problem.links is not None:
        return baselines
    return [*baselines, eagermap, cmlb, choicemap]


def _start(problem: Problem, method: Function) -> Nodes:
    """A method's placement with pinned threads where they belong."""
    from numaplan.mapper.placing import hold_pins

    places = method(problem)
    if problem.fixed is None or problem.links is None:
        return hold_pins(problem, places)
    places = places.copy()
    for thread in np.flatnonzero((problem.fixed >= 0) & (problem.fixed != places)).tolist():
        node = problem.fixed[thread]
        other = np.flatnonzero((places == node) & (problem.fixed != node))[0]
        places[thread], places[other] = node, places[thread]
    return places


def _slow(problem: Problem) -> list[Function]:
    if problem.links is not None:
        return []  # these want the whole matrix
    affordable = problem.effort == "normal" and problem.threads <= SLOW_LIMIT
    if not affordable and problem.effort != "max":
        return []
    # Proving what the search finds anyway would take TreeMatch, on few threads, many times as long.
    proof = problem.effort == "normal" and is_exhaustive(problem.threads, problem.sizes.tolist())
    return [deloc, spectral] if proof else [deloc, spectral, treematch]


def _matters(problem: Problem, found: Nodes, solution: "Solution") -> bool:
    """Whether a placement is cheaper than the solution, or nearer to a balance that the solution has not."""
    if problem.objective == "balanced":
        off = _off_balance(problem, found)
        if solution.tolerance > problem.tolerance and off * (1 + problem.tolerance) < solution.tolerance:
            return True
        if off > solution.tolerance + 1e-12:
            return False
    return objective_value(problem, found) < objective_value(problem, solution.places) * (1 - 1e-12)


def _off_balance(problem: Problem, places: Nodes) -> float:
    """The largest deviation of any kind of load that the solver balances."""
    from numaplan.mapper.solver_task import load_rows

    rows = zip(*load_rows(problem), strict=True)
    return max(load_deviation(loads, targets, places) - float(slack) for loads, targets, slack in rows)
