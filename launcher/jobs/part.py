"""A rank's part of a job's plan: another cluster is refused, a rank that is not planned here has none."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from numaplan.common import UsageError, check_output
from numaplan.machine import Machine
from numaplan.mapper import AppliedRank, JobPlan, Plan, PlanMachine
from numaplan.profiler import ElfFacts, job_facts

from ..enforce.container import fit_to_container
from ..enforce.plan_fit import fitted, only_process
from .place import Place, find_place, host_here, ranks_in_words, some_hosts

_HINT = "plan for this cluster ('nmap plan PARTS --cluster CLUSTER'), or add --remap"


class RankPart(msgspec.Struct, frozen=True):
    """What a rank gets of a job's plan; rank: for its report, None where the process is none; note: why it
    runs unbound, or what the plan was fitted to, in a line."""

    plan: Plan
    rank: AppliedRank | None
    note: str = ""


def part_of_job(
    path: str,
    environment: Mapping[str, str],
    machine: Machine,
    remap: bool | None,
    program: str,
    facts: ElfFacts | None,
) -> RankPart:
    """The part of the rank that this process is; of a process that is none, all that its host has.

    Raises UsageError for another cluster, unless `remap` fits the plan to what is here (None: only to the
    cpus of a container).
    """
    job = JobPlan.load(path, ())
    told = job_facts(environment)
    here = host_here(job, environment)
    if not here and not remap:
        what = f"{path}: host {os.uname().nodename} is none of the plan's ({some_hosts(job)})"
        raise UsageError(what, _HINT)
    rank = told.get("rank")
    if not isinstance(rank, int):
        host = here or next(iter(job.host_of.values()), "")
        found, line = _plan_of(job, path, host, machine, environment, remap, program, facts)
        return RankPart(found, None, line)
    place = find_place(job, rank, here, told, environment, bool(remap))
    planned = (place.host if remap and place else job.host_of.get(rank)) or ""
    applied = AppliedRank(
        rank=rank,
        host=here or os.uname().nodename,
        # With --remap another rank of this host may have its part.
        planned="" if place is None and planned == here else planned,
        remapped=bool(remap and place and (place.host, place.rank) != (here, rank)),
        ranks=_number(told.get("ranks")),
        planned_ranks=len(job.ranks),
        job=str(told.get("job", "")),
    )
    if place is None:
        return RankPart(_nothing(job, path, machine), applied, _why_unbound(job, applied))
    plan, line = _plan_of(job, path, place.host, machine, environment, remap, program, facts)
    plan = only_process(plan, f"r{place.rank}")
    return RankPart(_as_rank(plan, place, rank), applied, line)


def planned_rank(job: JobPlan, rank: int, machine: Machine) -> Plan:
    """What a rank gets on the host that it is planned on, fitted to that host's machine."""
    host = job.host_of[rank]
    plan = fitted(job.hosts[host], f"host {host}", machine, True, "", None, _HINT)
    return only_process(plan, f"r{rank}")


def report_in(place: str, root: str, inputs: Sequence[str] = ()) -> tuple[str, str]:
    """(the report of the rank `root` in a folder, what to say where it cannot be written: the job runs).

    A name with %r is one of files; inputs: those that it must not be.
    """
    if not place:
        return "", ""
    path = Path(place.replace("%r", root)) if "%r" in place else Path(place) / f"{root}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        check_output(path, inputs)
    except OSError as error:
        return "", f"no report: {path.parent}: {error.strerror}"
    except UsageError as error:
        return "", f"no report: {error.what}"
    return str(path), ""


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _plan_of(
    job: JobPlan,
    path: str,
    host: str,
    machine: Machine,
    environment: Mapping[str, str],
    remap: bool | None,
    program: str,
    facts: ElfFacts | None,
) -> tuple[Plan, str]:
    """A host's plan as it can be used here, and what to say of that; of a host without ranks, one that places
    nothing."""
    if host not in job.host_of.values():
        return _nothing(job, path, machine), ""
    plan, line = JobPlan.load(path, (host,)).hosts[host], ""
    if remap is None:
        plan, line = fit_to_container(plan, machine, environment)
    return fitted(plan, f"{path}: host {host}", machine, bool(remap), program, facts, _HINT), line


def _nothing(job: JobPlan, path: str, machine: Machine) -> Plan:
    """A plan of the job's program that places nothing, on this machine."""
    if not job.ranks:
        raise UsageError(f"{path}: a plan of no ranks", "plan the job's parts again ('nmap plan')")
    host = job.ranks[0].host
    plan = JobPlan.load(path, (host,)).hosts[host]
    predicted = msgspec.structs.replace(
        plan.predicted, node_loads=(), node_shares=(), baselines={}, today=None
    )
    return msgspec.structs.replace(
        plan, machine=PlanMachine.of(machine), threads=(), memory=(), predicted=predicted
    )


def _why_unbound(job: JobPlan, applied: AppliedRank) -> str:
    rank = applied.rank
    if applied.planned and not applied.remapped:
        why = f"rank {rank} is planned on host {applied.planned}, and runs on {applied.host}"
    elif rank in job.host_of:
        why = f"more ranks run on {applied.host} than the plan has on a host"
    else:
        why = f"rank {rank} is not in the plan (it has {ranks_in_words(job)})"
    return f"{why}: it is not bound; 'nmap export' says how to start the job as planned"


def _as_rank(plan: Plan, place: Place, rank: int) -> Plan:
    """The part of another rank, for this one."""
    if place.rank == rank:
        return plan
    old, new = f"r{place.rank}", f"r{rank}"
    return msgspec.structs.replace(
        plan,
        threads=tuple(
            msgspec.structs.replace(thread, process=new + thread.process.removeprefix(old))
            for thread in plan.threads
        ),
        memory=tuple(
            msgspec.structs.replace(
                region,
                region=msgspec.structs.replace(
                    region.region, process=new + region.region.process.removeprefix(old)
                ),
            )
            for region in plan.memory
        ),
    )
