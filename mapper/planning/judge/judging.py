"""How much dearer a plan is than today's best one, by what its objective asks to be small."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from numaplan.machine import Machine

from ...plan_file.parts import Metrics, PlanRegion
from ...plan_file.plan import Plan
from ...threads.cost import imbalance, node_indices, objective_value
from ...threads.problem import Nodes, Problem
from ...threads.sparse import by_entries
from ...workload.workload import Workload
from ..cost.placement import Placement
from ..cost.planned import Seats, check_cpus, lanes_by_plans, of_lanes, planned_placement, seats_of
from ..cost.timed_task import TimedTask
from ..cost.unplanned import alone
from ..options import PlanOptions
from ..planner import plan_task
from ..predict import predict
from ..search.doubt import SURE, doubt
from ..task import PlanTask, has_use, problem_for

WORST_PAIRS = 10
TODAY = "today's best"
LACKS = 0.05  # of the accesses in the plan's recording, that what is not there today had, to be worth a word


@dataclass(frozen=True)
class Unbalance:
    """By what share of a node its load is off, and may be; chance: how much of that samples may be off."""

    off: float
    allowed: float
    chance: float

    @property
    def over(self) -> float:
        """How far it is beyond what is allowed; 0: it is not."""
        return max(self.off - self.allowed - 1e-9, 0.0)


@dataclass(frozen=True)
class Judged:
    """How much dearer than today's best (never less: that is the cheaper of both), by what share of which
    whole, how much of that may be chance; the metrics of both; the pairs of threads that cost most, how far
    loads are off their shares, and what is to be said besides.
    """

    regress: float
    loss: float
    chance: float
    whole: str
    baseline: Metrics
    best: Metrics
    pairs: Sequence[str]
    unbalance: Unbalance = Unbalance(0.0, 0.0, 0.0)
    notes: Sequence[str] = ()


def judge(
    plan: Plan, today: Plan, workload: Workload, machine: Machine, options: PlanOptions, name: str
) -> Judged:
    """The plan `name` and today's best, both with today's workload; raises UsageError as `seats_of` does."""
    usable = options.usable(machine)
    timed = options.objective == "time" and has_use(workload)
    seats = [
        [] if timed and one.alone else seats_of(one, workload, called)
        for one, called in ((plan, name), (today, TODAY))
    ]
    lane = lanes_by_plans(workload, options, usable, [own for own in seats if own])
    task, _ = plan_task(workload, machine, options, lane)
    ours, theirs = (of_lanes(own, lane) if own else [] for own in seats)
    if not timed:
        return _by_threads(ours, task, today, theirs)
    if seats[0]:
        check_cpus(seats[0], workload.threads, usable, name)
    return _by_time(plan, ours, task, today, theirs, name)


def _by_threads(ours: Seats, task: PlanTask, today: Plan, theirs: Seats) -> Judged:
    """By communication between nodes, of threads of today's lanes."""
    workload, usable = task.workload, task.usable
    problem = problem_for(workload, usable, task.options, task.nodes)
    places, best = (
        node_indices(usable, [seat.node for seat in seats], problem.threads) for seats in (ours, theirs)
    )
    now, least = objective_value(problem, places), objective_value(problem, best)
    whole = float(problem.matrix.sum()) / 2 * float(problem.costs.max() - problem.costs.min())
    # A trace has events; a matrix from elsewhere may have any unit.
    chance = SURE * float(np.sqrt(now + least)) if "trace" in workload.sources else 0.0
    unbalance = _unbalance(problem, places, best, workload)
    baseline = predict(problem, places, usable, task.machine)
    cheaper = now < least and not unbalance.over
    return Judged(
        _regress(problem, now, least),
        _share(max(now - least, 0.0), whole),
        _share(chance, whole),
        "all communication",
        _metrics(baseline),
        _metrics(baseline if cheaper else today.predicted),
        _worst_pairs(problem, places, usable, workload),
        unbalance,
    )


