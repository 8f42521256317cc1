"""The plan compared with what was logged of a run: what was applied, and the reasons where it was not."""

import os
from collections.abc import Sequence
from pathlib import Path

from numaplan.machine import format_list
from numaplan.mapper import Plan, PlanRegion, PlanThread, RegionKey

from ..enforce.plan_table import PlanTable
from ..enforce.process_memory import where_memory_is
from .applied import (
    Applied,
    AppliedRegion,
    AppliedThread,
    Unplanned,
    human_bytes,
    missing_threads,
    unplanned_threads,
)
from .logged_run import LoggedRegion, LoggedRun, LoggedThread
from .reasons import affinity_change, binding_failure, placement_failure

Misplaced = dict[tuple[int, int], int]  # bytes by (node wanted, actual node)
LISTED = 1000  # unplanned threads listed by name


def make_report(
    plan: Plan,
    table: PlanTable,
    logged: LoggedRun,
    exit_code: int,
    notes: tuple[str, ...],
    root: Path = Path("/"),
) -> Applied:
    """Compare the plan with the logs.

    notes: reasons known before the start that concern the result (another build, an affinity variable).
    root: where the /sys and /proc are of the system that it ran on; what they do not have is not said.
    """
    threads = tuple(_thread(thread, logged) for thread in plan.threads)
    rows = {region.region: row for row, region in enumerate(table.regions)}
    memory = tuple(
        _region(region, logged.regions.get(rows.get(region.region, -1)))
        for region in plan.memory
        if region.region.kind != "stack"
    )
    missing = tuple(
        f"{thread.process}/{thread.path}" for thread in plan.threads if _key(thread) not in logged.threads
    )
    beyond = _beyond(plan, logged)
    unplanned = tuple(
        Unplanned(path=actual.path, process=actual.process, applied=actual.cpus) for actual in beyond
    )
    reasons = [
        *notes,
        *_sandbox_reasons(table, logged),
        *_thread_reasons(plan, logged, root),
        *_memory_reasons(plan, table, logged, memory, root),
        *(text + _followed(beyond) for text in unplanned_threads(unplanned, len(unplanned))),
        *missing_threads(missing, plan),
    ]
    as_planned = sum(set(thread.planned) == set(thread.applied) for thread in threads)
    if logged.lost:
        reasons.append(f"{logged.lost} events were lost (disk full?): the report is not complete")
    good_memory = all(region.appeared and region.well_placed for region in memory) and not any(
        logged.regions[row].error and _is_left_alone(region, logged)
        for row, region in enumerate(table.regions)
        if row in logged.regions
    )
    made, placed = logged.memory
    memory_share = round(placed / made, 4) if made else -1.0
    access_share = _access_share(plan, rows, logged)
    misplaced = _misplaced_bytes(plan, rows, logged)
    unseen = threads and all(_is_unseen(region, logged) for region in memory)
    told = () if unseen else memory
    summary = _summary(as_planned, len(threads), told, misplaced, logged.full, root)
    return Applied(
        ok=as_planned == len(threads) and not unplanned and good_memory and not logged.bad_table,
        summary=summary + _coverage(memory_share, access_share),
        exit_code=exit_code,
        threads=threads,
        memory=memory,
        unplanned=unplanned[:LISTED],
        unplanned_count=len(unplanned),
        missing=missing,
        reasons=tuple(dict.fromkeys(reasons)),
        memory_bytes=made,
        memory_share=memory_share,
        access_share=access_share,
    )


def _access_share(plan: Plan, rows: dict[RegionKey, int], logged: LoggedRun) -> float:
    """Share of the recorded accesses to regions that appeared; -1 where the plan does not say."""
    shares = [
        region.share * (rows.get(region.region, -1) in logged.regions)
        for region in plan.memory
        if isinstance(region.share, float)
    ]
    return round(min(sum(shares), 1.0), 4) if shares else -1.0


def _coverage(memory: float, accesses: float) -> str:
    """What the plan has a place for, beside how much of that is as planned."""
    parts = [
        f"{share:.0%} of the {what}"
        for share, what in ((memory, "memory"), (accesses, "accesses"))
        if share >= 0
    ]
    return f"; the plan places {' and '.join(parts)}" if parts else ""


