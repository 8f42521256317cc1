"""Threads to nodes: the one call behind every method."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from numaplan.common import UsageError
from numaplan.machine import Machine

from .cost import as_machine
from .inputs import check_phases
from .methods import Method, find_method
from .phases import MOST_THREADS, goal_of, phase_loads
from .pins import hold_pins
from .problem import TOLERANCE, Nodes, Problem, new_problem
from .refine import refine


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
    starts: Sequence[ArrayLike] = (),
) -> Nodes:
    """Place every thread on a node of the machine.

    comm: (N, N) symmetric communication, the diagonal is ignored; loads: (N,) memory load of each thread
    (None: all equal); machine: a Machine, its dict form, or what Machine.load takes; method: a name in
    `numaplan.mapper.methods.METHODS`; objective: `balanced`, `remote`, `hop` or `phased`; effort:
    `fast`, `normal` or `max`; tolerance: how far a node's load may be off its target, relatively (objectives
    `balanced` and `phased`); pinned: node id by number of the thread, for threads that must be there; phases:
    (P, N) loads by phase of the run, each of which `phased` balances for itself; starts: (N,) node
    ids each, with as many threads a node as it gets; `best` begins with these and is not worse than any.

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
    if len(starts):
        problem = replace(problem, starts=tuple(_positions(start, ids, problem.sizes) for start in starts))
    return ids[place_threads(chosen, problem)]


def _positions(start: ArrayLike, ids: Nodes, sizes: Nodes) -> Nodes:
    """A placement by node positions; raises UsageError when it is none for this task."""
    row = {node: position for position, node in enumerate(ids.tolist())}
    places = np.array([row.get(node, -1) for node in np.asarray(start).tolist()], dtype=np.int64)
    if (places < 0).any() or not np.array_equal(np.bincount(places, minlength=len(ids)), sizes):
        threads = ", ".join(f"{size} on {node}" for node, size in zip(row, sizes.tolist(), strict=True))
        raise UsageError(
            "a placement to start from that is none of this task", f"place threads so: {threads}"
        )
    return places


def place_threads(method: Method, problem: Problem) -> Nodes:
    """(N,) node positions by a method, pinned threads where they are pinned.

    A method that knows no pins gives a placement in which pinned threads are exchanged in where that costs
    least. For the objective `phased` `best` goes on from balance in every phase alike to what each phase
    matters. Raises UsageError where the method does not handle phases (the proof of
    `exact` would not hold).
    """
    phased = problem.objective == "phased"
    if phased and not method.takes_phases:
        raise UsageError(f"the method {method.name} does not handle phases", "take --method best")
    plain = problem if method.takes_pins else replace(problem, fixed=None)
    if phased:
        several = len(phase_loads(problem)[0]) > 1
        plain = replace(plain, objective="balanced", every_phase=several)
    places = hold_pins(problem, method(plain))
    if not phased or method.name != "best" or problem.sparse is not None or problem.threads > MOST_THREADS:
        return places
    return refine(goal_of(problem), places)