def _by_time(plan: Plan, ours: Seats, task: PlanTask, today: Plan, theirs: Seats, name: str) -> Judged:
    """By the expected cost, of both as their plans have it."""
    workload, usable = task.workload, task.usable
    timed = TimedTask(task)
    usual = alone(timed)

    def placed(one: Plan, seats: Seats, called: str) -> tuple[Placement, Sequence[PlanRegion]]:
        return (usual, ()) if one.alone else planned_placement(timed, called, seats, one.memory)

    placement, missing = placed(plan, ours, name)
    there, _ = placed(today, theirs, TODAY)
    cost, least = placement.cost.total_ns, there.cost.total_ns
    problem = problem_for(workload, usable, task.options, task.nodes)
    places = node_indices(usable, timed.ids[placement.places], problem.threads)
    metrics = msgspec.structs.replace(_metrics(predict(problem, places, usable, task.machine)), cost=cost)
    best = msgspec.structs.replace(_metrics(today.predicted), cost=least)
    loss, before = max(cost - least, 0.0), today.predicted.today
    whole = usual.cost.total_ns if before is None else before.cost
    return Judged(
        _share(loss, least),
        _share(loss, whole),
        _share(doubt(timed, placement, there), whole),
        "what the program waits for without a plan",
        metrics,
        metrics if cost < least else best,
        _worst_pairs(problem, places, usable, workload),
        notes=_lacking(missing, name),
    )


def _lacking(missing: Sequence[PlanRegion], name: str) -> list[str]:
    """That today's run has not got much of what a plan places."""
    share = sum(region.share for region in missing if isinstance(region.share, float))
    if share < LACKS:
        return []
    which = "a region" if len(missing) == 1 else f"{len(missing)} regions"
    return [
        f"{name} places {which} with {share:.0%} of its recording's accesses that today's run does not have"
    ]


def _share(part: float, whole: float) -> float:
    """0 of nothing."""
    return part / whole if whole > 0 else 0.0


def _metrics(costs: Metrics) -> Metrics:
    return Metrics(**{field: getattr(costs, field) for field in Metrics.__struct_fields__})


def _regress(problem: Problem, now: float, least: float) -> float:
    """How much dearer; where the best costs nothing, the share of all communication."""
    if now <= least:
        return 0.0
    return (now - least) / (least if least > 0 else float(problem.matrix.sum()) / 2)


def _unbalance(problem: Problem, places: Nodes, best: Nodes, workload: Workload) -> Unbalance:
    if problem.objective != "balanced":
        return Unbalance(0.0, 0.0, 0.0)
    allowed = max(problem.tolerance, imbalance(problem, best))
    return Unbalance(imbalance(problem, places), allowed, _load_chance(problem, workload))


def _load_chance(problem: Problem, workload: Workload) -> float:
    """By what share of a node its load may be off, as it is told from samples: each is on a node with the
    probability that is the node's share. 0 where every access was counted, or the unit is not known."""
    total = float(problem.loads.sum())
    counted = workload.pages is not None and workload.pages.exact
    if counted or "trace" not in workload.sources or total <= 0:
        return 0.0
    shares = np.minimum(problem.targets[problem.targets > 0] / total, 1.0)
    return SURE * float(np.sqrt((1 - shares) / (shares * total)).max(initial=0.0))


def _worst_pairs(problem: Problem, places: Nodes, machine: Machine, workload: Workload) -> list[str]:
    """The pairs whose communication costs most across nodes, with its share of all."""
    entries = by_entries(problem.matrix)
    once = entries.rows < entries.to
    rows, columns, talk = entries.rows[once], entries.to[once], entries.weight[once]
    costs = talk * (problem.costs - problem.costs.min())[places[rows], places[columns]]
    total, ids = float(talk.sum()), [node.id for node in machine.cpu_nodes]
    several = len({process for process, _path in workload.threads}) > 1
    lines = []
    for pair in np.argsort(-costs, kind="stable")[:WORST_PAIRS].tolist():
        if costs[pair] > 0:
            ends = []
            for thread in (rows[pair], columns[pair]):
                process, path = workload.threads[thread]
                ends.append(f"{f'{process}:' if several else ''}{path} (node {ids[places[thread]]})")
            lines.append(f"  {ends[0]} and {ends[1]}: {talk[pair] / total:.1%} of all communication")
    return lines
