"""The native solver (`native/solver/`): loading it and asking it."""

import ctypes
from functools import cache
from typing import NamedTuple

import numpy as np

from numaplan.common import NumaplanError
from numaplan.common.native import load_native
from numaplan.mapper.problem import Nodes, Problem
from numaplan.mapper.solver_task import free_threads, new_task


class Solution(NamedTuple):
    """A placement ((N,) positions 0..K-1) and the tolerance that was asked of its loads in the end.

    proven: whether the solver has shown that nothing is better.
    """

    places: Nodes
    tolerance: float
    proven: bool = False


@cache
def _library() -> ctypes.CDLL:
    library = load_native(__file__, "solver")
    pointer, number = ctypes.c_void_p, ctypes.c_int
    library.numaplan_solve.argtypes = [pointer, number, *[pointer] * 3]
    library.numaplan_exact.argtypes = [pointer, pointer, ctypes.c_uint64, *[pointer] * 2]
    return library


def solve(problem: Problem, starts: Nodes) -> Solution:
    """The best placement found.

    starts: (S, N) placements with the problem's sizes and its pins, S at least 1. Where no placement within
    the tolerance is found, the solution's tolerance says what was asked for instead.
    """
    task = new_task(problem)
    first = np.ascontiguousarray(starts[:, task.free], dtype=np.int32)
    found = np.empty(len(task.free), dtype=np.int32)
    outcome = np.array([problem.tolerance, 0.0])
    if len(found) and _library().numaplan_solve(
        task.address, len(first), first.ctypes.data, found.ctypes.data, outcome.ctypes.data
    ):
        raise _no_memory(problem)
    return Solution(_with_pinned(problem, found), float(outcome[0]))


def solve_exactly(problem: Problem, start: Nodes, steps: int) -> Solution:
    """Branch and bound from a placement to start with; `proven` is false when it took more than `steps`."""
    task = new_task(problem)
    found = np.array(start[task.free], dtype=np.int32)
    sizes = np.bincount(found, minlength=problem.nodes).astype(np.int32)
    outcome, done = np.array([problem.tolerance, 0.0]), 1
    if len(found):
        done = _library().numaplan_exact(
            task.address, sizes.ctypes.data, steps, found.ctypes.data, outcome.ctypes.data
        )
    if done < 0:
        raise _no_memory(problem)
    return Solution(_with_pinned(problem, found), float(outcome[0]), done == 1)


def _with_pinned(problem: Problem, found: "np.ndarray[tuple[int], np.dtype[np.int32]]") -> Nodes:
    places = np.empty(problem.threads, dtype=np.int64) if problem.fixed is None else problem.fixed.copy()
    places[free_threads(problem)] = found
    return places


def _no_memory(problem: Problem) -> NumaplanError:
    return NumaplanError(f"not enough memory to place {problem.threads} threads", "use fewer threads")
