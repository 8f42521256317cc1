"""The native solver (`native/solver/`): loading it, and its arrays in and out."""

import ctypes
from functools import cache
from typing import NamedTuple

import numpy as np

from numaplan.common import NumaplanError
from numaplan.common.native import load_native
from numaplan.mapper.problem import EFFORTS, Floats, Nodes, Problem


class Solution(NamedTuple):
    """A placement ((N,) positions 0..K-1), the tolerance that was asked of its loads in the end, its cost.

    proven: whether the solver has shown that nothing is better.
    """

    places: Nodes
    tolerance: float
    cost: float
    proven: bool = False


@cache
def _library() -> ctypes.CDLL:
    library = load_native(__file__, "solver")
    pointer, number, real = ctypes.c_void_p, ctypes.c_int, ctypes.c_double
    library.numaplan_solve.argtypes = [
        *[number] * 2, *[pointer] * 4, real, number, pointer, ctypes.c_uint64, number, *[pointer] * 2
    ]  # fmt: skip
    library.numaplan_exact.argtypes = [
        *[number] * 2, *[pointer] * 4, real, pointer, ctypes.c_uint64, *[pointer] * 2
    ]  # fmt: skip
    return library


def _unit_scale(comm: Floats) -> float:
    """A power of two that brings the largest entry near 1 without rounding anything that matters."""
    largest = float(comm.max(initial=0.0))
    if largest <= 0:
        return 1.0
    return float(2.0 ** -max(-1000, min(1000, int(np.frexp(largest)[1]))))


def _arrays(problem: Problem) -> tuple[Floats, Floats, Floats, Floats, float]:
    """comm, costs, loads and targets as the solver wants them, and the scale of comm.

    Loads are scaled to a total near 1: they too may be anything from 1e-300 to 1e300.
    """
    scale = _unit_scale(problem.comm)
    comm = problem.comm * scale if scale != 1.0 else problem.comm
    factor = _unit_scale(problem.loads)
    loads = problem.loads * factor
    shares = problem.targets * factor
    return comm, np.ascontiguousarray(problem.costs), loads, shares, scale


def solve(problem: Problem, starts: Nodes) -> Solution:
    """The best placement found. starts: (S, N) placements with the problem's sizes, S at least 1."""
    comm, costs, loads, targets, scale = _arrays(problem)
    first = np.ascontiguousarray(starts, dtype=np.int32)
    places = np.empty(problem.threads, dtype=np.int32)
    outcome = np.zeros(2)
    balanced = problem.objective == "balanced"
    failed = _library().numaplan_solve(
        problem.threads, problem.nodes, comm.ctypes.data, costs.ctypes.data, loads.ctypes.data,
        targets.ctypes.data if balanced else None, problem.tolerance, len(first), first.ctypes.data,
        problem.seed & (1 << 64) - 1, EFFORTS.index(problem.effort), places.ctypes.data, outcome.ctypes.data,
    )  # fmt: skip
    if failed:
        raise NumaplanError(f"not enough memory to place {problem.threads} threads", "use fewer threads")
    return Solution(places.astype(np.int64), float(outcome[0]), float(outcome[1]) / scale)


def solve_exactly(problem: Problem, start: Nodes, steps: int) -> Solution:
    """Branch and bound from a placement to start with; `proven` is false when it took more than `steps`."""
    comm, costs, loads, targets, scale = _arrays(problem)
    places = np.array(start, dtype=np.int32)
    outcome = np.zeros(2)
    balanced = problem.objective == "balanced"
    done = _library().numaplan_exact(
        problem.threads, problem.nodes, comm.ctypes.data, costs.ctypes.data, loads.ctypes.data,
        targets.ctypes.data if balanced else None, problem.tolerance,
        np.ascontiguousarray(problem.sizes, dtype=np.int32).ctypes.data, steps,
        places.ctypes.data, outcome.ctypes.data,
    )  # fmt: skip
    if done < 0:
        raise NumaplanError(f"not enough memory to place {problem.threads} threads", "use fewer threads")
    return Solution(places.astype(np.int64), float(outcome[0]), float(outcome[1]) / scale, done == 1)
