"""`nmap cluster`: the hosts that a job runs on."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from numaplan.common import Argument, Command, Json, Option, UsageError, make_console, print_lines

from .workload import say

if TYPE_CHECKING:
    from numaplan.machine import Cluster, ListedHost, Machine

MOST_LINES = 40


class ClusterCommand(Command, frozen=True):
    """Describe the hosts of a job: their slots for ranks, their machines, the switches between them.

    The hosts are those of words such as 4*2x8 (four hosts of 2 nodes of 8 cpus; 4*2x8:2 with 2 slots each),
    of another cluster.json, of a hostfile, or of the Slurm job that this is called in.

    Example: nmap cluster --slurm --machine local -o cluster.json
    """

    source: Annotated[
        str, Argument("SOURCE", reads=True, help="A cluster.json, or words such as 4*2x8 or 2*2x8:4+1*4x4.")
    ] = ""
    slurm: Annotated[bool, Option(help="The hosts and tasks of this Slurm job.")] = False
    hostfile: Annotated[
        Path | None, Option(metavar="FILE", help="Hosts by line: 'n01 slots=8' (Open MPI), 'n01:8' (MPICH).")
    ] = None
    machine: Annotated[
        str,
        Option(
            "--machine",
            "-m",
            reads=True,
            help="Every host's machine, as 'nmap machine' takes it [default: local].",
        ),
    ] = ""
    machines: Annotated[
        Path | None,
        Option(metavar="DIR", help="HOST.json of each host, by 'nmap machine local --json' there."),
    ] = None
    distances: Annotated[
        Path | None,
        Option(metavar="FILE", help="Switch hops between hosts: a row of comma separated numbers each."),
    ] = None
    output: Annotated[
        Path | None, Option("-o", "--output", writes=True, help="The cluster.json to write.")
    ] = None
    as_json: Json = False

    def run(self) -> None:
        from numaplan.common import print_json

        cluster = self._cluster()
        if self.output is not None:
            cluster.save(self.output)
        if self.as_json:
            print_json(cluster.to_json()[:-1])
            return
        _show(cluster)
        if self.output is not None:
            print_lines(f"cluster written to {self.output}")

    def _cluster(self) -> "Cluster":
        from numaplan.machine import Cluster, hosts_of_file, slurm_hosts

        if sum([bool(self.source), self.slurm, self.hostfile is not None]) != 1:
            raise UsageError("give one of SOURCE, --slurm and --hostfile", "such as 'nmap cluster 4*2x8'")
        if self.source:
            if self.machine or self.machines:
                raise UsageError("--machine with a SOURCE", "the source says what machines its hosts have")
            found = Cluster.load(self.source)
            return self._with_distances(found)
        listed = slurm_hosts(os.environ) if self.slurm else hosts_of_file(self.hostfile or Path())
        found = self._with_machines(listed)
        if self.slurm and self.distances is None and (rows := _switches(listed)):
            found = Cluster(hosts=found.hosts, distances=rows)
        return self._with_distances(found)

    def _with_machines(self, listed: "list[ListedHost]") -> "Cluster":
        from numaplan.machine import Cluster, Host
        from numaplan.profiler import machine_named

        if self.machine and self.machines:
            raise UsageError("both --machine and --machines given", "give one of them")
        if not self.machine and not self.machines:
            say(["all hosts are taken to be like this one (--machine, --machines)"])
        every = machine_named(self.machine or "local", os.environ) if not self.machines else None
        hosts = []
        for one in listed:
            machine = every or self._machine_of(one.name)
            hosts.append(Host(name=one.name, slots=one.slots or len(machine.cpus), machine=machine))
        return Cluster(hosts=tuple(hosts))

    def _machine_of(self, host: str) -> "Machine":
        from numaplan.machine import Machine

        folder = self.machines or Path()
        path = folder / f"{host}.json"
        if "/" in host or not path.is_file():
            raise UsageError(
                f"{folder}: no {host}.json", "write it on that host: nmap machine local --json > HOST.json"
            )
        return Machine.load(str(path))

    def _with_distances(self, cluster: "Cluster") -> "Cluster":
        from numaplan.machine import Cluster

        if self.distances is None:
            return cluster
        return Cluster(hosts=cluster.hosts, distances=_read_rows(self.distances))


def _switches(listed: "list[ListedHost]") -> tuple[tuple[float, ...], ...]:
    """Between the hosts, by Slurm; empty where it does not know them."""
    from numaplan.common import MachineLacksError
    from numaplan.machine import slurm_distances

    try:
        return slurm_distances([host.name for host in listed])
    except MachineLacksError as error:
        say([f"{error.what}: all hosts are taken to be equally far ({error.hint})"])
        return ()


def _read_rows(path: Path) -> tuple[tuple[float, ...], ...]:
    from numaplan.common import read_document

    try:
        lines = read_document(path, "file of distances").decode().split("\n")
        return tuple(tuple(float(word) for word in line.split(",")) for line in lines if line.strip())
    except ValueError as error:
        raise UsageError(f"{path}: {error}", "give a row of comma separated numbers for each host") from error


def _show(cluster: "Cluster") -> None:
    """A line for each group of like hosts that follow one another."""
    from itertools import groupby

    from rich.table import Table

    console = make_console()
    count = len(cluster.hosts)
    console.print(
        f"{count} host{'s' * (count != 1)}, {cluster.slots} slot{'s' * (cluster.slots != 1)}", style="bold"
    )
    groups = [
        (list(hosts), slots, machine)
        for (slots, machine), hosts in groupby(cluster.hosts, lambda host: (host.slots, host.machine))
    ]
    table = Table(box=None, pad_edge=False)
    for name in ("hosts", "slots each", "machine", "nodes", "cpus"):
        table.add_column(name, no_wrap=name != "hosts", overflow="fold")
    for hosts, slots, machine in groups[:MOST_LINES]:
        names = hosts[0].name if len(hosts) == 1 else f"{hosts[0].name} … {hosts[-1].name} ({len(hosts)})"
        nodes, cpus = len(machine.nodes), len(machine.cpus)
        table.add_row(names, str(slots), machine.name or "machine", str(nodes), str(cpus))
    if len(groups) > MOST_LINES:
        table.add_row(f"… {len(groups) - MOST_LINES} more lines")
    console.print(table)
    if cluster.distances:
        apart = sorted({hops for row in cluster.distances for hops in row if hops})
        shown = ", ".join(f"{hops:g}" for hops in apart[:8]) + (" …" if len(apart) > 8 else "")
        console.print(f"switch hops between hosts: {shown}")
