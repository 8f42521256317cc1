"""The hosts of the Slurm job that we are in, and how many switches lie between them."""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from numaplan.common import MachineLacksError, UsageError, output_of

from .hostfile import ListedHost

Rows = tuple[tuple[float, ...], ...]

_COUNT = re.compile(r"([0-9]{1,7})(?:\(x([0-9]{1,6})\))?")
_FIELD = re.compile(r"(\w+)=(\S+)")


def slurm_hosts(environment: Mapping[str, str]) -> list[ListedHost]:
    """The job's hosts and tasks a host; cpus a host by cpus a task, where tasks are not said.

    Raises UsageError outside of a job, MachineLacksError where Slurm's `scontrol` cannot be asked.
    """
    listed = environment.get("SLURM_JOB_NODELIST", "")
    if not listed:
        raise UsageError("not within a Slurm job: no SLURM_JOB_NODELIST", "call it under salloc or sbatch")
    names = _names(listed)
    tasks, cpus = environment.get("SLURM_TASKS_PER_NODE", ""), environment.get("SLURM_JOB_CPUS_PER_NODE", "")
    if tasks:
        slots = _counts("SLURM_TASKS_PER_NODE", tasks, len(names))
    elif cpus:
        each = environment.get("SLURM_CPUS_PER_TASK", "1")
        each_cpus = int(each) if each.isdecimal() and int(each) else 1
        slots = [max(1, count // each_cpus) for count in _counts("SLURM_JOB_CPUS_PER_NODE", cpus, len(names))]
    else:
        slots = [0] * len(names)
    return [ListedHost(name, count) for name, count in zip(names, slots, strict=True)]


def slurm_distances(names: Sequence[str]) -> Rows:
    """(H, H) switches between hosts by Slurm's topology; empty where it has none of these hosts.

    Two hosts on one switch have one between them, by way of a switch of level L there are 2 L + 1.
    Raises MachineLacksError where no controller answers: the topology would be waited for long.
    """
    try:
        _ask(["ping"])
    except MachineLacksError as error:
        raise MachineLacksError("Slurm's controller does not answer", "give --distances") from error
    try:
        text = _ask(["show", "topology"])
    except MachineLacksError:  # a site that has no switches described says so by failing
        return ()
    place = {name: number for number, name in enumerate(names)}
    switches: list[tuple[int, list[int]]] = []
    for line in text.splitlines():
        fields = dict(_FIELD.findall(line))
        if fields.get("Level", "").isdecimal() and "Nodes" in fields:
            members = [place[name] for name in _names(fields["Nodes"]) if name in place]
            switches.append((int(fields["Level"]), members))
    if len({host for _, members in switches for host in members}) < len(names):
        return ()
    highest = max(level for level, _ in switches)
    # What no switch connects is farther than what the highest one does.
    rows = [[2.0 * (highest + 1) + 1.0] * len(names) for _ in names]
    for level, members in sorted(switches, key=lambda switch: -switch[0]):
        for one in members:
            for other in members:
                rows[one][other] = 2.0 * level + 1.0
    for host in range(len(names)):
        rows[host][host] = 0.0
    return tuple(map(tuple, rows))


def _names(listed: str) -> list[str]:
    """The hosts of a list such as n[01-16,20]."""
    return _ask(["show", "hostnames", listed]).split()


def _ask(words: list[str]) -> str:
    program = shutil.which("scontrol")
    if program is None:
        raise MachineLacksError("Slurm's scontrol is not installed here", "call it on a host of the job")
    return output_of([program, *words], Path.cwd(), f"scontrol {' '.join(words[:2])}")


def _counts(name: str, text: str, hosts: int) -> list[int]:
    """The counts of a list such as 2(x3),1."""
    found: list[int] = []
    for word in text.split(","):
        count = _COUNT.fullmatch(word)
        if not count or len(found) > hosts:
            raise UsageError(f"{name}={text}: cannot be read", "unset it, or give --hostfile")
        found += [int(count[1])] * int(count[2] or 1)
    if len(found) != hosts:
        raise UsageError(
            f"{name}={text}: {len(found)} counts for {hosts} hosts", "unset it, or give --hostfile"
        )
    return found
