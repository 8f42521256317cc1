"""What a mapping method is asked: communication, memory load, and how many seats each node has.

Everything is checked once (inputs.py), so that methods need not; nodes are numbered 0..K-1 in the order of
the machine's nodes that have cpus.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from numaplan.common import UsageError
from numaplan.machine import Machine, mean_transfers

from .inputs import check_loads, check_matrix, check_sums
from .sparse import SparseMatrix

OBJECTIVES = ("time", "balanced", "remote", "hop", "phased")
PRICED = ("hop", "time")  # by the distance: of nodes, and what lines take between them
EFFORTS = ("fast", "normal", "max")
TOLERANCE = 0.05

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]


@dataclass(frozen=True)
class Problem:
    """One mapping problem.

    comm: (N, N) symmetric, zero diagonal; loads: (N,); sizes: (K,) threads each node gets, summing to N;
    distances: (K, K) symmetric; targets: (K,) the load each node should carry; tolerance: how far, relative
    to the target, a node's load may be off for the objective `balanced`; starts: placements with these
    sizes that `best` must not be worse than; phases: (P, N) loads by phase of the run, where known, and
    phase_rates: (P,) accesses a time in each.
    fixed: (N,) node position 0..K-1 that a thread is pinned to, -1 where it is free; no node may be given
    more than its size, and `best` and `exact` never move these. every_phase: `balanced` then keeps the
    tolerance in each row of `phases` as well as over the whole run. mapping.py sees to pins for the methods
    that know none, and to the objective `phased`. sparse: the communication of a large sparse problem, whose
    comm is empty. groups: (K,) number of the group that each node is of, as a machine's node is one of its
    caches: threads are dealt to groups first, then to the nodes of each. None: each is one of its own.
    """

    comm: Floats
    loads: Floats
    sizes: Nodes
    distances: Floats
    targets: Floats
    objective: str = "balanced"
    seed: int = 0
    effort: str = "normal"
    tolerance: float = TOLERANCE
    starts: tuple[Nodes, ...] = ()
    phases: Floats | None = None
    fixed: Nodes | None = None
    every_phase: bool = False
    phase_rates: Floats | None = None
    sparse: SparseMatrix | None = None
    groups: Nodes | None = None

    @property
    def matrix(self) -> Floats | SparseMatrix:
        """The communication in the form it has."""
        return self.comm if self.sparse is None else self.sparse

    @cached_property
    def threads(self) -> int:
        """N, the number of threads."""
        return len(self.loads)

    @cached_property
    def nodes(self) -> int:
        """K, the number of nodes that have cpus."""
        return len(self.sizes)

    @cached_property
    def costs(self) -> Floats:
        """(K, K) what one unit of communication between two nodes costs under the objective."""
        return self.distances if self.objective in PRICED else 1.0 - np.eye(self.nodes)


def check_words(objective: str, effort: str) -> None:
    """Raises UsageError with the known words for one that is not."""
    if objective not in OBJECTIVES:
        raise UsageError(f"unknown objective {objective!r}", f"take one of {', '.join(OBJECTIVES)}")
    if effort not in EFFORTS:
        raise UsageError(f"unknown effort {effort!r}", f"take one of {', '.join(EFFORTS)}")


def new_problem(
    comm: ArrayLike | SparseMatrix,
    loads: ArrayLike | None,
    machine: Machine,
    *,
    objective: str = "balanced",
    seed: int = 0,
    effort: str = "normal",
    tolerance: float = TOLERANCE,
    phases: Floats | None = None,
    phase_rates: Floats | None = None,
    pinned: Mapping[int, int] | None = None,
    groups: Nodes | None = None,
) -> Problem:
    """Check everything and make the problem; raises UsageError naming the row and column, thread or option.

    pinned: node id by number of the thread; groups: (K,) of the nodes that have cpus, as in Problem.
    """
    check_words(objective, effort)
    if not 0 <= tolerance <= 1:
        raise UsageError(f"tolerance {tolerance}", "give a share between 0 and 1, such as 0.05")
    matrix = check_matrix(comm)
    load = check_loads(loads, len(matrix))
    seats = np.array([len(node.cpus) for node in machine.cpu_nodes], dtype=np.int64)
    if not len(seats):
        raise UsageError("the machine has no node with cpus", "give another --machine")
    check_sums(matrix, load)
    pins = check_pins(pinned or {}, len(matrix), machine)
    distances = cpu_distances(machine)
    if objective == "time":
        distances = mean_transfers(machine, [node.cpus for node in machine.cpu_nodes])
    return Problem(
        comm=np.zeros((0, 0)) if isinstance(matrix, SparseMatrix) else matrix,
        sparse=matrix if isinstance(matrix, SparseMatrix) else None,
        loads=load,
        sizes=with_pins(_sizes(len(matrix), seats, groups), pins),
        distances=(distances + distances.T) / 2,
        targets=load.sum() * (seats / seats.sum()),
        objective=objective,
        seed=seed,
        effort=effort,
        tolerance=tolerance,
        phases=phases,
        phase_rates=phase_rates,
        fixed=pins if (pins >= 0).any() else None,
        groups=groups,
    )


def cpu_distances(machine: Machine) -> Floats:
    """(K, K) distances between the nodes that have cpus."""
    rows = [machine.index_of_node(node.id) for node in machine.cpu_nodes]
    return machine.distance_matrix[np.ix_(rows, rows)]


def check_pins(pinned: Mapping[int, int], threads: int, machine: Machine) -> Nodes:
    """(N,) position of each pinned thread's node, -1 for the others; raises UsageError naming the pin."""
    position = {node.id: place for place, node in enumerate(machine.cpu_nodes)}
    pins = np.full(threads, -1, dtype=np.int64)
    for thread, node in pinned.items():
        if not 0 <= thread < threads:
            raise UsageError(f"pinned thread {thread}: there are {threads}", "pin an existing thread")
        if node not in position:
            raise UsageError(
                f"thread {thread} pinned to node {node}, which has no usable cpus", "pin elsewhere"
            )
        pins[thread] = position[node]
    return pins


def with_pins(sizes: Nodes, pins: Nodes) -> Nodes:
    """Sizes that hold the pins: nodes with more pins than seats take them from those with most to spare."""
    held = np.bincount(pins[pins >= 0], minlength=len(sizes))
    answer = np.maximum(sizes, held)
    for _ in range(int(answer.sum() - sizes.sum())):
        answer[int(np.argmax(answer - held))] -= 1
    return answer


def _sizes(threads: int, seats: Nodes, groups: Nodes | None) -> Nodes:
    """(K,) how many threads each node gets, as node_sizes; of several groups, these first."""
    if groups is None:
        return node_sizes(threads, seats)
    group = np.unique(groups, return_inverse=True)[1]
    answer = np.zeros_like(seats)
    for number, share in enumerate(node_sizes(threads, np.bincount(group, seats).astype(np.int64)).tolist()):
        own = np.flatnonzero(group == number)
        answer[own] = node_sizes(share, seats[own])
    return answer


def node_sizes(threads: int, seats: Nodes) -> Nodes:
    """(K,) how many threads each node gets: proportional to its seats, the remainder by largest fraction.

    Equal nodes get N div K, the first N mod K one more (as EagerMap's groups); more threads than seats
    oversubscribe in proportion.
    """
    shares = threads * seats
    sizes: Nodes = shares // seats.sum()
    fractions = shares - sizes * seats.sum()
    order = np.argsort(-fractions, kind="stable")
    sizes[order[: threads - int(sizes.sum())]] += 1
    return sizes