def _absent(memory: tuple[AppliedRegion, ...], logged: LoggedRun) -> list[str]:
    """What to say of regions that were not there; of a program whose memory was seen, where most are not."""
    absent = sum(not region.appeared and not _is_unseen(region, logged) for region in memory)
    if not absent:
        return []
    text = f"{absent} of {len(memory)} planned regions never appeared"
    most = 2 * absent > len(memory) and logged.memory[0] > 0
    return [f"{text}: is this another input than the recorded one?" if most else text]


def _is_unseen(region: AppliedRegion, logged: LoggedRun) -> bool:
    """Whether it may have been there: of a process that is followed from outside, regions are not seen."""
    process = region.region.process
    return not region.appeared and process in logged.outside and process not in logged.sandboxed


def _beyond(plan: Plan, logged: LoggedRun) -> list[LoggedThread]:
    """Threads of planned processes that the plan does not name."""
    processes = {thread.process for thread in plan.threads}
    return [one for one in logged.threads.values() if not one.planned and one.process in processes]


def _followed(beyond: Sequence[LoggedThread]) -> str:
    """How many of them have the cpus of planned ones, to add to what is said of them."""
    count = sum(thread.follows for thread in beyond)
    who = "it has" if len(beyond) == 1 else "they have" if count == len(beyond) else f"{count} of them have"
    return f": {who} the cpus of planned ones that had ended" if count else ""


def _key(thread: PlanThread) -> tuple[str, str]:
    return thread.process, thread.path


def _thread(thread: PlanThread, logged: LoggedRun) -> AppliedThread:
    actual = logged.threads.get(_key(thread))
    return AppliedThread(
        path=thread.path,
        planned=thread.cpus,
        applied=actual.cpus if actual is not None else (),
        process=thread.process,
        tid=actual.tid if actual is not None else 0,
    )


def _is_misplaced(region: PlanRegion, wanted: int, actual: int) -> bool:
    """Whether a page wanted on one node (-1: on none) and found on another (-1: not touched) is misplaced."""
    if region.policy == "next-touch" or wanted < 0 or actual < 0 or wanted == actual:
        return False
    return region.policy != "interleave" or actual not in {run.node for run in region.runs}


def _misplaced_bytes(plan: Plan, rows: dict[RegionKey, int], logged: LoggedRun) -> Misplaced:
    """Misplaced bytes by (node wanted, actual node)."""
    misplaced_bytes: Misplaced = {}
    for region in plan.memory:
        actual = logged.regions.get(rows.get(region.region, -1))
        for pair, count in (actual.pages if actual else {}).items():
            if _is_misplaced(region, *pair):
                misplaced_bytes[pair] = misplaced_bytes.get(pair, 0) + count
    return misplaced_bytes


