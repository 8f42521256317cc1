"""All methods side by side on one workload, for a table or for the report page about a plan."""

from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from numaplan.machine import Machine

from ...plan_file.parts import Metrics
from ...plan_file.plan import Plan
from ...threads.bounds import lower_bound
from ...threads.cost import costs_of, evaluate, imbalance, load_deviation, node_indices, objective_value
from ...threads.mapping import place_threads
from ...threads.methods import METHODS, Method, find_method
from ...threads.problem import OBJECTIVES, TOLERANCE, Problem, cpu_distances, new_problem
from ...workload.workload import Workload
from ..cost.timed_task import TimedTask
from ..options import PlanOptions, options_of
from ..planner import plan_task
from ..search.candidates import tried

if TYPE_CHECKING:
    from numaplan.analyzer import MethodCost

SCHEMA = "numaplan/compare/1"
MOST_REPORTED = 128  # of more, all methods together take longer than the rest of the page


class Comparison(Metrics, frozen=True, kw_only=True):
    """One method on one objective: its placement (node ids), costs, seconds, and how it stands.

    value: what the objective asks to be small; ratio: value over the best row's (1 when both are 0, null
    when only the best is); lower_bound: no placement has a smaller value; imbalance: greatest relative
    deviation of a node's load from its share.
    """

    method: str
    objective: str
    nodes: tuple[int, ...]
    seconds: float
    value: float
    lower_bound: float
    imbalance: float
    ratio: float | None = None


class _Document(msgspec.Struct):
    schema: str
    methods: list[Comparison]


def chosen_methods(methods: str) -> list[Method]:
    """The methods of names with commas between, or `all`; raises UsageError for names not known."""
    names = METHODS if methods == "all" else [name.strip() for name in methods.split(",")]
    return [find_method(name) for name in names]


def compare(
    workload: Workload, machine: Machine, methods: str, objective: str, *, seed: int, effort: str
) -> list[Comparison]:
    """Rows in the order of objectives and methods; raises UsageError for names not known or not able.

    Threads that do not live at the same time share a seat. Objective `time` of a trace is the whole cost,
    with pages placed for each method's threads; of a matrix it is what lines take between the threads.
    """
    everything = methods == "all"
    chosen = chosen_methods(methods)
    phased = workload.phases is not None and len(workload.phases) > 1
    objectives: tuple[str, ...] = (objective,)
    if objective == "all":
        objectives = tuple(goal for goal in OBJECTIVES if goal != "phased" or phased)
    rows: list[Comparison] = []
    task, lane = plan_task(workload, machine, PlanOptions(objective="time", seed=seed, effort=effort))
    workload = task.workload
    for goal in objectives:
        problem = new_problem(
            workload.comm,
            workload.loads,
            machine,
            objective=goal,
            seed=seed,
            effort=effort,
            phases=workload.phases,
            phase_rates=workload.phase_rates,
        )
        bound = lower_bound(problem)
        able = [method for method in chosen if not everything or method.applies(problem)]
        timed = TimedTask(task) if goal == "time" and task.timed else None
        group = [
            _run_timed(timed, method) if timed else _run(problem, machine, method, bound) for method in able
        ]
        rows += _with_ratios(group, problem)
    return [msgspec.structs.replace(row, nodes=tuple(row.nodes[at] for at in lane.tolist())) for row in rows]


def to_document(rows: list[Comparison]) -> bytes:
    """The answer of `nmap compare --json`."""
    return msgspec.json.encode(_Document(SCHEMA, rows))


def _run_timed(task: TimedTask, method: Method) -> Comparison:
    """A method's threads with pages placed for them, by the expected cost; no bound is known."""
    _load(method)
    start = perf_counter()
    found = tried(task, method.name)[0]
    seconds = perf_counter() - start
    nodes = task.ids[found.places]
    home = node_indices(task.usable, task.ids, len(task.ids))  # of each place, which may be one of its caches
    targets = np.bincount(home, task.problem.targets).astype(np.float64)
    costs = evaluate(task.use.lines, task.use.accesses, task.usable, nodes)
    return Comparison(
        method=method.name,
        objective="time",
        nodes=tuple(nodes.tolist()),
        seconds=seconds,
        value=found.cost.total_ns,
        lower_bound=-1.0,
        imbalance=load_deviation(task.use.accesses, targets, home[found.places]),
        **{**msgspec.structs.asdict(costs), "cost": found.cost.total_ns},
    )


def _run(problem: Problem, machine: Machine, method: Method, bound: float) -> Comparison:
    _load(method)  # outside of the time that is measured
    start = perf_counter()
    places = place_threads(method, problem)
    seconds = perf_counter() - start
    costs = costs_of(problem.matrix, problem.loads, cpu_distances(machine), places)
    return Comparison(
        method=method.name,
        objective=problem.objective,
        nodes=tuple(machine.cpu_nodes[place].id for place in places.tolist()),
        seconds=seconds,
        value=objective_value(problem, places),
        lower_bound=bound,
        imbalance=imbalance(problem, places),
        **msgspec.structs.asdict(costs),
    )


@cache
def _load(method: Method) -> None:
    """Use a method once: the first use loads libraries, its own and those of the package it needs."""
    comm = np.ones((4, 4)) - np.eye(4)
    place_threads(method, new_problem(comm, None, Machine.load("2x2"), objective="remote"))


def _balance_limit(rows: list[Comparison], objective: str) -> float:
    """The imbalance up to which a row counts as balanced: the tolerance, or that of the nearest row."""
    if objective != "balanced":
        return float("inf")
    return max(TOLERANCE, min(row.imbalance for row in rows)) + 1e-9


def _with_ratios(rows: list[Comparison], problem: Problem) -> list[Comparison]:
    """Ratios to the best row; for `balanced` the best is among those that are (nearest to) balanced."""
    limit = _balance_limit(rows, problem.objective)
    best = min(row.value for row in rows if row.imbalance <= limit)
    return [msgspec.structs.replace(row, ratio=_ratio(row.value, best)) for row in rows]


def _ratio(value: float, best: float) -> float | None:
    if best > 0:
        return value / best
    return 1.0 if value == best else None


def method_costs(plan: Plan, name: str, workload: Workload) -> "list[MethodCost]":
    """The cost of each method for the plan's objective and machine; nothing for threads beyond MOST_REPORTED.

    name: the plan's, in errors. Raises UsageError for options in the plan that cannot be.
    """
    from numaplan.analyzer import MethodCost

    options = options_of(plan, "normal", 0, name)
    machine = options.usable(plan.machine.machine())
    if len(workload.threads) > MOST_REPORTED:
        return []
    rows = compare(workload, machine, "all", plan.objective, seed=options.seed, effort=options.effort)
    limit = _balance_limit(rows, plan.objective)
    return [MethodCost(row.method, row.value, row.imbalance <= limit, row.imbalance) for row in rows]
