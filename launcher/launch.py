"""Run a program with its plan: check, translate, start, and say what was applied."""

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from numaplan.common import UsageError, write_document
from numaplan.common.process import find_program, run_program
from numaplan.launcher.compact import Compact, compact
from numaplan.launcher.remap import remap_plan
from numaplan.mapper import Plan
from numaplan.profiler.identity import prepare
from numaplan.profiler.machine import Machine

if TYPE_CHECKING:
    from numaplan.launcher.report import Applied

LIBRARY = Path(__file__).resolve().parent / "native" / "enforce.so"
UNPLANNED = ("float", "anywhere", "inherit")

# Variables by which OpenMP runtimes bind threads on their own; ours comes later and wins at birth.
AFFINITY_VARIABLES = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")


@dataclass(frozen=True)
class LaunchRequest:
    """What to launch and how.

    unplanned: threads that the plan does not name `float` on the cpus of their process's nodes, run
    `anywhere` the process may, or `inherit` what their creator has; strict: a miss makes exit code 1.
    """

    argv: Sequence[str]
    plan_path: str
    report_path: str = ""
    remap: bool = False
    strict: bool = False
    unplanned: str = "float"
    quiet: bool = False


def plan_for(request: LaunchRequest, machine: Machine) -> Plan:
    """The request's plan as it can be used on `machine`; raises UsageError when it was made for another."""
    plan = Plan.load(request.plan_path)
    if plan.machine.fingerprint == machine.fingerprint:
        return plan
    if request.remap:
        return remap_plan(plan, machine)
    theirs, ours = _shape(plan.machine.machine()), _shape(machine)
    raise UsageError(
        f"{request.plan_path}: made for another machine ({plan.machine.name}: {theirs}; here: {ours})",
        "plan for this machine ('nmap plan --machine local'), or add --remap",
    )


def launch_program(request: LaunchRequest, environment: Mapping[str, str] | None = None) -> int:
    """Run the program with its plan and return the exit code that the command ends with.

    Writes the report; one summary line, and one warning if there is something to warn of, go to stderr.
    """
    environment = dict(os.environ if environment is None else environment)
    program = find_program(request.argv)
    machine = Machine.load("local")
    plan = plan_for(request, machine)
    _check_report_path(request.report_path)
    with tempfile.TemporaryDirectory(prefix="nlaunch-") as folder:
        workdir = Path(folder)
        allowed = sorted(os.sched_getaffinity(0) & set(machine.cpus))
        form = make_form(plan, machine, program, request.unplanned, environment, allowed)
        loaded = prepare(workdir, environment, LIBRARY)
        place = workdir / "plan.bin"
        place.write_bytes(form.data)
        loaded["NUMAPLAN_PLAN"] = str(place.resolve())
        code = run_program([*request.argv], loaded)
        # Only now: reading and comparing needs imports that would keep the program waiting.
        from numaplan.launcher.observed import read_observed
        from numaplan.launcher.report import make_report

        notes = _notes(plan, program, environment)
        applied = make_report(plan, form, read_observed(workdir), code, notes)
    return _tell(request, plan, applied, code)


def make_form(
    plan: Plan,
    machine: Machine,
    program: str,
    unplanned: str,
    environment: Mapping[str, str],
    allowed: Sequence[int] = (),
) -> Compact:
    """The plan's compact form for a program on this machine.

    allowed: cpus that threads outside the plan may have, all of the machine's by default.
    """
    from numaplan.launcher.program import StaticData, executable_of

    floating = _floating(plan, machine, unplanned, allowed or machine.cpus)
    if not any(region.region.kind == "static" for region in plan.memory):
        return compact(plan, floating, lambda _module, _symbol: None)
    return compact(plan, floating, StaticData(executable_of(program), environment).locate)


def _floating(
    plan: Plan, machine: Machine, unplanned: str, everything: Sequence[int]
) -> dict[str, Sequence[int]]:
    """Cpus of threads that the plan does not name, by process; "": processes that it does not name."""
    if unplanned == "inherit":
        return {}
    floating: dict[str, Sequence[int]] = {"": everything}
    for process in {thread.process for thread in plan.threads}:
        nodes = {thread.node for thread in plan.threads if thread.process == process}
        near = tuple(cpu for cpu in everything if machine.node_of_cpu[cpu] in nodes)
        floating[process] = near if unplanned == "float" and near else everything
    return floating


def _notes(plan: Plan, program: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    from numaplan.launcher.program import executable_of, is_static
    from numaplan.profiler.identity import build_id_of

    notes = [
        f"{name} is set: the program's runtime binds too"
        for name in AFFINITY_VARIABLES
        if environment.get(name)
    ]
    executable = executable_of(program)
    if is_static(executable):
        notes.append("the program is statically linked: nothing can be loaded into it")
    if plan.app.build_id and build_id_of(executable) != plan.app.build_id:
        notes.append("the program is another build than the one the plan was made for")
    return tuple(notes)


def _check_report_path(path: str) -> None:
    """A report that cannot be written should stop us before the program runs, not after."""
    if path and not Path(path).absolute().parent.is_dir():
        raise UsageError(f"{path}: no folder {Path(path).parent}", "create it first")
    if path and Path(path).is_dir():
        raise UsageError(f"{path}: is a directory", "name a file")


def _tell(request: LaunchRequest, plan: Plan, applied: "Applied", code: int) -> int:
    from numaplan.launcher.report import warning_of

    if request.report_path:
        write_document(request.report_path, applied.to_json())
    warning = warning_of(applied, plan)
    if warning and not request.quiet:
        print(f"nlaunch: warning: {warning}", file=sys.stderr)
    if not request.quiet:
        print(f"nlaunch: {applied.summary}", file=sys.stderr)
    return 1 if request.strict and not applied.ok and code == 0 else code


def _shape(machine: Machine) -> str:
    counts = [len(node.cpus) for node in machine.cpu_nodes]
    if len(set(counts)) == 1:
        return f"{len(counts)} node{'s' if len(counts) > 1 else ''} of {counts[0]} cpus"
    return f"{len(machine.nodes)} nodes, {sum(counts)} cpus"
