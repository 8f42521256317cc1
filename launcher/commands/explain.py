"""What a launch will do, and commands of other tools that come near it; runs nothing."""

from collections import defaultdict
from collections.abc import Sequence

from numaplan.common import check_output, counted, find_program, shell_line
from numaplan.machine import format_list
from numaplan.mapper import Plan, PlanRegion, make_policy

from ..enforce.process_memory import memory_nodes, where_memory_is
from ..launch.request import CheckedLaunch
from ..online.options import OnlineOptions
from ..online.running import check_owners, processes_to_refine
from ..online.session import events_for
from ..process import procfs
from ..verify.applied import human_bytes, thread_name

SHOWN = 64  # threads and regions listed one by one
_UNPLANNED = {
    "float": "where their pool is, or where their process's planned threads work",
    "anywhere": "on all cpus",
    "inherit": "on the cpus of the thread that created them",
}


def explain(launch: CheckedLaunch) -> str:
    """Lines for people: threads' cpus, regions' nodes, and equivalents for numactl, taskset, OpenMP."""
    plan = launch.plan
    if not (plan.threads or plan.memory):
        return "\n".join(_left_alone(launch))
    lines = [
        *launch.warnings,
        *([f"left alone but for its cpus: {plan.alone}"] if plan.alone else []),
        f"{counted(len(plan.threads), 'thread')} by {plan.method},"
        f" {counted(len(plan.memory), 'memory region')}",
        _binding(launch),
        f"threads not in the plan: {_UNPLANNED[launch.request.unplanned]}",
        f"affinity that the program sets for itself: {'undone' if launch.request.override else 'respected'}",
        f"memory left to first touch: {'AutoNUMA may move it' if launch.autonuma else 'stays'}",
        "",
        "threads:",
    ]
    lines += [
        f"  {thread_name(thread.process, thread.path)}: node {thread.node}, cpus {format_list(thread.cpus)}"
        for thread in plan.threads[:SHOWN]
    ]
    if len(plan.threads) > SHOWN:
        lines.append(f"  … and {len(plan.threads) - SHOWN} more")
    if plan.memory:
        unseen = " in the plan, of which no region can be placed from outside" if launch.from_outside else ""
        lines += ["", f"memory{unseen}:", *(f"  {_region(region)}" for region in plan.memory[:SHOWN])]
    if len(plan.memory) > SHOWN:
        lines.append(f"  … and {len(plan.memory) - SHOWN} more")
    if launch.request.online:
        lines += ["", *_refining(launch.request.online)]
    return "\n".join(
        [
            *lines,
            "",
            "near equivalents without nlaunch:",
            *_equivalents(plan, shell_line(launch.request.argv)),
        ]
    )


def _left_alone(launch: CheckedLaunch) -> list[str]:
    """Of a plan that places nothing there is nothing to list, and no other tool to do it."""
    why = f"the plan leaves it alone: {launch.plan.alone}" if launch.plan.alone else "the plan places nothing"
    online = launch.request.online
    would = f"would run it as it is: {shell_line(launch.request.argv)}"
    return [*launch.warnings, why, would, *(_refining(online) if online else [])]


def explain_online(options: OnlineOptions, argv: Sequence[str], pids: Sequence[int], all_mine: bool) -> str:
    """Lines for people: what would be refined, by what, and how; argv: a program to start, where no other is.

    Raises UsageError and MachineLacksError for what a start would.
    """
    if not (pids or all_mine):
        find_program(argv)
        lines = [f"would start {shell_line(argv)}, and refine it"]
    else:
        check_owners(pids)
        found = pids or processes_to_refine()
        what = f"{len(found)} {'process' if len(found) == 1 else 'processes'}"
        lines = [f"would refine {what}{', also those started later' if all_mine else ''}:"]
        lines += [f"  {pid}: {counted(len(procfs.thread_ids(pid)), 'thread')}" for pid in found[:SHOWN]]
        if len(found) > SHOWN:
            lines.append(f"  … and {len(found) - SHOWN} more")
    return "\n".join([*lines, *_refining(options)])


def _refining(options: OnlineOptions) -> list[str]:
    """The policy and its limits; raises UsageError and MachineLacksError as a session would."""
    policy = make_policy(options.policy, options.settings)
    events = events_for(policy, options.backend)
    if options.save:
        check_output(options.save)
    samples = f"samples of {events.backend}" if events else "no samples"
    return [
        f"policy {options.policy}, each {policy.period_s:g} s, by {samples}",
        f"at most {options.moves:g} thread moves and {options.megabytes:g} MB of pages per second,"
        f" {options.overhead:.1%} of all cpus' time",
        *([f"would append to {options.journal}"] if options.journal else []),
        *([f"would write {options.save}"] if options.save else []),
    ]


def _binding(launch: CheckedLaunch) -> str:
    if launch.from_outside:
        reason = launch.obstacle or "asked for"
        where = where_memory_is(memory_nodes(launch.plan, launch.root, launch.machine))
        return f"threads bound from outside by ptrace ({reason}); memory is {where}"
    return "threads bound and memory placed by a library that is loaded into the program"


def _region(region: PlanRegion) -> str:
    key = region.region
    by_node: dict[int, int] = defaultdict(int)
    for run in region.runs:
        by_node[run.node] += run.bytes
    where = ", ".join(
        f"{f'{count / key.bytes:.0%}' if region.rule else human_bytes(count)} on node {node}"
        for node, count in sorted(by_node.items())
    )
    if list(by_node.values()) == [key.bytes]:
        where = f"on node {region.runs[0].node}"
    what = region.title if region.rule else f"{region.title}, {human_bytes(key.bytes)}"
    return f"{what}: {region.policy} {where}".rstrip()


def _equivalents(plan: Plan, command: str) -> list[str]:
    cpus = sorted({cpu for thread in plan.threads for cpu in thread.cpus})
    if plan.alone:  # its memory is the kernel's, on any node
        return [f"  taskset -c {format_list(cpus)} {command}"]
    nodes = sorted({thread.node for thread in plan.threads})
    team = [t for t in plan.threads if t.process == "p0" and (t.path == "0" or t.path.count(".") == 1)]
    team.sort(key=lambda thread: int(thread.path.partition(".")[2] or 0))
    places = ",".join("{" + ",".join(str(cpu) for cpu in thread.cpus) + "}" for thread in team)
    memory_nodes = sorted({run.node for region in plan.memory for run in region.runs}) or nodes
    return [
        f"  numactl --cpunodebind={format_list(nodes)} --membind={format_list(memory_nodes)} {command}",
        f"  taskset -c {format_list(cpus)} {command}",
        f"  OMP_PROC_BIND=true OMP_PLACES='{places}' {command}",
    ]
