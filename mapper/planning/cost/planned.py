"""Where a plan puts the threads and memory that a program has today, and what that is expected to cost."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from numaplan.common import UsageError
from numaplan.machine import Machine

from ...memory.pages import PagePlan
from ...memory.planned_tables import planned_tables
from ...plan_file.parts import PlanRegion
from ...plan_file.plan import Plan
from ...threads.pins import resolve_pins
from ...threads.problem import Nodes
from ...workload.lifetimes.lanes import lanes_of
from ...workload.lifetimes.succession import shared_lanes
from ...workload.workload import Workload
from ..options import PlanOptions
from .cpu_sets import Sets
from .placement import Placement
from .timed_task import SELDOM, TimedTask

_OTHER_THREADS = "record with as many threads as planned, or plan again"


class Seat(NamedTuple):
    """Node id and cpus that a plan gives a thread."""

    node: int
    cpus: tuple[int, ...]


Seats = Sequence[Seat]


def seats_of(plan: Plan, workload: Workload, name: str) -> Seats:
    """What the plan `name` gives each of today's threads; one that it lacks follows one of its threads that
    ended before it, where their creator is the same.

    Raises UsageError when there is none to follow, or when today's run has fewer than half of the plan's
    threads: the node loads of such a run say nothing of the plan.
    """
    threads = workload.threads
    planned = {(thread.process, thread.path): Seat(thread.node, thread.cpus) for thread in plan.threads}
    lane = lanes_of(threads, workload.lives).tolist() if workload.lives else range(len(threads))
    before = {of: planned.get(threads[at]) for at, of in reversed(list(enumerate(lane)))}
    found = [planned.get(key) or before[of] for key, of in zip(threads, lane, strict=True)]
    unknown = [key for key, seat in zip(threads, found, strict=True) if seat is None]
    if unknown:
        process, path = unknown[0]
        raise UsageError(
            f"{name}: {len(unknown)} of today's {len(threads)} threads are not in it"
            f" (first: {process} {path})",
            _OTHER_THREADS,
        )
    if len(planned) > 2 * len(threads):
        raise UsageError(
            f"{name}: for {len(planned)} threads, today there are {len(threads)}", _OTHER_THREADS
        )
    return [seat for seat in found if seat is not None]


def check_cpus(seats: Seats, threads: Sequence[tuple[str, str]], usable: Machine, name: str) -> None:
    """Raises UsageError when a thread has a cpu that the plan's own options leave out."""
    left = set(usable.cpus)
    for seat, (process, path) in zip(seats, threads, strict=True):
        if out := set(seat.cpus) - left:
            raise UsageError(
                f"{name}: {process} {path} has cpu {min(out)}, which the plan's options leave out",
                "correct its cpus, or plan again",
            )


def lanes_by_plans(
    workload: Workload, options: PlanOptions, usable: Machine, plans: Sequence[Seats]
) -> Nodes:
    """(N,) lane of each thread: those that do not live at the same time are one where all plans seat them
    alike, so that each plan's later threads are judged where that has them.

    Of plans by `make_plan` for this workload the lanes are those that they were made with.
    """
    if not workload.lives:
        return np.arange(len(workload.threads))
    nodes, cpus = resolve_pins(options.pins, workload.threads, usable)
    count = len(workload.threads)
    apart = {at: (nodes.get(at), cpus.get(at), *(seats[at] for seats in plans)) for at in range(count)}
    return shared_lanes(workload, len(usable.cpus), apart)


def of_lanes(seats: Seats, lane: Nodes) -> Seats:
    """(lanes,) the seat that all threads of each lane have."""
    return [seats[thread] for thread in np.unique(lane, return_index=True)[1].tolist()]


def planned_placement(
    task: TimedTask, name: str, seats: Seats, memory: Sequence[PlanRegion]
) -> tuple[Placement, tuple[PlanRegion, ...]]:
    """With the plan's cpus and memory, what it does not place being where it is touched first; and what it
    places that is not there today. seats: (N,) of the task's threads."""
    places, cpus = _places(task, seats), [seat.cpus for seat in seats]
    found = planned_tables(memory, task.pages.recorded, task.rows[places], task.machine)
    pages = PagePlan(tuple(memory), tables=found.tables) if found.tables else None
    roams = _roams(task, cpus)
    traffic = task.reaching(task.traffic(places, pages, roams=roams), places)
    cost = task.cost(cpus, _taken(task, places, cpus), traffic)
    return Placement(name, places, cpus, pages, traffic, cost, roams=roams), found.missing


def _places(task: TimedTask, seats: Seats) -> Nodes:
    """(N,) the place that each thread's cpus are at; of several on its node one after the other."""
    turns: dict[tuple[int, ...], int] = {}
    answer = []
    for seat in seats:
        own = _places_of(task, seat.cpus)
        here = tuple(place for place in own if task.ids[place] == seat.node) or own
        turns[here] = turns.get(here, -1) + 1
        answer.append(here[turns[here] % len(here)])
    return np.array(answer, np.int64)


def _places_of(task: TimedTask, cpus: Sequence[int]) -> tuple[int, ...]:
    place_of = task.domains.machine.node_of_cpu
    return tuple(sorted({place_of[cpu] for cpu in cpus}))


def _taken(task: TimedTask, places: Nodes, cpus: Sets) -> Sets:
    """(N,) a cpu of its own for each thread, where it has several; one that it has in any case."""
    seats = task.cpus.seats(places)
    return [
        seat if seat[0] in own else (own[thread % len(own)],)
        for thread, (seat, own) in enumerate(zip(seats, cpus, strict=True))
    ]


def _roams(task: TimedTask, cpus: Sets) -> bool:
    """Whether pools that would keep to their memory go from place to place, as they have to wait for cpus."""
    if not any(
        stays and any(len(_places_of(task, cpus[thread])) > 1 for thread in np.setdiff1d(pool, task.fixed))
        for pool, stays in zip(task.pools, task.pages.staying, strict=True)
    ):
        return False
    free = np.setdiff1d(np.concatenate(task.pools), task.fixed)
    return bool(task.cpus.waits(cpus)[free].max(initial=0.0) > SELDOM)
