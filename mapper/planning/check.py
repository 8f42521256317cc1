"""Judge a plan by what the program does today."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from numaplan.common import JUnitCase, UsageError, junit_xml
from numaplan.machine import Machine

from ..plan_file.parts import Metrics, PlanApp
from ..plan_file.plan import Plan
from ..threads.cost import imbalance, node_indices, objective_value
from ..threads.problem import Nodes, Problem
from ..threads.sparse import by_entries
from ..workload.workload import Workload
from .doubt import SURE, doubt
from .options import options_of
from .placement import Placement
from .planner import make_plan, plan_task
from .predict import predict
from .task import PlanTask, problem_for
from .timed_task import TimedTask
from .unplanned import alone

SCHEMA = "numaplan/check/1"
WORST_PAIRS = 10
# Of all communication, or of what the program waits for without a plan: a loss that breaks no build.
SMALL = 0.005
_OTHER_THREADS = "record with as many threads as planned, or plan again"


@dataclass(frozen=True)
class Verdict:
    """ok: whether the baseline is still good enough; regress: how much worse than today's best, relatively;
    loss: by what share of all communication, or of what the program waits for without a plan; chance: how
    much of that may be chance; lines: for people, the verdict first, then the thread pairs that cost most;
    notes: what makes it doubtful that the plan is for this program; today: today's best plan.
    """

    ok: bool
    name: str
    regress: float
    loss: float
    chance: float
    allowed: float
    baseline: Metrics
    best: Metrics
    reason: str
    lines: Sequence[str]
    notes: Sequence[str]
    today: Plan


class _Document(msgspec.Struct):
    schema: str
    ok: bool
    baseline: Metrics
    best: Metrics
    regress: float
    loss: float
    chance: float
    allowed: float
    reason: str
    notes: Sequence[str]


def parse_share(text: str) -> float:
    """A share given as `5%` or `0.05`; raises UsageError for anything else or a negative one."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError(f"--max-regress {text}", "give a share, such as 5% or 0.05")
    return value


def check_plan_today(
    plan: Plan,
    workload: Workload,
    machine: Machine,
    allowed: float,
    *,
    seed: int,
    effort: str,
    name: str,
    strict: bool = False,
) -> Verdict:
    """Cost the plan on today's workload against the best placement of today.

    strict: a loss counts however small it is, and though it may be chance. Raises UsageError when the plan
    and today's run differ in their threads: there is nothing to compare.
    """
    options = options_of(plan, effort, seed, name)
    task, _ = plan_task(workload, machine, options)
    today = make_plan(workload, machine, options).plan
    judged = (_by_time if task.timed else _by_threads)(plan, task, today, name)
    matters = strict or judged.loss > max(SMALL, judged.chance)
    ok = (judged.regress <= allowed or not matters) and not judged.fault
    more = f"costs {judged.regress:.1%} more than today's best placement, {allowed:.1%} allowed"
    if judged.regress > allowed and not matters:
        small = f"which is {judged.loss:.2%} of {judged.whole}"
        more += f", {small if judged.loss <= SMALL else 'which may be chance'} (--strict counts that)"
    reason = judged.fault or more
    verdict = f"{name}: {'still good' if ok else 'worse than necessary'}: {reason}"
    return Verdict(
        ok=ok,
        name=name,
        regress=judged.regress,
        loss=judged.loss,
        chance=judged.chance,
        allowed=allowed,
        baseline=judged.baseline,
        best=_metrics(today.predicted),
        reason=reason,
        lines=[verdict, *judged.pairs],
        notes=_doubts(plan, workload.app, name),
        today=today,
    )


@dataclass(frozen=True)
class _Judged:
    """How much dearer than today's best, by what share of which whole, how much of that may be chance, what
    else is wrong, and the pairs of threads that cost most.
    """

    regress: float
    loss: float
    chance: float
    whole: str
    baseline: Metrics
    pairs: Sequence[str]
    fault: str = ""


