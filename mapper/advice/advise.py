"""All advice about a trace, what gains most first."""

from collections.abc import Sequence

from numaplan.analyzer import Advised, FalseSharing, RegionUse, first_touches_only
from numaplan.common import shell_line
from numaplan.machine import Machine
from numaplan.profiler import Trace

from ..plan_file.plan import Plan
from ..planning.cost.timed_task import TimedTask
from ..planning.cost.unplanned import alone
from ..planning.options import PlanOptions
from ..planning.planner import plan_task
from ..workload.workload import Workload
from .binding import bound, given, interleaved, planned
from .crowding import fewer_threads
from .huge_pages import split
from .memory import by_region
from .padding import padded
from .pools import pooled
from .replicas import replicated
from .situation import Situation, gained

MOST_THREADS = 1024
ONE_NODE = (
    "the machine has one node, where a plan can only bind threads to cpus ('nmap plan' says what that saves);"
    " to plan for another machine, name it: such as --machine 4x2, here and for 'nmap plan'"
)


def advise(
    trace: Trace,
    workload: Workload,
    machine: Machine,
    plan: Sequence[str],
    regions: Sequence[RegionUse],
    lines: Sequence[FalseSharing],
    made: tuple[Plan, str] | None = None,
) -> Advised:
    """What to do about a trace on a machine.

    workload: the trace's; plan: the command that plans it, made: the plan that there is, and its name.

    regions, lines: of the whole trace.
    """
    if first_touches_only(trace):
        return Advised(reason="first touches only were recorded: too little to tell what to do")
    task, lane = plan_task(workload, machine, PlanOptions(objective="time", effort="fast"))
    if not task.timed or len(workload.threads) > MOST_THREADS:
        return Advised()
    timed = TimedTask(task)
    several = len({process for process, _ in workload.threads}) > 1
    situation = Situation(
        trace=trace,
        task=timed,
        lane=lane,
        usual=alone(timed),
        regions=regions,
        lines=lines,
        names=[f"{process}:{path}" if several else path for process, path in workload.threads],
        command=shell_line(trace.argv) or "./app",
    )
    if situation.usual.cost.total_ns <= 0:
        return Advised(reason="the threads wait for nothing that a placement could change")
    found, reason = padded(situation), ""
    found += filter(None, [fewer_threads(situation)])
    if len(machine.cpu_nodes) < 2:
        reason = ONE_NODE
    else:
        first, reason = given(situation, *made) if made else planned(situation, plan)
        everywhere = (first, bound(situation), interleaved(situation))
        touched = [*by_region(situation), *(one for one in everywhere if one is not None)]
        found += [
            *touched,
            *replicated(situation, map(gained, touched)),
            *split(situation),
            *pooled(situation),
        ]
    found.sort(key=lambda one: (one.gain_ns is None, -gained(one)))
    if not found and not reason:
        reason = "nothing that could be done would save 1 % of the threads' time: leave it as it is"
    return Advised(tuple(found), reason)
