"""The native solver (`native/solver/`): a problem as it takes it, and asking it.

Pinned threads (`Problem.fixed`) are taken out: what the others say to them becomes a cost of each node, their
loads stand there already. With `Problem.every_phase` each phase's loads are balanced as well as the whole
run's.
"""

import ctypes
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from numaplan.common import NumaplanError, load_native

from .cost import load_deviation
from .problem import EFFORTS, Floats, Nodes, Problem
from .sparse import SparseMatrix


class Solution(NamedTuple):
    """A placement ((N,) positions 0..K-1) and the tolerance that was asked of its loads in the end.

    proven: whether the solver has shown that nothing is better.
    """

    places: Nodes
    tolerance: float
    proven: bool = False


class _NativeProblem(ctypes.Structure):
    """`struct problem` of native/solver/problem.h; arrays: what its pointers point to."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in ("n", "k", "loads", "effort")),
        *((name, ctypes.c_void_p) for name in ("cells", "weight", "start", "to")),
        *((name, ctypes.c_void_p) for name in ("cost", "load", "target", "base", "slack", "extra")),
        ("tolerance", ctypes.c_double),
        ("seed", ctypes.c_uint64),
    )
    arrays: dict[str, Any]


@cache
def _library() -> ctypes.CDLL:
    library = load_native("mapper", "solver")
    problem, pointer = ctypes.POINTER(_NativeProblem), ctypes.c_void_p
    library.numaplan_solve.argtypes = [
        problem,
        ctypes.c_int,
        pointer,
        pointer,
        ctypes.POINTER(ctypes.c_double),
    ]
    library.numaplan_exact.argtypes = [problem, pointer, ctypes.c_uint64, pointer]
    return library


def solve(problem: Problem, starts: Nodes) -> Solution:
    """The best placement found.

    starts: (S, N) placements with the problem's sizes and its pins, S at least 1. Where no placement within
    the tolerance is found, the solution's tolerance says what was asked for instead.
    """
    free = _free_threads(problem)
    first = np.ascontiguousarray(starts[:, free], dtype=np.int32)
    found = np.empty(len(free), dtype=np.int32)
    tolerance = ctypes.c_double(problem.tolerance)
    if len(found) and _library().numaplan_solve(
        _native(problem, free), len(first), first.ctypes.data, found.ctypes.data, tolerance
    ):
        raise _no_memory(problem)
    return Solution(_with_pinned(problem, found), tolerance.value)


def solve_exactly(problem: Problem, start: Nodes, steps: int) -> Solution:
    """Branch and bound from a placement to start with; `proven` is false when it took more than `steps`."""
    free = _free_threads(problem)
    found = np.array(start[free], dtype=np.int32)
    sizes = np.bincount(found, minlength=problem.nodes).astype(np.int32)
    done = 1
    if len(found):
        done = _library().numaplan_exact(_native(problem, free), sizes.ctypes.data, steps, found.ctypes.data)
    if done < 0:
        raise _no_memory(problem)
    return Solution(_with_pinned(problem, found), problem.tolerance, done == 1)


def _with_pinned(problem: Problem, found: "np.ndarray[tuple[int], np.dtype[np.int32]]") -> Nodes:
    places = np.empty(problem.threads, dtype=np.int64) if problem.fixed is None else problem.fixed.copy()
    places[_free_threads(problem)] = found
    return places


def _no_memory(problem: Problem) -> NumaplanError:
    return NumaplanError(f"not enough memory to place {problem.threads} threads", "use fewer threads")


def _free_threads(problem: Problem) -> Nodes:
    """Those that are not pinned."""
    return np.arange(problem.threads) if problem.fixed is None else np.flatnonzero(problem.fixed < 0)


def _native(problem: Problem, free: Nodes) -> _NativeProblem:
    """The problem of the free threads, scaled to near 1: numbers may be anything from 1e-300 to 1e300."""
    arrays: dict[str, Any] = {"cost": _plain_costs(problem.costs)}
    _add_matrix(arrays, problem, free, _unit_scale(problem.matrix))
    kinds = _add_loads(arrays, problem, free)
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    native = _NativeProblem(
        n=len(free),
        k=problem.nodes,
        loads=kinds,
        effort=EFFORTS.index(problem.effort),
        tolerance=problem.tolerance,
        seed=problem.seed & (1 << 64) - 1,
        **{name: array.ctypes.data for name, array in arrays.items()},
    )
    native.arrays = arrays
    return native


def _plain_costs(costs: Floats) -> Floats:
    """(K, K) 0 and 1 where all other nodes are equally far: the same order of placements, sooner searched."""
    apart = 1.0 - np.eye(len(costs))
    near, far = costs[0, 0], costs[0, -1]
    return apart if far > near and np.array_equal(costs, near + (far - near) * apart) else costs


def load_rows(problem: Problem) -> tuple[Floats, Floats, Floats]:
    """What `balanced` balances: (L, N) loads, (L, K) targets and (L,) slack, the whole run's first.

    A phase in which a few threads do everything cannot be balanced: its slack is what a quick placement by
    that phase alone is off beyond the tolerance, and does not count.
    """
    rows = [problem.loads]
    if problem.every_phase and problem.phases is not None:
        rows += [row for row in problem.phases if row.any()]
    scales = np.array([_unit_scale(row) for row in rows])
    loads = np.array(rows) * scales[:, None]
    targets = np.outer(loads.sum(axis=1), problem.sizes / problem.threads)
    targets[0] = problem.targets * scales[0]
    slack = np.zeros(len(rows))
    for row in range(1, len(rows)):
        if problem.targets.sum() > 0:
            targets[row] = loads[row].sum() * problem.targets / problem.targets.sum()
        dealt = _deal_by_load(problem, loads[row], targets[row])
        slack[row] = max(0.0, load_deviation(loads[row], targets[row], dealt) - problem.tolerance)
    return loads, targets, slack


def _deal_by_load(problem: Problem, loads: Floats, targets: Floats) -> Nodes:
    """The heaviest thread first, each to the node that lacks most; pinned threads where they are."""
    places = np.full(problem.threads, -1) if problem.fixed is None else problem.fixed.copy()
    free, there = _free_threads(problem), np.flatnonzero(places >= 0)
    room = problem.sizes - np.bincount(places[there], minlength=problem.nodes)
    lacks = targets - np.bincount(places[there], loads[there], problem.nodes)
    for thread in free[np.argsort(-loads[free], kind="stable")].tolist():
        node = int(np.argmax(np.where(room > 0, lacks, -np.inf)))
        places[thread] = node
        room[node] -= 1
        lacks[node] -= loads[thread]
    return places


def _add_loads(arrays: dict[str, Any], problem: Problem, free: Nodes) -> int:
    """Loads, and what they are balanced to where they are; returns how many kinds there are."""
    if problem.objective != "balanced":
        arrays["load"] = np.zeros(len(free))
        return 1
    loads, targets, slack = load_rows(problem)
    arrays |= {"load": loads[:, free].T, "target": targets, "slack": slack}
    if problem.fixed is not None:
        pinned = np.flatnonzero(problem.fixed >= 0)
        nodes = problem.fixed[pinned]
        arrays["base"] = np.array([np.bincount(nodes, row[pinned], problem.nodes) for row in loads])
    return len(loads)


def _add_matrix(arrays: dict[str, Any], problem: Problem, free: Nodes, scale: float) -> None:
    matrix = problem.matrix
    pinned = None if problem.fixed is None else np.flatnonzero(problem.fixed >= 0)
    if pinned is not None:
        talk = _talk_to_pinned(problem, pinned)
        arrays["extra"] = arrays["cost"] @ talk[:, free] * scale
    if isinstance(matrix, SparseMatrix):
        entries = matrix if pinned is None else matrix.without(pinned)
        arrays |= {"start": entries.start, "to": entries.to, "weight": entries.weight * scale}
        return
    cells = matrix if pinned is None else matrix[np.ix_(free, free)]
    arrays["cells"] = cells * scale if scale != 1.0 else cells


def _talk_to_pinned(problem: Problem, pinned: Nodes) -> Floats:
    """(K, N) what each thread says to those pinned on each node."""
    assert problem.fixed is not None
    matrix, nodes = problem.matrix, problem.fixed[pinned]
    talk = np.zeros((problem.nodes, problem.threads))
    if isinstance(matrix, SparseMatrix):
        there = np.flatnonzero(problem.fixed[matrix.rows] >= 0)
        np.add.at(talk, (problem.fixed[matrix.rows[there]], matrix.to[there]), matrix.weight[there])
    else:
        np.add.at(talk, nodes, matrix[pinned])
    return talk


def _unit_scale(values: Floats | SparseMatrix) -> float:
    """A power of two that brings the largest entry near 1 without rounding anything that matters."""
    largest = float(values.max() if isinstance(values, SparseMatrix) else values.max(initial=0.0))
    if largest <= 0:
        return 1.0
    return float(2.0 ** -max(-1000, min(1000, int(np.frexp(largest)[1]))))
