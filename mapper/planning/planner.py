"""Make a plan: threads to nodes and cpus, pages to nodes, and its cost beside today's placement."""

import msgspec
import numpy as np

from numaplan.analyzer import PageCounts
from numaplan.common import version
from numaplan.machine import Machine

from ..memory.capacity import faster_memory_note
from ..memory.pages import PagePlan, place_pages
from ..plan_file.parts import PlanMachine, PlanThread
from ..plan_file.plan import Plan
from ..threads.cost import imbalance
from ..threads.mapping import place_threads
from ..threads.methods import find_method
from ..threads.phases import phase_imbalance
from ..threads.pins import resolve_pins
from ..threads.problem import Nodes, Problem, new_problem
from ..threads.seats import assign_cpus
from ..workload.workload import Workload
from .co_place import co_place
from .options import PlanOptions
from .predict import predict, with_memory


class Planned(msgspec.Struct, frozen=True):
    """A plan, and what is worth saying about it to people."""

    plan: Plan
    notes: tuple[str, ...]


def make_plan(workload: Workload, machine: Machine, options: PlanOptions) -> Planned:
    """Plan a workload for a machine.

    Raises UsageError for an unknown method, objective or node and for a matrix or loads that cannot be right.
    """
    method = find_method(options.method)
    usable = options.usable(machine)
    problem = problem_for(workload, usable, options)
    places = place_threads(method, problem)
    pages = PagePlan((), -1.0)
    if workload.pages:
        places, pages = _with_pages(problem, places, workload.pages, usable, machine, options)
    ids = np.array([node.id for node in usable.cpu_nodes])
    nodes = ids[places].tolist()
    pinned = resolve_pins(options.pins, workload.threads, usable)[1]
    cpus = assign_cpus(problem.matrix, usable, nodes, pinned, problem.loads)
    threads = tuple(
        PlanThread(
            process=process, path=path, thread=i, node=nodes[i], cpus=cpus[i], load=float(f"{load:.9g}")
        )
        for i, ((process, path), load) in enumerate(zip(workload.threads, problem.loads, strict=True))
    )
    predicted = predict(problem, places, usable, machine)
    if workload.pages:
        seen = workload.seen_on if _recorded_here(workload, machine) else ()
        predicted = with_memory(predicted, workload.pages, pages, problem, usable, machine, seen)
    plan = Plan(
        app=workload.app,
        machine=PlanMachine.of(machine),
        method=options.method,
        objective=options.objective,
        threads=threads,
        memory=pages.memory,
        predicted=predicted,
        provenance={
            **workload.sources,
            "options": options.recorded(),
            **({"identity": workload.identity} if workload.identity else {}),
            "version": version(),
        },
    )
    return Planned(
        plan,
        (
            *workload.notes,
            *_crowded(problem, usable),
            *_remarks(problem, places, options),
            *_changing(pages, options),
            *faster_memory_note(pages.traffic, machine),
            *_left_out(pages),
        ),
    )


def _with_pages(
    problem: Problem,
    places: Nodes,
    stats: PageCounts,
    usable: Machine,
    machine: Machine,
    options: PlanOptions,
) -> tuple[Nodes, PagePlan]:
    """Threads and pages; only `best` lets threads follow their pages, as other methods are what they are."""
    if options.method == "best" and problem.sparse is None:
        return co_place(problem, places, stats, usable, machine, next_touch=options.next_touch)
    ids = np.array([node.id for node in usable.cpu_nodes])
    return places, place_pages(stats, ids[places], machine, next_touch=options.next_touch)


def _recorded_here(workload: Workload, machine: Machine) -> bool:
    """Whether the recording was made on the machine that is planned for, and it has more than one node."""
    if workload.machine is None or len(machine.cpu_nodes) < 2:
        return False
    known = {node.id for node in machine.nodes}
    return workload.machine.fingerprint == machine.fingerprint and set(workload.seen_on) <= known


def problem_for(workload: Workload, machine: Machine, options: PlanOptions) -> Problem:
    """The mapping task of a workload."""
    return new_problem(
        workload.comm,
        workload.loads,
        machine,
        objective=options.objective,
        seed=options.seed,
        effort=options.effort,
        tolerance=options.tolerance,
        phases=workload.phases,
        phase_rates=workload.phase_rates,
        pinned=resolve_pins(options.pins, workload.threads, machine)[0],
    )


def _crowded(problem: Problem, usable: Machine) -> list[str]:
    if problem.threads <= len(usable.cpus):
        return []
    return [f"{problem.threads} threads share {len(usable.cpus)} cpu{'s' * (len(usable.cpus) > 1)}"]


def _left_out(pages: PagePlan) -> list[str]:
    """What the plan does not list."""
    if not pages.left:
        return []
    size = sum(key.bytes for key in pages.left)
    return [
        f"{len(pages.left)} small regions of libraries, {size / (1 << 20):.1f} MiB, are as good where they"
        " are touched first: not in the plan"
    ]


def _changing(pages: PagePlan, options: PlanOptions) -> list[str]:
    """Memory whose users change during the run: what moving it along is worth, and who can."""
    along = "moving it with them makes" if options.next_touch else "--next-touch would make"
    own = "marking it for next touch as they do (numaplan.h) would make"
    return [
        f"{key.kind} {key.name}: its users change from {at}; {words} {gain:.0%} more of its accesses local"
        for found, at, words in (
            (pages.moving, "one team of threads to the next", along),
            (pages.changing, "phase to phase", own),
        )
        for key, gain in found[:3]
    ]


def _remarks(problem: Problem, places: Nodes, options: PlanOptions) -> list[str]:
    remarks = []
    if problem.objective == "phased":
        off = phase_imbalance(problem, places)
        if problem.phases is None or len(problem.phases) < 2:
            remarks.append("the run has one phase: the objective phased is the same as balanced")
        elif off > problem.tolerance + 1e-9:
            remarks.append(
                f"no placement was found that keeps every node within {problem.tolerance:.0%} of its share in"
                f" every phase; this one is off by at most {off:.1%}"
            )
    if options.pins and not find_method(options.method).takes_pins:
        remarks.append(
            f"{options.method} does not support pins: pinned threads were exchanged into its placement"
        )
    if problem.threads == 1:
        return remarks  # nothing to balance, nobody to talk to
    if problem.objective == "balanced":
        off = imbalance(problem, places)
        if off > problem.tolerance + 1e-9:
            remarks.append(
                f"no placement keeps every node within {problem.tolerance:.0%} of its share of the load;"
                f" this one is close to the best found: off by at most {off:.1%}"
            )
    if not problem.matrix.any():
        remarks.append("the threads do not communicate: any placement is as good as another")
    return remarks
