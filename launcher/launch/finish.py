"""After the program's end: what was applied, compared with the plan, written and said."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from numaplan.common import tell, write_document
from numaplan.mapper import Plan
from numaplan.profiler import elf_facts, executable_of, read_control

from ..enforce.plan_fit import runs_other_script, what_differs
from ..enforce.plan_table import PlanTable
from ..enforce.process_memory import where_memory_is
from ..verify.applied import Applied, warning_of
from ..verify.logged_run import LoggedRun, read_logged_run
from ..verify.report import make_report
from .request import CheckedLaunch

# Variables by which OpenMP runtimes bind threads on their own; ours comes later and wins at birth.
AFFINITY_VARIABLES = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")
LONGEST = 2000  # characters of a line for people: a plan may have names of any length


class Attended(msgspec.Struct, frozen=True):
    """What came of attending the program while it ran.

    plan: as --match changed it; match: what that did, in a line; misplaced_threads: what --watch found of
    threads on other cpus; notes: what else there is to say.
    """

    plan: Plan
    match: str
    misplaced_threads: Sequence[str]
    notes: Sequence[str]


def finish(launch: CheckedLaunch, table: PlanTable, workdir: Path, code: int, attended: Attended) -> int:
    """Write the report, say the summary; the exit code that the command ends with."""
    request, plan = launch.request, attended.plan
    logged = read_logged_run(workdir, table.processes)
    notes = (
        *attended.notes,
        *_notes(launch, logged),
        *_memory_from_outside(launch, table, logged),
        *attended.misplaced_threads,
        *_left_running(workdir),
    )
    applied = make_report(plan, table, logged, code, notes)
    applied = msgspec.structs.replace(
        applied,
        ok=applied.ok and not attended.misplaced_threads and (launch.rank is None or launch.rank.as_planned),
        match=attended.match,
        rank=launch.rank or msgspec.UNSET,
    )
    if not request.quiet and not _is_one_of_many(launch, applied):
        warning = warning_of(applied, plan)
        match = f"match: {applied.match}" if applied.match else ""
        say(launch, f"warning: {warning}" if warning else "", match, applied.summary)
    applied = msgspec.structs.replace(applied, reasons=(*launch.warnings, *applied.reasons))
    if launch.noted:
        launch.noted(applied)
    if launch.report_path:
        write_document(launch.report_path, applied.to_json())
    return 1 if request.strict and not applied.ok and code == 0 else code


def _is_one_of_many(launch: CheckedLaunch, applied: Applied) -> bool:
    """Whether this is a rank of a job with nothing to tell that the first does not: all is where planned."""
    if not launch.rank or not launch.rank.rank or not launch.rank.as_planned or applied.match:
        return False
    threads = all(set(thread.planned) == set(thread.applied) for thread in applied.threads)
    return threads and all(region.well_placed for region in applied.memory)


def say(launch: CheckedLaunch, *texts: str) -> None:
    """Lines on stderr, if there is one that is read; nothing for an empty text."""
    who = "nlaunch" if launch.root == "p0" else f"nlaunch: {launch.root}"
    cut = (text if len(text) <= LONGEST else text[:LONGEST] + " …" for text in texts if text)
    with suppress(OSError):
        tell(*(f"{who}: {text}" for text in cut))


def _memory_from_outside(launch: CheckedLaunch, table: PlanTable, logged: LoggedRun) -> list[str]:
    """Processes with planned memory that were followed from outside, as children of one that was not."""
    if launch.from_outside:
        return []
    planned = {region.region.process for region in launch.plan.memory} | set(table.spread)
    return [
        f"memory of {process} was {where_memory_is(nodes)}: nothing can be loaded into it"
        for process in sorted(planned & logged.outside - logged.sandboxed.keys())
        for nodes in [table.spread.get(process, ())]
    ]


def _notes(launch: CheckedLaunch, logged: LoggedRun) -> list[str]:
    plan = launch.plan
    notes = [
        f"{name} is set: the program's runtime binds too"
        for name in AFFINITY_VARIABLES
        if launch.environment.get(name)
    ]
    if launch.obstacle and not launch.from_outside:
        notes.append(f"nothing can be loaded into the program: {launch.obstacle}")
    started = {executable_of(launch.program): launch.facts}
    programs = {file: elf_facts(file) for file in sorted(logged.programs)} or started
    different = what_differs(plan, {launch.program: None, **programs})
    if different and not launch.from_outside:
        different += _unseen(plan.app.name, launch.request.argv)
    if different := different or runs_other_script(plan, launch.request.argv):
        notes.append(different)
    if not launch.request.match and plan.provenance.get("identity", {}).get("stable") is False:
        notes.append("threads swapped roles between the plan's recordings: see --match")
    return notes


def _unseen(name: str, argv: Sequence[str]) -> str:
    """What to add where the plan's program is named behind what started it, and ran without the library."""
    if not name or Path(argv[0]).name == name or name not in " ".join(argv[1:]):
        return ""
    return (
        f": if {name} ran, what started it took nlaunch's variables from it (env -i, su): have nlaunch start "
        f"{name} itself, or bind its threads by --by ptrace"
    )


def _left_running(workdir: Path) -> list[str]:
    """What to say of daemons, and of what is in the background: processes with the library that still run."""
    folder = f" {workdir.resolve()}/".encode()
    pids = {entry.pid for entry in read_control(workdir) if entry.end_ns < 0}
    count = sum(_maps(pid, folder) for pid in pids)
    if not count:
        return []
    who, they = ("process still runs", "it does") if count == 1 else ("processes still run", "they do")
    start = "it starts" if count == 1 else "they start"
    later = f"what {they} from now on is not told, what {start} is not placed"
    return [f"{count} {who} in the background: {later}"]


def _maps(pid: int, folder: bytes) -> bool:
    """Whether a process has a file of the folder mapped; a number alone may be another one."""
    with suppress(OSError):
        return folder in Path(f"/proc/{pid}/maps").read_bytes()
    return False
