"""Threads placed by their communication and loads, pages after them: every objective but `time`."""

import msgspec
import numpy as np

from numaplan.analyzer import PageCounts
from numaplan.common import counted
from numaplan.machine import Machine

from ..memory.pages import PagePlan, place_pages
from ..threads.cost import imbalance
from ..threads.mapping import place_threads
from ..threads.methods import find_method
from ..threads.phases import phase_imbalance
from ..threads.problem import Nodes, Problem
from ..threads.seats import assign_cpus
from .balance import balanced_places, negligible
from .co_place import co_place
from .options import PlanOptions
from .page_notes import page_notes
from .predict import predict, with_memory
from .task import Placed, PlanTask, problem_for


def place_for_threads(task: PlanTask) -> Placed:
    """By the method and the objective of the options."""
    workload, usable, machine, options = task.workload, task.usable, task.machine, task.options
    problem = problem_for(workload, usable, options, task.nodes)
    places, pages = _places(problem, usable, options), PagePlan((), -1.0)
    if workload.pages:
        places, pages = _with_pages(problem, places, workload.pages, usable, machine, options)
    nodes = np.array([node.id for node in usable.cpu_nodes])[places].tolist()
    cpus = assign_cpus(problem.matrix, usable, nodes, task.cpus, problem.loads)
    for row in set(task.loose) - set(task.cpus):
        cpus[row] = usable.cpu_nodes[places[row]].cpus
    predicted = predict(problem, places, usable, machine)
    if (np.bincount(places, minlength=problem.nodes) != problem.sizes).any():
        predicted = msgspec.structs.replace(predicted, lower_bound=-1.0)  # it is of exact seats
    if workload.pages:
        predicted = with_memory(predicted, workload.pages, pages, problem, usable, machine, task.seen_on)
    return Placed(
        nodes=nodes,
        cpus=cpus,
        pages=pages,
        predicted=predicted,
        notes=(
            *crowded(problem, task),
            *_remarks(problem, places, options),
            *page_notes(pages, machine, next_touch=options.next_touch),
        ),
    )


def _places(problem: Problem, usable: Machine, options: PlanOptions) -> Nodes:
    """By the method; `best` knows what balance is worth."""
    if options.method == "best" and problem.objective == "balanced":
        return balanced_places(problem, np.array([len(node.cpus) for node in usable.cpu_nodes]))
    return place_threads(find_method(options.method), problem)


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


def crowded(problem: Problem, task: PlanTask) -> list[str]:
    """That threads have to share cpus, where more with a load live at a time than there are cpus."""
    busy = ~negligible(problem)
    threads, cpus, light = task.most_at_once(busy), len(task.usable.cpus), int(np.count_nonzero(~busy))
    if threads <= cpus:
        return []
    beside = f", beside {light} that hardly run" if light else ""
    return [f"{counted(threads, 'thread')} share {counted(cpus, 'cpu')}{beside}"]


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
                f" this one is off by at most {off:.1%}"
            )
    if not problem.matrix.any():
        remarks.append("the threads do not communicate: any placement is as good as another")
    return remarks
