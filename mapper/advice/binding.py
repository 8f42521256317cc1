"""What can be done without touching the program: a plan, bound threads, memory spread over the nodes."""

from collections.abc import Sequence

from numaplan.analyzer import Advice, Change
from numaplan.common import shell_line

from ..plan_file.plan import Plan
from ..planning.cost.timed_task import TimedTask
from ..planning.cost.unplanned import alone, in_openmp_order
from ..planning.search.candidates import Choice, choose, judged
from .situation import Situation

MANY = 128  # threads
UNEVEN = 1.5  # times its part, that the busiest node serves
BOUND = "OMP_PROC_BIND=close OMP_PLACES=cores"


def planned(situation: Situation, plan: Sequence[str]) -> tuple[Advice | None, str]:
    """To start it with a plan, or why none is worth having; plan: the command that makes it."""
    found = _chosen(situation.task)
    if found.reason:
        return None, found.reason
    if not situation.gain(found.chosen):
        return None, ""
    pages = found.chosen.pages
    placed = _placed(len(pages.memory) if pages else 0)
    advice = situation.advice(
        "plan",
        found.chosen,
        situation.task,
        action=f"start it with a plan: threads bound{placed}",
        evidence=f"of {len(found.tried)} placements tried this one costs least ({found.chosen.name})",
        change=f"{' '.join(plan)} -o plan.json && nlaunch --plan plan.json -- {situation.command}",
    )
    return advice, ""


def _chosen(task: TimedTask) -> Choice:
    """What `nmap plan` would choose; of many threads, for which it takes its time, from less."""
    if task.problem.threads <= MANY:
        return choose(task)
    places = task.mapped("best")
    return judged(task, [task.placed("best", places), task.first_touched("best, first touch", places)])


def given(situation: Situation, plan: Plan, path: str) -> tuple[Advice | None, str]:
    """The same of a plan that there is, by what it says itself."""
    predicted = plan.predicted
    today = predicted.today
    if plan.alone or today is None or today.cost <= 0:
        return None, plan.alone
    saved = today.cost - predicted.cost
    if saved <= 0:
        return None, ""
    shares = [(today.local_share, predicted.local_share), (today.memory_share, predicted.memory_share)]
    local, memory = (Change(*map(_rounded, pair)) if min(pair) >= 0 else None for pair in shares)
    placed = len(plan.memory)
    return Advice(
        kind="plan",
        action=f"start it with the plan: threads bound{_placed(placed)}",
        evidence=f"{path}, made with method {plan.method}",
        change=f"nlaunch --plan {shell_line([path])} -- {situation.command}",
        gain_ns=round(saved),
        gain=_rounded(saved / today.cost),
        local_share=local,
        memory_share=memory,
    ), ""


def _rounded(share: float) -> float:
    return round(share, 4)


def _placed(regions: int) -> str:
    return f", {regions} region{'s' * (regions != 1)} of memory on nodes" if regions else ""


def bound(situation: Situation) -> Advice | None:
    """To bind threads in the order in which they are made; of OpenMP, whose environment does that."""
    if situation.task.in_real_time:
        return None
    instead = in_openmp_order(situation.task)
    if not situation.openmp or not situation.gain(instead):
        return None
    return situation.advice(
        "bind",
        instead,
        situation.task,
        action="bind each thread to a cpu of its own, in order",
        evidence="OpenMP's threads go from node to node, away from the memory that they touched first",
        change=f"{BOUND} {situation.command}",
    )


def interleaved(situation: Situation) -> Advice | None:
    """To spread all memory over the nodes."""
    instead = alone(situation.task, interleaved=True)
    if not situation.gain(instead):
        return None
    served = situation.usual.traffic.sum(axis=0)
    share = float(served.max() / max(served.sum(), 1e-300))
    if share * len(situation.task.machine.cpu_nodes) < UNEVEN:
        return None
    return situation.advice(
        "interleave",
        instead,
        action="spread all memory over the nodes",
        evidence=f"{share:.0%} of what reaches memory is served by one node",
        change=f"numactl --interleave=all {situation.command}",
    )