def _region(region: PlanRegion, logged: LoggedRegion | None) -> AppliedRegion:
    planned: dict[str, int] = {}
    if region.rule:  # of all its blocks
        placed = logged.bytes if logged else region.region.bytes
        sizes = [(run.node, run.bytes * placed // region.region.bytes) for run in region.runs]
    else:
        today = (logged.bytes if logged else 0) or region.region.bytes
        sizes = [(run.node, run.bytes) for run in region.runs_of(today)]
    for node, size in sizes:
        planned[str(node)] = planned.get(str(node), 0) + size
    actual: dict[str, int] = {}
    misplaced = 0
    for (wanted, node), count in (logged.pages if logged else {}).items():
        if node < 0:
            continue
        actual[str(node)] = actual.get(str(node), 0) + count
        if _is_misplaced(region, wanted, node):
            misplaced += count
    return AppliedRegion(
        region=region.region,
        planned=planned,
        actual=actual,
        misplaced=misplaced,
        appeared=logged is not None,
        blocks=logged.blocks if logged else 0,
    )


def _thread_reasons(plan: Plan, logged: LoggedRun, root: Path) -> list[str]:
    reasons: list[str] = []
    if not logged.processes:
        reasons.append("the program did not load the library (static, setuid, or it never started)")
    if logged.bad_table:
        reasons.append("the library refused the plan's table")
    for thread in plan.threads:
        actual = logged.threads.get(_key(thread))
        if actual is None or set(actual.cpus) == set(thread.cpus):
            continue
        reason = (
            binding_failure(thread.cpus, actual.error, root)
            if actual.error
            else affinity_change(thread.cpus, actual.cpus, root)
        )
        reasons.append(f"thread {thread.path} is not on cpus {format_list(thread.cpus)}: {reason}")
    return reasons


def _sandbox_reasons(table: PlanTable, logged: LoggedRun) -> list[str]:
    """What was left to others, or not done, as processes restrict their system calls."""
    return [
        f"{process} restricts its system calls (seccomp): {threads}, "
        f"later memory was {where_memory_is(table.spread.get(process, ()))}"
        for process, threads in sorted(logged.sandboxed.items())
    ]


def _is_left_alone(region: PlanRegion, logged: LoggedRun) -> bool:
    """Whether a process did not let us place a region."""
    return region.region.process in logged.sandboxed


def _memory_reasons(
    plan: Plan, table: PlanTable, logged: LoggedRun, memory: tuple[AppliedRegion, ...], root: Path
) -> list[str]:
    reasons = _absent(memory, logged)
    reasons += [
        f"{region.title}: {reason}" for region, reason in table.skipped if region.region.kind != "stack"
    ]
    for row, region in enumerate(table.regions):
        actual = logged.regions.get(row)
        name = region.title
        if actual is not None and actual.error and not _is_left_alone(region, logged):
            reasons.append(f"{name}: {_region_failure(region, actual.error, root)}")
        proportional = region.rule or region.scales
        resized = actual is not None and not proportional and actual.bytes not in (0, region.region.bytes)
        if actual is not None and resized:
            reasons.append(f"{name}: {actual.bytes} bytes today, {region.region.bytes} in the plan")
    for item in memory:
        if not item.well_placed:
            full = [f"node {node} was full" for node in item.planned if int(node) in logged.full]
            detail = "".join(f": {reason}" for reason in full[:1])
            reasons.append(
                f"{item.region.kind} {item.region.name}: {human_bytes(item.misplaced)} on other nodes{detail}"
            )
    if any(region.policy == "next-touch" for region in plan.memory):
        marked, moved, stayed = logged.next_touch
        detail = f"{human_bytes(marked)} marked, {moved} pages moved, {stayed} could not be"
        reasons.append(f"next-touch: {detail}" if marked else "next-touch regions were left to first touch")
    return reasons


def _region_failure(region: PlanRegion, error: int, root: Path) -> str:
    detail = [placement_failure(run.node, root) for run in region.runs]
    return next(filter(None, detail), f"{os.strerror(error)} (not permitted in this container?)")


def _summary(
    as_planned: int,
    threads: int,
    memory: tuple[AppliedRegion, ...],
    misplaced_bytes: Misplaced,
    full: set[int],
    root: Path,
) -> str:
    if not threads and not memory:
        return "the plan places nothing"
    text = f"{as_planned}/{threads} threads"
    touched = sum(sum(region.actual.values()) for region in memory)
    if not memory:
        return f"{text} as planned"
    if not touched:
        return f"{text} as planned; no planned memory was touched"
    misplaced = sum(region.misplaced for region in memory)
    share = (touched - misplaced) / touched
    text += f", {int(share * 1000) / 10:g} % of {human_bytes(touched)} as planned"
    if not misplaced:
        return text
    (wanted, actual), most = max(misplaced_bytes.items(), key=lambda item: item[1])
    rest = f" and {human_bytes(misplaced - most)} on others" if misplaced > most else ""
    # It may be no longer full.
    detail = f"node {wanted} was full" if wanted in full else placement_failure(wanted, root)
    return f"{text}; {human_bytes(most)} on node {actual} instead of {wanted}{rest}{detail and ': '}{detail}"
