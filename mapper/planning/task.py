"""What is planned: a workload by lanes, the machine, and the options; and where it was put."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.machine import Machine

from ..memory.pages import PagePlan
from ..plan_file.parts import AtInput, Predicted
from ..threads.problem import Nodes, Problem, new_problem
from ..workload.lifetimes.lanes import most_at_once
from ..workload.workload import Workload
from .options import PlanOptions


@dataclass(frozen=True)
class PlanTask:
    """usable: the part of the machine that threads may use; nodes: pinned, by number of the thread (cpus: the
    same); both are held by any method. ranks: (N,) how many threads were made before each, of a lane before
    the one that does most. recorded: the workload by threads, and lane: the row that each of these is in;
    loose: rows in which one thread follows another by chance."""

    workload: Workload
    usable: Machine
    machine: Machine
    options: PlanOptions
    nodes: Mapping[int, int]
    cpus: Mapping[int, int]
    ranks: Nodes
    recorded: Workload
    lane: Nodes
    loose: Sequence[int]

    def most_at_once(self, rows: NDArray[np.bool_]) -> int:
        """How many threads of these rows (N,) live at the same time at most; all, where that is not known."""
        if not self.recorded.lives:
            return int(np.count_nonzero(rows))
        own = np.flatnonzero(rows[self.lane]).tolist()
        threads, lives = self.recorded.threads, self.recorded.lives
        return most_at_once([threads[at] for at in own], [lives[at] for at in own])

    @property
    def timed(self) -> bool:
        """Whether the cost in time can be told: memory and what threads use are known."""
        return self.options.objective == "time" and has_use(self.workload)

    @property
    def limited(self) -> bool:
        """Whether options leave threads a part of the machine's cpus only."""
        return set(self.usable.cpus) != set(self.machine.cpus)

    @property
    def whole(self) -> "PlanTask":
        """The same as it runs without a plan: on all cpus, with no pins; itself where nothing is asked."""
        if not (self.limited or self.nodes or self.cpus):
            return self
        free = msgspec.structs.replace(self.options, nodes=(), smt="share", without_cpus=(), pins={})
        return replace(self, usable=self.machine, options=free, nodes={}, cpus={})

    @property
    def seen_on(self) -> tuple[int, ...]:
        """Node of each thread in the recording, where that was made on this machine and it has several."""
        known = {node.id for node in self.machine.nodes}
        here = made_on(self.workload, self.machine) and set(self.workload.seen_on) <= known
        return self.workload.seen_on if here else ()


@dataclass(frozen=True)
class Placed:
    """nodes: (N,) ids, cpus: of each thread; pools: (N,) number of each one's pool, 0: none; alone: why
    nothing is placed, empty where something is (threads keep to `cpus` where options leave them a part of the
    machine); larger: what it comes to with larger inputs; exchanged: whether some threads that do something
    are exchangeable."""

    nodes: Sequence[int]
    cpus: Sequence[tuple[int, ...]]
    pages: PagePlan
    predicted: Predicted
    notes: tuple[str, ...] = ()
    pools: Sequence[int] = ()
    alone: str = ""
    larger: tuple[AtInput, ...] = ()
    exchanged: bool = False


def has_use(workload: Workload) -> bool:
    """Whether a workload is of traces that tell of memory and of what threads use."""
    return workload.pages is not None and workload.use is not None


def made_on(workload: Workload, machine: Machine) -> bool:
    """Whether a workload was recorded on this machine, and it has several nodes."""
    there = workload.machine
    return there is not None and len(machine.cpu_nodes) > 1 and there.fingerprint == machine.fingerprint


def usual_objective(workload: Workload, wanted: str) -> str:
    """The objective asked for; where none is, what a placement costs in time, or `balanced` of a matrix."""
    return wanted or ("time" if has_use(workload) else "balanced")


def problem_for(
    workload: Workload, machine: Machine, options: PlanOptions, pinned: Mapping[int, int]
) -> Problem:
    """The mapping task of a workload; pinned: node id by number of the thread.

    A thread that polls makes accesses without end that never leave its first cache: what is balanced is the
    part that does, where that is known.
    """
    loads, phases = workload.loads, workload.phases
    working = workload.use.working if workload.use and options.objective in ("balanced", "phased") else None
    if working is not None and (loads * working).any():
        loads, phases = loads * working, None if phases is None else phases * working
    return new_problem(
        workload.comm,
        loads,
        machine,
        objective=options.objective,
        seed=options.seed,
        effort=options.effort,
        tolerance=options.tolerance,
        phases=phases,
        phase_rates=workload.phase_rates,
        pinned=pinned,
    )
