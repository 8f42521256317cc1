"""The method to use: multilevel tabu search in native code, never worse than the other methods.

Threads that communicate are bundled in pairs, pairs of pairs and so on; the bundles are placed, and swaps of
equal bundles improve the placement at every level while the bundles are taken apart again, so seats are
exact throughout. Beyond 128 threads a pool of placements is bred. The search starts from the quick
methods' placements as well as afresh. What the slow ones find is looked at afterwards: should it be
better, the search begins again from there. At effort `fast` nothing but the quickest is tried; beyond
SLOW_LIMIT threads the slow ones are left to effort `max`, and TreeMatch also where it would go through
all groups. Large sparse problems start from the baselines alone: no other method takes them. Of equally
good placements it takes the one with the least hop cost.
"""

from collections.abc import Callable

import numpy as np

from ..cost import load_deviation, node_traffic, objective_value
from ..pins import hold_pins
from ..problem import PRICED, Nodes, Problem
from ..solver import Solution, load_rows, solve
from .choicemap import choicemap
from .cmlb import cmlb
from .deloc import deloc
from .eagermap import eagermap
from .simple import compact, interleave, scatter
from .spectral import spectral
from .treematch import is_exhaustive, treematch

SLOW_LIMIT = 256  # threads; eigenvectors and candidate groups would take longer than the search

Function = Callable[[Problem], Nodes]


def best(problem: Problem) -> Nodes:
    """The best placement found for the problem's objective; the same for the same seed and effort."""
    if problem.nodes == 1 or problem.threads == 1:
        return compact(problem)
    starts = [*problem.starts, *(_start(problem, method) for method in _quick(problem))]
    solution = solve(problem, np.array(starts))
    for method in _slow(problem):
        starts.append(_start(problem, method))
        if _matters(problem, starts[-1], solution):
            solution = solve(problem, np.array(starts))
    return _nearest(problem, starts, solution)


def _nearest(problem: Problem, starts: list[Nodes], solution: Solution) -> Nodes:
    """Of equally good placements the one with the least hop cost, for objectives that do not ask for it."""
    far = problem.distances[~np.eye(problem.nodes, dtype=bool)]
    if problem.objective in PRICED or problem.fixed is not None or (far == far[0]).all():
        return solution.places
    equal = [solution.places]
    if problem.threads <= SLOW_LIMIT:  # beyond, nothing else comes near
        equal += [places for places in starts if _as_good(problem, places, solution)]
    renamed = [_rename_nodes(problem, places) for places in equal]
    return min(renamed, key=lambda places: _hops(problem, places))


def _as_good(problem: Problem, places: Nodes, solution: Solution) -> bool:
    if problem.objective == "balanced" and _off_balance(problem, places) > solution.tolerance + 1e-12:
        return False
    return objective_value(problem, places) <= objective_value(problem, solution.places) * (1 + 1e-12)


def _hops(problem: Problem, places: Nodes) -> float:
    return float((node_traffic(problem.matrix, places, problem.nodes) * problem.distances).sum())


def _rename_nodes(problem: Problem, places: Nodes) -> Nodes:
    """Exchange whole nodes of one size and load target while that lowers the hop cost."""
    alike = (problem.sizes[:, None] == problem.sizes) & (problem.targets[:, None] == problem.targets)
    traffic = node_traffic(problem.matrix, places, problem.nodes)
    np.fill_diagonal(traffic, 0.0)
    name = np.arange(problem.nodes)  # the node on which each group of threads is
    for _ in range(4 * problem.nodes):
        apart = problem.distances[np.ix_(name, name)]
        each = traffic @ apart  # (K, K) cost of each group where each other is
        own, local = np.diag(each), np.diag(apart)
        changes = each + each.T - own[:, None] - own + traffic * (2 * apart - local[:, None] - local)
        changes[~alike[np.ix_(name, name)]] = 0.0
        first, second = np.unravel_index(int(changes.argmin()), changes.shape)
        if changes[first, second] >= -1e-9 * own.sum():
            break
        name[[first, second]] = name[[second, first]]
    renamed: Nodes = name[places]
    return renamed if _hops(problem, renamed) < _hops(problem, places) else places


def _quick(problem: Problem) -> list[Function]:
    baselines: list[Function] = [compact, scatter, interleave]
    if problem.effort == "fast" or problem.sparse is not None:
        return baselines
    return [*baselines, eagermap, cmlb, choicemap]


def _start(problem: Problem, method: Function) -> Nodes:
    """A method's placement with pinned threads where they belong."""
    return hold_pins(problem, method(problem))


def _slow(problem: Problem) -> list[Function]:
    if problem.sparse is not None:
        return []  # these want the whole matrix
    affordable = problem.effort == "normal" and problem.threads <= SLOW_LIMIT
    if not affordable and problem.effort != "max":
        return []
    # Proving what the search finds anyway would take TreeMatch, on few threads, many times as long.
    proof = problem.effort == "normal" and is_exhaustive(problem.threads, problem.sizes.tolist())
    return [deloc, spectral] if proof else [deloc, spectral, treematch]


def _matters(problem: Problem, found: Nodes, solution: Solution) -> bool:
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
    rows = zip(*load_rows(problem), strict=True)
    return max(load_deviation(loads, targets, places) - float(slack) for loads, targets, slack in rows)
