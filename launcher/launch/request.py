"""The request for a launch, and the request checked against the plan, the program and this machine."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from numaplan.common import UsageError, check_output, find_program
from numaplan.machine import Machine
from numaplan.mapper import Plan
from numaplan.profiler import ElfFacts, elf_facts, first_process

from ..enforce.plan_fit import fit_plan, part_of_process
from ..enforce.program import executable_of, gains_privileges, preload_obstacle
from ..verify.applied import AppliedRank

if TYPE_CHECKING:
    from ..online.options import OnlineOptions

UNPLANNED = ("float", "anywhere", "inherit")
BY = ("auto", "preload", "ptrace")


class LaunchRequest(msgspec.Struct, frozen=True):
    """What to launch and how.

    unplanned: threads that the plan does not name `float` on the cpus of their process's nodes, run
    `anywhere` the process may, or `inherit` what their creator has; strict: a miss makes exit code 1; by: the
    `preload` library, `ptrace` from outside, or `auto`; override: the plan holds where the program sets its
    own affinity; autonuma: the kernel may move memory that the plan leaves to first touch; watch: seconds
    between two checks while it runs, 0: none; match: after match_seconds, bind threads by the roles that
    they play, as the plan tells them or, better, the trace it was made from; online: keep refining from the
    plan on; job_path: a job's plan in place of a program's: each rank takes its part, and its report goes
    into the folder report_path.
    """

    argv: Sequence[str]
    plan_path: str = ""
    report_path: str = ""
    remap: bool = False
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
    to say before the start.
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


def check(
    request: LaunchRequest, environment: Mapping[str, str] | None = None, *, starts: bool = True
) -> CheckedLaunch:
    """Everything that can be wrong before a program is started; raises UsageError.

    starts: whether it will be; if not, a job's plan may be looked at outside the job.
    """
    environment = dict(os.environ if environment is None else environment)
    program = find_program(request.argv)
    executable = executable_of(program)
    facts = elf_facts(executable)
    root = first_process(environment)
    if root != "p0":
        _unbind()
    machine = Machine.load("local")
    rank: AppliedRank | None = None
    warnings: list[str] = []
    report_path = request.report_path.replace("%r", root)
    if request.job_path:
        from ..jobs.part import part_of_job, report_in

        part = part_of_job(request.job_path, environment, machine, request.remap, program, facts)
        if starts and part.rank is None:
            raise UsageError(
                "--job: this is no rank of a job (no launcher has said which)",
                f"start it as 'nmap export {request.job_path} --format …' says, by mpirun or srun",
            )
        plan, rank = part.plan, part.rank
        report_path, complaint = report_in(report_path, root) if starts else ("", "")
        warnings = [text for text in (part.note, complaint) if text]
    else:
        plan = part_of_process(fit_plan(request.plan_path, machine, request.remap, program, facts), root)
        if report_path:
            check_output(report_path)
    obstacle = preload_obstacle(executable, facts)
    return CheckedLaunch(
        request,
        report_path,
        machine,
        plan,
        environment,
        program,
        facts,
        obstacle,
        _is_bound_from_outside(request, executable, obstacle),
        root,
        rank,
        warnings,
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
