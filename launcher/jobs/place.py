"""The host that a rank runs on, as the job's plan calls it, and the planned rank that it stands for."""

import os
from collections.abc import Mapping

import msgspec

from numaplan.machine import format_list
from numaplan.mapper import JobPlan

SHOWN = 4  # hosts by name
_SLURM_STEP = "SLURM_STEP_NUM_TASKS"


class Place(msgspec.Struct, frozen=True):
    """A planned rank and its host."""

    host: str
    rank: int


def host_here(job: JobPlan, environment: Mapping[str, str]) -> str:
    """This host's name in the plan, empty where it has none: as Slurm or the system calls it, else the one
    that is the same up to the first dot."""
    known = job.cluster.by_name
    name = os.uname().nodename
    names = [environment.get("SLURMD_NODENAME", "") if _SLURM_STEP in environment else "", name]
    exact = next((one for one in names if one in known), "")
    short = _short(name)
    alike = [one for one in known if short and _short(one) == short]
    both_full = len(alike) == 1 and "." in name and "." in alike[0]  # and not the same: another domain
    return exact or (alike[0] if len(alike) == 1 and not both_full else "")


def _short(name: str) -> str:
    """A host's name without its domain; empty for an address."""
    first = name.partition(".")[0]
    return "" if first.isdecimal() else first


def find_place(
    job: JobPlan,
    rank: int,
    here: str,
    told: Mapping[str, object],
    environment: Mapping[str, str],
    remap: bool,
) -> Place | None:
    """Whose part a rank has: its own, if it runs where it is planned; None: it has none here.

    told: what its launcher says of it; remap: where it does not run there, this host stands for one of the
    plan's.
    """
    planned = job.host_of.get(rank)
    if planned and planned == here:
        return Place(planned, rank)
    if not remap:
        return None
    local = told.get("local_rank")
    own = job.ranks_on(planned) if planned else ()
    if planned and (not isinstance(local, int) or _is_launched_as_planned(own, rank, local, environment)):
        return Place(planned, rank)
    return _in_order(job, planned, local if isinstance(local, int) else 0, environment)


def _is_launched_as_planned(
    own: tuple[int, ...], rank: int, local: int, environment: Mapping[str, str]
) -> bool:
    """Whether a host may stand for the one that the rank is planned on, with the same ranks (`own`)."""
    # MPICH counts anew where a host comes again in its list, so that its number says nothing.
    counted = environment.get("MPI_LOCALNRANKS", str(len(own))) == str(len(own))
    return not counted or own[local : local + 1] == (rank,)


def _in_order(job: JobPlan, planned: str | None, local: int, environment: Mapping[str, str]) -> Place | None:
    """The hosts in the cluster's order, their ranks by number."""
    used = {one.host for one in job.ranks}
    hosts = [name for name in job.cluster.by_name if name in used]
    number = environment.get("SLURM_NODEID", "") if _SLURM_STEP in environment else ""
    index = int(number) if number.isdecimal() else hosts.index(planned) if planned else 0
    ranks = job.ranks_on(hosts[index]) if index < len(hosts) else ()
    return Place(hosts[index], ranks[local]) if local < len(ranks) else None


def some_hosts(job: JobPlan) -> str:
    """`h0, h1, h2, h3 and 12 more`."""
    names = list(job.cluster.by_name)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def ranks_in_words(job: JobPlan) -> str:
    """`ranks 0-15`."""
    numbers = [one.rank for one in job.ranks]
    return f"rank{'' if len(numbers) == 1 else 's'} {format_list(numbers)}"
