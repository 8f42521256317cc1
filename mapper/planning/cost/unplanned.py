"""What a program costs without a plan: left to the kernel, or bound or interleaved by hand.

The kernel starts threads on one node after the other, moves them about, and puts pages where they are touched
first; then AutoNUMA moves them.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from numaplan.machine import Cost

from ...memory.page_moves import STILL
from ...memory.run_table import NO_TABLES, RunTable
from ...threads.problem import Nodes
from .cpu_sets import Sets
from .lines import ways_anywhere
from .placement import Placement
from .timed_task import TimedTask

# Of its time, that a thread nobody binds has its memory where it is: by what the lab counted local.
NEAR = 0.875
STAYS = 0.5  # of its time, that it is where it began
MOST_SHIFTS = 16  # placements that stand for all that the kernel may choose


def alone(
    task: TimedTask, *, interleaved: bool = False, tables: Mapping[int, RunTable] = NO_TABLES
) -> Placement:
    """Threads where they were recorded, or one node after the other, and moved about.

    interleaved: with the memory of all spread over the nodes, where AutoNUMA leaves it; tables: regions that
    the program places itself, by number.
    """
    start = _begun(task)
    rows, nodes, places = task.rows[start], len(task.machine.nodes), task.domains.machine.nodes
    touched = task.pages.kernel_traffic(rows, nodes, tables)
    spread = np.repeat(touched.mean(axis=1, keepdims=True), nodes, axis=1)
    traffic = task.reaching(spread if interleaved else touched, start)
    everywhere = np.array([cpu for node in places for cpu in node.cpus])
    turn = {cpu: place for place, cpu in enumerate(everywhere.tolist())}
    first = np.array([turn[own[0]] for own in task.cpus.seats(start)])
    cpus = [tuple(everywhere.tolist())] * len(first)
    shifts = np.unique(np.linspace(0, len(turn), MOST_SHIFTS, endpoint=False).astype(int))
    seats = [everywhere[(first + shift) % len(turn)] for shift in shifts]
    near, about = near_memory(task), task.unbound.moved
    among = len(task.machine.cpu_nodes)
    moved = STILL if interleaved else task.pages.roaming_moves(rows, among, about, near, tables)
    where = task.domains.machine.node_of_cpu
    ways = None if task.seen_on else ways_anywhere(task.use, task.machine, where)
    costs = [task.cost(cpus, [(cpu,) for cpu in seat.tolist()], traffic, moved, ways=ways) for seat in seats]
    name = "alone, interleaved" if interleaved else "alone"
    cost = _mean(costs, near, _staying(task, STAYS))
    return Placement(name, start, cpus, None, traffic, cost, bound=False, moved=not interleaved)


def near_memory(task: TimedTask) -> float:
    """The share of its time that a thread nobody binds has its memory where it is."""
    return _staying(task, NEAR)


def _staying(task: TimedTask, share: float) -> float:
    """A share of the time of threads that the kernel moves about: less often those of a process that is there
    for a part of the run; one that runs alone stays where it is."""
    return 1 - (1 - share) * task.unbound.moved


def _mean(costs: Sequence[Cost], near: float, stays: float) -> Cost:
    """Of threads where they begin (the first cost), and shifted; near, stays: the part 0..1 of the first in
    what is waited for memory, and in the rest."""

    def part(field: str) -> float:
        first, *others = (float(getattr(cost, field)) for cost in costs)
        begins = near if field in ("memory_ns", "queue_ns") else stays
        return begins * first + (1 - begins) * float(np.mean(others)) if others else first

    return Cost(*(part(field) for field in Cost.__struct_fields__))


def in_order(task: TimedTask, ranks: Nodes | None = None) -> Placement:
    """Each thread bound to a cpu of its own in order of creation, node after node, and no more: memory is the
    kernel's, which moves it (AutoNUMA). ranks: (N,) another order."""
    seats = [(place, cpu) for place, node in enumerate(task.domains.machine.nodes) for cpu in node.cpus]
    turns = np.array(seats)[(task.ranks if ranks is None else ranks) % len(seats)]
    places = turns[:, 0]
    cpus: Sets = [(int(cpu),) for cpu in turns[:, 1]]
    rows, nodes = task.rows[places], len(task.machine.nodes)
    traffic = task.reaching(task.pages.kernel_traffic(rows, nodes), places)
    cost = task.cost(cpus, cpus, traffic, task.pages.page_moves(rows, nodes))
    return Placement("bound in order", places, cpus, None, traffic, cost, moved=True)


def in_openmp_order(task: TimedTask) -> Placement:
    """The same where OpenMP binds its threads: by its own numbers, whatever else the program has made."""
    return in_order(task, np.arange(task.problem.threads))


def _begun(task: TimedTask) -> Nodes:
    """(N,) place of each thread as it begins."""
    return task.places_on(task.seen_on) if task.seen_on else task.mapped("scatter")
