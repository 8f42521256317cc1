"""Make a plan: threads to nodes and cpus, pages to nodes, and its cost beside today's placement."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from numaplan.common import version
from numaplan.machine import Machine

from ..plan_file.parts import AtInput, PlanMachine, PlanRegion, PlanThread, Predicted
from ..plan_file.plan import Plan
from ..plan_file.scaling import ScalingFacts, scaling_of
from ..scaling.regions import with_scales
from ..threads.inputs import check_loads
from ..threads.methods import find_method
from ..threads.pins import resolve_pins
from ..threads.problem import Nodes
from ..workload.lifetimes.creation import creation_ranks, ranks_of_lanes
from ..workload.lifetimes.lanes import by_lane
from ..workload.lifetimes.succession import loose_lanes, shared_lanes
from ..workload.workload import Workload
from .by_threads import place_for_threads
from .by_time import place_for_time
from .options import PlanOptions
from .predict import with_caches, with_counted, with_small_blocks, with_touched
from .task import Placed, PlanTask, usual_objective
from .thread_notes import thread_notes

SCHEMA = "numaplan/planned/1"
MOST_BY_THREAD = 1024  # threads, beyond which what binding each costs is told of their lanes


class Planned(msgspec.Struct, frozen=True):
    """A plan, what is worth saying about it to people, and what it comes to with larger inputs."""

    plan: Plan
    notes: tuple[str, ...]
    larger: tuple[AtInput, ...] = ()


def make_plan(workload: Workload, machine: Machine, options: PlanOptions) -> Planned:
    """Plan a workload for a machine.

    Raises UsageError for an unknown method, objective or node and for a matrix or loads that cannot be right.
    """
    find_method(options.method)
    options = msgspec.structs.replace(options, objective=usual_objective(workload, options.objective))
    loads = check_loads(workload.loads, len(workload.threads))
    task, lane = plan_task(workload, machine, options)
    by_thread = task
    if task.timed and len(task.ranks) < len(lane) <= MOST_BY_THREAD:
        by_thread, _ = plan_task(workload, machine, options, np.arange(len(lane)))
    found = place_for_time(task, by_thread) if task.timed else place_for_threads(task)
    shared = np.bincount(lane) > 1
    threads = tuple(
        PlanThread(
            process=process,
            path=path,
            thread=i,
            node=found.nodes[at],
            cpus=found.cpus[at],
            load=float(f"{load:.9g}"),
            pool=(found.pools[at] if found.pools else 0) or msgspec.UNSET,
            program=_program(workload, i),
            lane=at + 1 if shared[at] else msgspec.UNSET,
        )
        for i, ((process, path), load, at) in enumerate(
            zip(workload.threads, loads, lane.tolist(), strict=True)
        )
    )
    predicted = msgspec.structs.replace(found.predicted, apart=workload.apart)
    predicted = with_counted(predicted, workload, machine)
    if not found.alone:
        predicted = with_caches(predicted, task.workload.comm, found.cpus, task.usable, machine)
    if workload.pages and not found.alone and not found.pools:  # what has no node has nothing to say of that
        predicted = with_small_blocks(predicted, workload.pages, [thread.node for thread in threads])
    if workload.pages and not found.alone:
        predicted = with_touched(predicted, workload.pages, threads)
    plan = Plan(
        app=workload.app,
        machine=PlanMachine.of(machine),
        method=options.method,
        objective=options.objective,
        threads=() if found.alone and not task.limited else threads,
        memory=_scaling(workload, found, [thread.node for thread in threads]),
        predicted=predicted,
        alone=found.alone,
        provenance={
            **workload.sources,
            "options": options.recorded(),
            **({"identity": workload.identity} if workload.identity else {}),
            "version": version(),
        },
    )
    said = workload.notes if task.timed else (*workload.notes, *workload.not_balanced)
    notes = (*machine.notes, *said, *thread_notes(workload, machine), *found.notes)
    return Planned(plan, notes, found.larger)


def _program(workload: Workload, thread: int) -> str | msgspec.UnsetType:
    """What a child process ran, of its first thread: its number may be another in the next run."""
    process, path = workload.threads[thread]
    named = workload.names and path == "0" and "." in process
    return workload.names[thread] or msgspec.UNSET if named else msgspec.UNSET


def _scaling(workload: Workload, found: Placed, nodes: Sequence[int]) -> tuple[PlanRegion, ...]:
    """The regions with how they scale; of exchangeable threads none has a part of its own."""
    memory = found.pages.memory
    if workload.pages is None or found.exchanged or not memory:
        return memory
    away = {table.key for table in found.pages.tables.values() if table.away}
    return with_scales(memory, workload.pages, workload.sizes, workload.threads, nodes, away)


class _Answer(msgspec.Struct):
    schema: str
    output: str
    method: str
    objective: str
    alone: str
    threads: int
    regions: int
    predicted: Predicted
    notes: tuple[str, ...]
    larger_inputs: tuple[AtInput, ...]
    scaling: ScalingFacts | msgspec.UnsetType = msgspec.UNSET


def answer(planned: Planned, output: Path) -> bytes:
    """The answer of `nmap plan --json`, for a plan written to `output`."""
    plan = planned.plan
    words = str(output), plan.method, plan.objective, plan.alone
    counts = len(plan.threads), len(plan.memory)
    found = _Answer(
        SCHEMA,
        *words,
        *counts,
        plan.predicted,
        planned.notes,
        planned.larger,
        scaling_of(plan) or msgspec.UNSET,
    )
    return msgspec.json.encode(found)


def plan_task(
    workload: Workload, machine: Machine, options: PlanOptions, lane: Nodes | None = None
) -> tuple[PlanTask, Nodes]:
    """What is placed, and (N,) lane of each thread; raises UsageError for pins and cpus that cannot be.

    lane: that each thread has (None: those that do not live at the same time share one).
    """
    usable = options.usable(machine)
    nodes, cpus = resolve_pins(options.pins, workload.threads, usable)
    lane = _lanes(workload, nodes, cpus, len(usable.cpus)) if lane is None else lane
    made = workload.loads if workload.use is None else workload.use.accesses
    ranks = creation_ranks(workload.threads, () if workload.apart else workload.lives)
    task = PlanTask(
        by_lane(workload, lane),
        usable,
        machine,
        options,
        _of_lanes(nodes, lane),
        _of_lanes(cpus, lane),
        ranks_of_lanes(ranks, made, lane),
        workload,
        lane,
        loose_lanes(workload, lane),
    )
    return task, lane


def _lanes(workload: Workload, nodes: Mapping[int, int], cpus: Mapping[int, int], usable: int) -> Nodes:
    """(N,) lane of each thread on so many usable cpus: those that do not live at the same time and are pinned
    alike are one.

    nodes, cpus: pins by number of the thread.
    """
    if not workload.lives:
        return np.arange(len(workload.threads))
    pins = {thread: (node, cpus.get(thread)) for thread, node in nodes.items()}
    return shared_lanes(workload, usable, pins)


def _of_lanes(pins: Mapping[int, int], lane: Nodes) -> dict[int, int]:
    return {int(lane[thread]): where for thread, where in pins.items()}
