"""Make a plan: threads to nodes and cpus, pages to nodes, and its cost against compact and scatter."""

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from numaplan.common import UsageError, version
from numaplan.mapper.bounds import lower_bound
from numaplan.mapper.cost import costs_of, cpu_distances, imbalance
from numaplan.mapper.methods import find_method
from numaplan.mapper.pages import PagePlan, PageStats, place_pages
from numaplan.mapper.plan import Plan, PlanApp, PlanMachine, PlanThread, Predicted
from numaplan.mapper.problem import TOLERANCE, Nodes, Problem, new_problem
from numaplan.mapper.restrict import restrict
from numaplan.mapper.seats import assign_cpus
from numaplan.mapper.stall import mean_latency
from numaplan.mapper.traffic import first_touch_traffic
from numaplan.mapper.workload import Workload
from numaplan.profiler import Machine

BASELINES = ("compact", "scatter")


@dataclass(frozen=True)
class PlanOptions:
    """How to plan; nodes: only these (empty: all); smt: `avoid` leaves one hwthread a core; without_cpus:
    reserved for others."""

    method: str = "best"
    objective: str = "balanced"
    effort: str = "normal"
    seed: int = 0
    tolerance: float = TOLERANCE
    nodes: tuple[int, ...] = ()
    smt: str = "share"
    without_cpus: tuple[int, ...] = ()

    def recorded(self) -> dict[str, Any]:
        """What a plan's provenance says of the options, beyond method and objective."""
        kept: dict[str, Any] = {"effort": self.effort, "seed": self.seed, "tolerance": self.tolerance}
        if self.nodes:
            kept["nodes"] = list(self.nodes)
        if self.smt != "share":
            kept["smt"] = self.smt
        if self.without_cpus:
            kept["without_cpus"] = list(self.without_cpus)
        return kept


@dataclass(frozen=True)
class Planned:
    """A plan, and what is worth saying about it to people."""

    plan: Plan
    notes: tuple[str, ...]


def make_plan(workload: Workload, machine: Machine, options: PlanOptions) -> Planned:
    """Plan a workload for a machine.

    Raises UsageError for an unknown method, objective or node and for a matrix or loads that cannot be right.
    """
    method = find_method(options.method)
    usable = restrict(machine, options.nodes, options.smt, options.without_cpus)
    problem = problem_for(workload, usable, options)
    places = method.function()(problem)
    ids = np.array([node.id for node in usable.cpu_nodes])
    nodes = ids[places].tolist()
    cpus = assign_cpus(problem.comm, usable, nodes)
    pages = place_pages(workload.pages, nodes, machine) if workload.pages else PagePlan((), -1.0)
    threads = tuple(
        PlanThread(
            process=process, path=path, thread=i, node=nodes[i], cpus=cpus[i], load=float(f"{load:.9g}")
        )
        for i, ((process, path), load) in enumerate(zip(workload.threads, problem.loads, strict=True))
    )
    predicted = predict(problem, places, usable, machine, pages.local_share)
    if workload.pages:
        predicted = _with_latency(predicted, workload.pages, pages, problem, usable, machine)
    plan = Plan(
        app=PlanApp(argv=workload.argv, build_id=workload.build_id, threads=len(threads)),
        machine=PlanMachine.of(machine),
        method=options.method,
        objective=options.objective,
        threads=threads,
        memory=pages.memory,
        predicted=predicted,
        provenance={**workload.sources, "options": options.recorded(), "version": version()},
    )
    return Planned(plan, (*workload.notes, *_remarks(problem, places)))


def problem_for(
    workload: Workload, machine: Machine, options: PlanOptions, starts: tuple[Nodes, ...] = ()
) -> Problem:
    """The mapping task of a workload."""
    return new_problem(
        workload.comm,
        workload.loads,
        machine,
        objective=options.objective,
        seed=options.seed,
        effort=options.effort,
        tolerance=options.tolerance,
        starts=starts,
        phases=workload.phases,
    )


def predict(
    problem: Problem, places: Nodes, usable: Machine, machine: Machine, local_share: float = -1.0
) -> Predicted:
    """Costs of a placement and of the baselines; loads are given for every node with cpus of `machine`."""
    distances = cpu_distances(machine)
    ids = [node.id for node in machine.cpu_nodes]
    column = np.array([ids.index(node.id) for node in usable.cpu_nodes])

    def costs(chosen: Nodes) -> Any:
        return costs_of(problem.comm, problem.loads, distances, column[chosen])

    own = costs(places)
    return Predicted(
        remote_comm=own.remote_comm,
        remote_share=own.remote_share,
        hop_cost=own.hop_cost,
        load_std=own.load_std,
        node_loads=own.node_loads,
        load_std_mean=own.load_std_mean,
        local_share=local_share,
        lower_bound=lower_bound(problem),
        baselines={name: costs(find_method(name).function()(problem)) for name in BASELINES},
    )


def _with_latency(
    predicted: Predicted,
    stats: PageStats,
    pages: PagePlan,
    problem: Problem,
    usable: Machine,
    machine: Machine,
) -> Predicted:
    """How long accesses wait under the plan, and with the baselines' threads and pages by first touch."""
    ids = np.array([node.id for node in usable.cpu_nodes])
    first_touch = {}
    for name in BASELINES:
        nodes = ids[find_method(name).function()(problem)].tolist()
        wait = mean_latency(first_touch_traffic(stats, nodes, machine), machine)
        if wait >= 0:
            first_touch[name] = wait
    return msgspec.structs.replace(
        predicted, latency_ns=mean_latency(pages.traffic, machine), first_touch_ns=first_touch
    )


def _remarks(problem: Problem, places: Nodes) -> list[str]:
    remarks = []
    if problem.objective == "balanced":
        off = imbalance(problem, places)
        if off > problem.tolerance + 1e-9:
            remarks.append(
                f"no placement keeps every node within {problem.tolerance:.0%} of its share of the load;"
                f" this one is near the closest found: off by at most {off:.1%}"
            )
    if not problem.comm.any():
        remarks.append("the threads do not communicate: any placement is as good as another for that")
    return remarks


def same_machine(plan: Plan, machine: Machine, what: str) -> None:
    """Raise UsageError unless the plan was made for this machine."""
    if plan.machine.fingerprint != machine.fingerprint:
        raise UsageError(
            f"{what} was made for another machine ({plan.machine.name or 'unnamed'},"
            f" not {machine.name or 'this one'})",
            "make a plan for this one",
        )
