"""The host that a rank runs on, as the job's plan calls it, and the planned rank that it stands for."""

import os
import re
from collections.abc import Mapping
from itertools import groupby

import msgspec

from numaplan.machine import format_list
from numaplan.mapper import JobPlan
from numaplan.profiler import ranks_here

SHOWN = 4  # hosts by name
_SLURM_STEP = "SLURM_STEP_NUM_TASKS"
# Of Open MPI: JOB.NUMBER;ADDRESS of its daemon on this host, 0 where mpirun runs; and how it places ranks.
_DAEMON = "OMPI_MCA_orte_local_daemon_uri"
_DAEMON_NUMBER = re.compile(r"[0-9]+\.([0-9]{1,7});")
_POLICY, _RANKFILE = "OMPI_MCA_rmaps_base_mapping_policy", "OMPI_MCA_orte_rankfile"
_MPICH = "MPI_LOCALNRANKS"


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
    plan's. All ranks of a host must find the same one, or they would share cpus; each has only its own
    environment to go by.
    """
    planned = job.host_of.get(rank)
    own = Place(planned, rank) if planned else None
    if not remap:
        return own if planned == here else None
    local = told.get("local_rank")
    if not isinstance(local, int):
        return own if not here or planned == here else None
    if _is_listed(environment):
        is_own = planned == here if here else _is_as_listed(job, rank, local, environment)
        return own if is_own else None
    host = here if job.ranks_on(here) else _host_by_number(job, environment)
    ranks = job.ranks_on(host)
    return Place(host, ranks[local]) if local < len(ranks) else None


def _is_listed(environment: Mapping[str, str]) -> bool:
    """Whether the launcher was given the host of each rank, as 'nmap export' does, or may have been."""
    if _DAEMON in environment:
        return environment.get(_POLICY, "").startswith("seq") or _RANKFILE in environment
    return _MPICH in environment or environment.get("SLURM_DISTRIBUTION", "").startswith("arbitrary")


def _is_as_listed(job: JobPlan, rank: int, local: int, environment: Mapping[str, str]) -> bool:
    """Whether what the launcher counts here is what it would count if the ranks are placed as planned."""
    own = job.ranks_on(job.host_of.get(rank, ""))
    if _MPICH in environment:  # which counts anew where a host comes again in its list
        blocks = (tuple(block) for _, block in groupby(job.ranks, key=lambda one: one.host))
        own = next((ranks for block in blocks if rank in (ranks := tuple(one.rank for one in block))), ())
    return own[local : local + 1] == (rank,) and ranks_here(environment) in (None, len(own))


def _host_by_number(job: JobPlan, environment: Mapping[str, str]) -> str:
    """The planned host that this one stands for, in the cluster's order; empty where nothing numbers them."""
    used = {one.host for one in job.ranks}
    hosts = [name for name in job.cluster.by_name if name in used]
    if daemon := _DAEMON_NUMBER.match(environment.get(_DAEMON, "")):
        number = daemon[1]
    else:
        number = environment.get("SLURM_NODEID", "") if _SLURM_STEP in environment else ""
    return hosts[int(number)] if number.isdecimal() and int(number) < len(hosts) else ""


def some_hosts(job: JobPlan) -> str:
    """`h0, h1, h2, h3 and 12 more`."""
    names = list(job.cluster.by_name)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def ranks_in_words(job: JobPlan) -> str:
    """`ranks 0-15`."""
    numbers = [one.rank for one in job.ranks]
    return f"rank{'' if len(numbers) == 1 else 's'} {format_list(numbers)}"
