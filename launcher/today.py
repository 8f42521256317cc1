"""The plan against what is here today: machine, usable cpus, build of the program, rank in a job."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from numaplan.common import UsageError
from numaplan.mapper import Plan
from numaplan.profiler.machine import Machine

if TYPE_CHECKING:
    from numaplan.launcher.elf import ElfFacts


def fit_plan(
    path: str, remap: bool, machine: Machine, program: str = "", facts: "ElfFacts | None" = None
) -> Plan:
    """The plan in a file as it can be used on `machine` for a program with these facts (None: unknown).

    Raises UsageError with every reason why it cannot be used; with `remap` the plan is fitted to the machine,
    and another build of the program is taken.
    """
    plan = Plan.load(path)
    reasons = [_where(plan, machine)] if _elsewhere(plan, machine) else []
    if facts and other_build(plan, facts) and _same_name(plan, program):
        reasons.append("made for another build of the program")
    if not reasons:
        return plan
    if not remap:
        raise UsageError(
            f"{path}: {'; '.join(reasons)}", "plan again ('nmap plan --machine local'), or add --remap"
        )
    from numaplan.launcher.remap import remap_plan

    return remap_plan(plan, machine) if _elsewhere(plan, machine) else plan


def own_part(plan: Plan, root: str) -> Plan:
    """What the plan says of the process `root` and its children; all of it when it knows no such rank."""
    if root == "p0" or not any(_within(thread.process, root) for thread in plan.threads):
        return plan
    return msgspec.structs.replace(
        plan,
        threads=tuple(thread for thread in plan.threads if _within(thread.process, root)),
        memory=tuple(region for region in plan.memory if _within(region.region.process, root)),
    )


def _within(process: str, root: str) -> bool:
    return process == root or process.startswith(root + ".")


def other_build(plan: Plan, facts: "ElfFacts") -> bool:
    """Whether what is started is not the executable that the plan was made for."""
    return bool(plan.app.build_id) and facts.build_id != plan.app.build_id


def _same_name(plan: Plan, program: str) -> bool:
    """A program by another name may be one that starts the plan's (a shell, a wrapper): that is only said."""
    return bool(plan.app.argv) and Path(plan.app.argv[0]).name == Path(program).name


def _elsewhere(plan: Plan, machine: Machine) -> bool:
    planned = {cpu for thread in plan.threads for cpu in thread.cpus}
    return plan.machine.fingerprint != machine.fingerprint and not (
        _same_but_for_cpus(plan.machine.machine(), machine) and planned <= set(machine.cpus)
    )


def _same_but_for_cpus(theirs: Machine, ours: Machine) -> bool:
    """Whether ours is the plan's machine with some cpus out of use; a plan that needs none of them holds."""
    return (
        theirs.node_ids == ours.node_ids
        and theirs.distance_rows == ours.distance_rows
        and all(theirs.node_of_cpu.get(cpu) == node for cpu, node in ours.node_of_cpu.items())
    )


def _where(plan: Plan, machine: Machine) -> str:
    theirs = plan.machine.machine()
    if _same_but_for_cpus(theirs, machine):
        gone = sorted({cpu for thread in plan.threads for cpu in thread.cpus} - set(machine.cpus))
        shown = ", ".join(map(str, gone[:8])) + (", …" if len(gone) > 8 else "")
        return f"needs cpus that are offline or not allowed here ({shown})"
    return f"made for another machine ({plan.machine.name}: {_shape(theirs)}; here: {_shape(machine)})"


def _shape(machine: Machine) -> str:
    counts = [len(node.cpus) for node in machine.cpu_nodes]
    if len(set(counts)) == 1:
        return f"{len(counts)} node{'s' if len(counts) > 1 else ''} of {counts[0]} cpus"
    return f"{len(machine.nodes)} nodes, {sum(counts)} cpus"
