"""What a program costs without a plan: left to the kernel, or bound or interleaved by hand.

The kernel starts threads on one node after the other, moves them about, and puts pages where they are touched
first; then AutoNUMA moves them.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from numaplan.machine import Cost

from ..memory.run_table import RunTable
from ..plan_file.touched import STAYS as STAYS
from ..threads.problem import Nodes
from .cpu_sets import Sets
from .timed_task import Placement, TimedTask

NO_TABLES: Mapping[int, RunTable] = MappingProxyType({})
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
    if tables:
        touched = task.pages.planned_traffic(tables, rows, nodes, planned=False)
    else:
        touched = task.pages.first_touch_traffic(rows, nodes, planned=False)
    spread = np.repeat(touched.mean(axis=1, keepdims=True), nodes, axis=1)
    traffic = task.reaching(spread if interleaved else touched, start)
    everywhere = np.array([cpu for node in places for cpu in node.cpus])
    turn = {cpu: place for place, cpu in enumerate(everywhere.tolist())}
    first = np.array([turn[own[0]] for own in task.cpus.seats(start)])
    cpus = [tuple(everywhere.tolist())] * len(first)
    shifts = np.unique(np.linspace(0, len(turn), MOST_SHIFTS, endpoint=False).astype(int))
    seats = [everywhere[(first + shift) % len(turn)] for shift in shifts]
    moved = 0.0 if interleaved else task.pages.pages_moved(rows, nodes, STAYS, but=tables)
    costs = [task.cost(cpus, [(cpu,) for cpu in seat.tolist()], traffic, moved) for seat in seats]
    weights = np.append(STAYS, np.full(len(costs) - 1, (1 - STAYS) / max(len(costs) - 1, 1)))
    parts = [[getattr(cost, field) for field in Cost.__struct_fields__] for cost in costs]
    mean = Cost(*(weights @ np.array(parts) / weights.sum()).tolist())
    name = "alone, interleaved" if interleaved else "alone"
    return Placement(name, start, cpus, None, traffic, mean, bound=False)


def in_order(task: TimedTask) -> Placement:
    """Each thread bound to a cpu of its own in order of creation, node after node, and no more: memory is the
    kernel's, which moves it (AutoNUMA)."""
    seats = [(place, cpu) for place, node in enumerate(task.domains.machine.nodes) for cpu in node.cpus]
    turns = np.array(seats)[np.arange(task.problem.threads) % len(seats)]
    places = turns[:, 0]
    cpus: Sets = [(int(cpu),) for cpu in turns[:, 1]]
    rows, nodes = task.rows[places], len(task.machine.nodes)
    traffic = task.reaching(task.pages.first_touch_traffic(rows, nodes, planned=False), places)
    cost = task.cost(cpus, cpus, traffic, task.pages.pages_moved(rows, nodes))
    return Placement("bound in order", places, cpus, None, traffic, cost)


def _begun(task: TimedTask) -> Nodes:
    """(N,) place of each thread as it begins."""
    return task.places_on(task.seen_on) if task.seen_on else task.mapped("scatter")
