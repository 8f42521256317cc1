"""Threads to nodes: the one call behind every method."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from numaplan.mapper.cost import as_machine
from numaplan.mapper.methods import find_method
from numaplan.mapper.placing import place_threads
from numaplan.mapper.problem import TOLERANCE, Nodes, check_phases, new_problem
from numaplan.profiler.machine import Machine


def map_threads(
    comm: ArrayLike,
    loads: ArrayLike | None,
    machine: Machine | str | dict[str, Any],
    method: str = "best",
    objective: str = "balanced",
    seed: int = 0,
    *,
    effort: str = "normal",
    tolerance: float = TOLERANCE,
    pinned: Mapping[int, int] | None = None,
    phases: ArrayLike | None = None,
) -> Nodes:
    """Place every thread on a node of the machine.

    comm: (N, N) symmetric communication, the diagonal is ignored; loads: (N,) memory load of each thread
    (None: all equal); machine: a Machine, its dict form, or what Machine.load takes; method: a name in
    `numaplan.mapper.methods.METHODS`; objective: `balanced`, `remote`, `hop` or `phased`; effort:
    `fast`, `normal` or `max`; tolerance: how far a node's load may be off its target, relatively (objectives
    `balanced` and `phased`); pinned: node id by number of the thread, for threads that must be there; phases:
    (P, N) loads by phase of the run, each of which `phased` balances for itself.

    Returns (N,) node ids; each node gets its exact number of threads (problem.node_sizes). The same input and
    seed give the same answer. Raises UsageError for input that cannot be right, naming row and column.
    """
    chosen = find_method(method)
    place = as_machine(machine)
    problem = new_problem(
        comm,
        loads,
        place,
        objective=objective,
        seed=seed,
        effort=effort,
        tolerance=tolerance,
        pinned=pinned,
        phases=check_phases(phases, np.shape(comm)[0]) if phases is not None else None,
    )
    ids = np.array([node.id for node in place.cpu_nodes], dtype=np.int64)
    return ids[place_threads(chosen, problem)]
