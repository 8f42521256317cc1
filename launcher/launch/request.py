"""The request for a launch, and the request checked against the plan, the program and this machine."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from numaplan.common import UsageError, check_output, find_program, script_path
from numaplan.machine import Machine
from numaplan.mapper import AppliedRank, Plan, ranks_elsewhere
from numaplan.profiler import ElfFacts, elf_facts, executable_of, first_process, machine_named, ranks_here

from ..enforce.container import fit_to_container
from ..enforce.idle_cpus import idle_beside
from ..enforce.plan_fit import HINT, fitted, no_part_for, part_of_process
from ..enforce.program import gains_privileges, preload_obstacle
from ..verify.applied import Applied

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..online.options import OnlineOptions

UNPLANNED = ("float", "anywhere", "inherit")
BY = ("auto", "preload", "ptrace")


class LaunchRequest(msgspec.Struct, frozen=True):
    """What to launch and how.

    remap: fit a plan for another machine (None: only to the cpus of a container);
    unplanned: threads that the plan does not name `float` where their pool is, or their process's planned
    ones work, run `anywhere` the process may, or `inherit` what their creator has; strict: a miss makes exit
    code 1; by: the `preload` library, `ptrace` from outside, or `auto`; override: the plan holds where the
    program sets its own affinity; autonuma: the kernel may move memory that the plan leaves to first touch;
    watch: seconds between two checks while it runs, 0: none; match: after match_seconds, bind threads by the
    roles that they play, as the plan tells them or, better, the trace it was made from; online: keep refining
    from the plan on; job_path: a job's plan in place of a program's: each rank takes its part, and its report
    goes into the folder report_path.
    """

    argv: Sequence[str]
    plan_path: str = ""
    report_path: str = ""
    remap: bool | None = None
    strict: bool = False
    unplanned: str = "float"
    quiet: bool = False
    by: str = "auto"
    override: bool = False
    autonuma: bool = False
    watch: float = 0.0
    match: bool = False
    match_seconds: float = 2.0
    match_trace: str = ""
    online: "OnlineOptions | None" = None
    job_path: str = ""


class CheckedLaunch(msgspec.Struct, frozen=True):
    """What runs, on which machine, with which part of the plan.

    report_path: of the request, with the rank in it, empty where a job's cannot be written; program: the file
    that is started; facts: of the ELF file that then runs, of a script its interpreter; obstacle: why the
    preload library cannot see the program's threads, empty when it can; from_outside: whether the tracer
    binds them instead; root: name of the first process; rank: with a job's plan, which it is; warnings: what
    to say before the start; noted: is told at the end what was applied.
    """

    request: LaunchRequest
    report_path: str
    machine: Machine
    plan: Plan
    environment: Mapping[str, str]
    program: str
    facts: ElfFacts | None
    obstacle: str
    from_outside: bool
    root: str
    rank: AppliedRank | None = None
    warnings: Sequence[str] = ()
    noted: "Callable[[Applied], None] | None" = None

    @property
    def autonuma(self) -> bool:
        """Whether the kernel may move memory: somebody asked, or the plan only keeps threads to some cpus."""
        return self.request.autonuma or bool(self.plan.alone)


class Target(msgspec.Struct, frozen=True):
    """What is about to run, and where, as in CheckedLaunch. executable: the ELF file that facts are of."""

    program: str
    executable: str
    facts: ElfFacts | None
    root: str
    machine: Machine
    environment: Mapping[str, str]


def look_at(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> Target:
    """The program that a command line names, and this machine; raises UsageError for no such program."""
    environment = dict(os.environ if environment is None else environment)
    program = find_program(argv)
    executable = executable_of(program)
    root = first_process(environment)
    if root != "p0":
        _unbind()
    machine = machine_named("local", environment)
    return Target(program, executable, elf_facts(executable), root, machine, environment)


def check(
    request: LaunchRequest, environment: Mapping[str, str] | None = None, *, starts: bool = True
) -> CheckedLaunch:
    """Everything that can be wrong before a program is started; raises UsageError.

    starts: whether it will be; if not, a job's plan may be looked at outside the job.
    """
    target = look_at(request.argv, environment)
    if request.job_path:
        return _of_job(request, target, starts=starts)
    made = plan = Plan.load(request.plan_path)
    line = ""
    if request.remap is None:
        plan, line = fit_to_container(made, target.machine, target.environment)
    about = target.machine, bool(request.remap), target.program, target.facts
    elsewhere = ranks_elsewhere(plan, ranks_here(target.environment) or 0)
    absent = no_part_for(plan, target.root)
    warnings = [line, f"{request.plan_path}: {elsewhere}, and may share cpus" if elsewhere else ""]
    warnings.append(f"{request.plan_path} {absent}" if absent else "")
    plan = fitted(plan, request.plan_path, *about, HINT)
    warnings.append(idle_beside(plan) if plan is not made else "")
    return checked(request, target, plan, warnings=[*filter(None, warnings)])


def checked(
    request: LaunchRequest,
    target: Target,
    plan: Plan,
    noted: "Callable[[Applied], None] | None" = None,
    warnings: Sequence[str] = (),
) -> CheckedLaunch:
    """The launch of what is there with a plan that fits; noted, warnings: as in CheckedLaunch.

    Raises UsageError.
    """
    report_path = request.report_path.replace("%r", target.root)
    if report_path:
        check_output(report_path, _read_by(request, target))
    part = part_of_process(plan, target.root)
    return _launch(request, target, part, report_path, noted=noted, warnings=warnings)


def _read_by(request: LaunchRequest, target: Target) -> list[str]:
    """The files that a launch reads and starts."""
    named = (request.plan_path, request.job_path, request.match_trace, target.program)
    return [name for name in (*named, script_path(request.argv)) if name]


def _of_job(request: LaunchRequest, target: Target, *, starts: bool) -> CheckedLaunch:
    from ..jobs.part import part_of_job, report_in

    part = part_of_job(
        request.job_path,
        target.environment,
        target.machine,
        request.remap,
        target.program,
        target.facts,
    )
    if starts and part.rank is None:
        raise UsageError(
            "--job: this is no rank of a job (no launcher has said which)",
            f"start it as 'nmap export {request.job_path} --format …' says, by mpirun or srun",
        )
    report_path = complaint = ""
    if starts:
        report_path, complaint = report_in(request.report_path, target.root, _read_by(request, target))
    warnings = [text for text in (part.note, complaint) if text]
    return _launch(request, target, part.plan, report_path, rank=part.rank, warnings=warnings)


def _launch(
    request: LaunchRequest,
    target: Target,
    plan: Plan,
    report_path: str,
    *,
    rank: AppliedRank | None = None,
    warnings: Sequence[str] = (),
    noted: "Callable[[Applied], None] | None" = None,
) -> CheckedLaunch:
    obstacle = preload_obstacle(target.executable, target.facts)
    return CheckedLaunch(
        request,
        report_path,
        target.machine,
        plan,
        target.environment,
        target.program,
        target.facts,
        obstacle,
        _is_bound_from_outside(request, target.executable, obstacle),
        target.root,
        rank,
        warnings,
        noted,
    )


def _is_bound_from_outside(request: LaunchRequest, executable: str, obstacle: str) -> bool:
    if request.by != "auto" or not obstacle:
        return request.by == "ptrace"
    # Of a program that gains privileges the kernel would take these away under a tracer that has none.
    return os.geteuid() == 0 or not gains_privileges(executable)


def _unbind() -> None:
    """A rank was bound by its starter before it came to us; the plan says where it belongs."""
    with suppress(OSError):
        os.sched_setaffinity(0, range(os.sysconf("SC_NPROCESSORS_CONF")))