def _by_threads(plan: Plan, task: PlanTask, today: Plan, name: str) -> _Judged:
    """By what the objective asks to be small."""
    workload, usable = task.workload, task.usable
    nodes = _planned_nodes(plan, workload.threads, name)
    problem = problem_for(workload, usable, task.options, task.nodes)
    places = node_indices(usable, nodes, problem.threads)
    planned = {(thread.process, thread.path): thread.node for thread in today.threads}
    best = node_indices(usable, [planned[key] for key in workload.threads], problem.threads)
    now, least = objective_value(problem, places), objective_value(problem, best)
    whole = float(problem.matrix.sum()) / 2 * float(problem.costs.max() - problem.costs.min())
    # A trace has events; a matrix from elsewhere may have any unit.
    chance = SURE * float(np.sqrt(now + least)) if "trace" in workload.sources else 0.0
    return _Judged(
        _regress(problem, now, least),
        _share(now - least, whole),
        _share(chance, whole),
        "all communication",
        _metrics(predict(problem, places, usable, task.machine)),
        _worst_pairs(problem, places, usable, workload),
        _unbalanced(problem, places, best),
    )


def _by_time(plan: Plan, task: PlanTask, today: Plan, name: str) -> _Judged:
    """By the expected cost: the plan's threads, with pages where they are best for them."""
    workload, usable = task.workload, task.usable
    timed = TimedTask(task)
    usual = alone(timed)

    def placed(planned: Plan, called: str) -> Placement:
        nodes = _planned_nodes(planned, workload.threads, called)
        return timed.placed(called, timed.places_on(nodes))

    placement = usual if plan.alone else placed(plan, name)
    there = usual if today.alone else placed(today, "today's best")
    cost, best, whole = placement.cost.total_ns, today.predicted.cost, usual.cost.total_ns
    problem = problem_for(workload, usable, task.options, task.nodes)
    places = node_indices(usable, timed.ids[placement.places], problem.threads)
    return _Judged(
        _share(cost - best, best),
        _share(cost - best, whole),
        _share(doubt(timed, placement, there), whole),
        "what the program waits for without a plan",
        msgspec.structs.replace(_metrics(predict(problem, places, usable, task.machine)), cost=cost),
        _worst_pairs(problem, places, usable, workload),
    )


def _share(part: float, whole: float) -> float:
    """0 of nothing."""
    return part / whole if whole > 0 else 0.0


def _planned_nodes(plan: Plan, threads: Sequence[tuple[str, str]], name: str) -> list[int]:
    """The node id that the plan `name` gives each of today's threads, (process, creation path).

    Raises UsageError when it lacks one, or when today's run has fewer than half of its threads: the node
    loads of such a run say nothing of the plan.
    """
    planned = {(thread.process, thread.path): thread.node for thread in plan.threads}
    unknown = [key for key in threads if key not in planned]
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
    return [planned[key] for key in threads]


def _doubts(plan: Plan, app: PlanApp, name: str) -> list[str]:
    """What makes it doubtful that a plan is for the program that runs today, `app`, in sentences."""
    found = []
    one, other = _program(plan.app.argv), _program(app.argv)
    rebuilt = plan.app.build_id != app.build_id or not app.build_id
    if one and other and one != other and rebuilt:
        found.append(f"{name} was made for another program ({one}, not {other})")
    missing = len(plan.threads) - app.threads
    if missing > 0:
        found.append(f"{missing} of the {len(plan.threads)} threads in {name} did not run today")
    return found


def _program(argv: Sequence[str]) -> str:
    return argv[0].rpartition("/")[2] if argv else ""


def to_document(verdict: Verdict) -> bytes:
    """The answer of `nmap check --json`."""
    content = {field: getattr(verdict, field) for field in _Document.__struct_fields__ if field != "schema"}
    return msgspec.json.encode(_Document(schema=SCHEMA, **content))


def to_junit(verdict: Verdict) -> bytes:
    """The verdict as one JUnit test case."""
    reason, text = ("", "") if verdict.ok else (verdict.reason, "\n".join(verdict.lines))
    case = JUnitCase("nmap.check", verdict.name, reason, "regression", text)
    return junit_xml("numaplan", [case])


def _metrics(costs: Metrics) -> Metrics:
    return Metrics(**{field: getattr(costs, field) for field in Metrics.__struct_fields__})


def _regress(problem: Problem, now: float, least: float) -> float:
    """How much dearer; where the best costs nothing, the share of all communication."""
    if now <= least:
        return 0.0 if now == least else (now - least) / least
    return (now - least) / (least if least > 0 else float(problem.matrix.sum()) / 2)


def _unbalanced(problem: Problem, places: Nodes, best: Nodes) -> str:
    if problem.objective != "balanced":
        return ""
    off = imbalance(problem, places)
    if off <= max(problem.tolerance, imbalance(problem, best)) + 1e-9:
        return ""
    return f"a node's load is {off:.1%} off its share, {problem.tolerance:.1%} allowed"


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
