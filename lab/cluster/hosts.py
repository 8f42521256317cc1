"""The hosts that guests stand for: as many of one machine, those of a cluster, or those of a job's plan."""

import os
import socket
from collections.abc import Sequence

from numaplan.common import MachineLacksError, UsageError, available_bytes, counted, tell
from numaplan.machine import Cluster, Host, Machine
from numaplan.mapper import JobPlan
from numaplan.profiler import machine_named

from ..guest.shape import (
    USUAL_MIB,
    GuestShape,
    dense,
    parse_memory,
    renumbering,
    shape_guest,
)

MOST_HOSTS = 64  # their names must fit on the kernel's command line
_NAME_BYTES = 800


def wanted_hosts(count: int, machine: str, cluster: str, job: JobPlan | None, slots: int) -> list[Host]:
    """The hosts of the options that are given; of a job those that have ranks.

    count, slots: 0 where they are not given. machine: of every host, in place of the cluster's or the plan's.
    Raises UsageError when they are none, or contradict each other.
    """
    if cluster and job:
        raise UsageError("--cluster and --job both say which hosts there are", "give one of them")
    if job and slots:
        raise UsageError(f"--slots {slots}: the plan says which ranks a host has", "leave --slots out")
    if job or cluster:
        used = {one.host for one in job.ranks} if job else set()
        given = (job.cluster if job else Cluster.load(cluster)).hosts
        hosts = [host for host in given if not job or host.name in used]
        if count not in (0, len(hosts)):
            source = "the plan" if job else cluster
            raise UsageError(f"--hosts {count}: {source} has {len(hosts)}", "leave --hosts out")
    else:
        if not machine:
            raise UsageError("no machine given", "add --machine 2x2, --cluster C or --job JOB.JSON")
        model = machine_named(machine, os.environ)
        hosts = [Host(name=f"h{host}", slots=len(model.cpus), machine=model) for host in range(count or 2)]
    other = machine_named(machine, os.environ) if machine else None
    _check(hosts)
    return [
        Host(name=host.name, slots=slots or host.slots, machine=_guests(host.name, other or host.machine))
        for host in hosts
    ]


def _guests(host: str, machine: Machine) -> Machine:
    try:
        numbered = dense(machine)
    except UsageError as error:
        raise UsageError(f"host {host}: {error.what}", error.hint) from error
    if renamed := renumbering(machine):
        tell(f"nlab: {renamed}")
    return numbered


def _check(hosts: Sequence[Host]) -> None:
    """Raise UsageError for hosts that do not fit, or whose names do not lead from one to another."""
    if len(hosts) > MOST_HOSTS or sum(len(host.name) + 1 for host in hosts) > _NAME_BYTES:
        raise UsageError(
            f"{len(hosts)} hosts do not fit in the lab", f"give at most {MOST_HOSTS}, with short names"
        )
    seen = {"localhost"}
    for host in hosts:
        name = host.name.lower()
        if len(hosts) > 1 and (name in seen or _is_address(name)):
            raise UsageError(
                f"host {host.name}: the lab's hosts do not find it by this name",
                "give each its own name, no address and not localhost; large and small letters are alike",
            )
        seen.add(name)


def _is_address(name: str) -> bool:
    """Whether whoever looks the name up takes it for an address, as 10.0.0.1, 10.1 and 10 are."""
    try:
        return bool(socket.inet_aton(name))
    except OSError:
        return False


def guest_shapes(hosts: Sequence[Host], memory: str) -> list[GuestShape]:
    """The guest of each host; memory: of each, nothing for the usual.

    Raises UsageError or MachineLacksError when one cannot be.
    """
    available = (available_bytes() >> 20) // max(len(hosts), 1)
    try:
        return [
            shape_guest(
                host.machine,
                parse_memory(memory) if memory else max(USUAL_MIB, 128 * len(host.machine.nodes)),
                available,
            )
            for host in hosts
        ]
    except MachineLacksError as error:
        what = f"{error.what} for each of {counted(len(hosts), 'host')}"
        raise MachineLacksError(what, "give less with --memory, or fewer hosts") from error
