"""A cluster: hosts with their machines and their slots for ranks, and how far they are from each other."""

import math
import os
import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from numaplan.common import BAD_JSON, UsageError, read_document, reviewable_json, schema_of, write_document

from .builtin import BUILT_IN, GRID
from .model import Machine
from .topology import Topology

if TYPE_CHECKING:  # nlaunch reads clusters and must not wait for numpy
    import numpy as np
    from numpy.typing import NDArray

SCHEMA = "numaplan/cluster/1"
MAX_HOSTS = 1 << 16
MAX_SLOTS = 1 << 16  # of one host
_HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252}[A-Za-z0-9_])?")
_GROUP = re.compile(r"([1-9][0-9]{0,4})\*([^*:+]+)(?::([1-9][0-9]{0,4}))?")
_FORMAT = "see 'nmap cluster 2*2x4 --json' for the format"


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """One host: its name in the job, how many ranks may run there, and its machine."""

    name: str
    slots: int
    machine: Machine


class Cluster(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The hosts of a job in the launcher's order.

    distances: (H, H) symmetric, in switch hops, in the order of `hosts`; empty: all are equally far.
    """

    hosts: tuple[Host, ...]
    distances: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        _check(self)

    @staticmethod
    def load(source: str | os.PathLike[str]) -> "Cluster":
        """The cluster in a file, or of words: `4*2x8`, `2*2x8:4+1*4x4` (4 slots on each of two).

        Raises UsageError when it is neither, naming what is wrong.
        """
        words = os.fspath(source)
        if "*" in words and not Path(words).exists():
            return _from_words(words)
        return Cluster.from_json(read_document(words, "cluster.json"), words)

    @staticmethod
    def from_json(data: bytes | str, where: str = "cluster.json") -> "Cluster":
        """The cluster in a text; raises UsageError naming `where` and the field that is wrong."""
        try:
            schema = schema_of(data)
            if schema != SCHEMA:
                what = f"schema {schema!r}" if schema else "no 'schema', so not a cluster"
                raise UsageError(what, f"this version reads {SCHEMA}, as 'nmap cluster' writes it")
            return _cluster(msgspec.json.decode(data, type=_Document))
        except msgspec.ValidationError as error:
            raise UsageError(f"{where}: {error}", _FORMAT) from error
        except BAD_JSON as error:
            raise UsageError(f"{where}: not JSON: {error}", _FORMAT) from error
        except UsageError as error:
            raise UsageError(f"{where}: {error.what}", error.hint) from error

    @staticmethod
    def from_dict(content: dict[str, Any], where: str = "cluster") -> "Cluster":
        """The same of a cluster.json's content."""
        return Cluster.from_json(msgspec.json.encode(content), where)

    def to_dict(self) -> dict[str, Any]:
        """The content of a cluster.json: machines that are no built-in ones stand once in `machines`."""
        names, described = _machine_names([host.machine for host in self.hosts])
        content: dict[str, Any] = {
            "schema": SCHEMA,
            "hosts": [
                {"name": host.name, "slots": host.slots, "machine": name}
                for host, name in zip(self.hosts, names, strict=True)
            ],
        }
        if described:
            content["machines"] = {name: machine.to_dict() for name, machine in described.items()}
        if self.distances:
            content["distances"] = [
                [int(hops) if hops == int(hops) else hops for hops in row] for row in self.distances
            ]
        return content

    def to_json(self) -> bytes:
        """A cluster.json with stable key order, one host a line."""
        return reviewable_json(self.to_dict())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file (by rename); raises UsageError when it cannot be written."""
        write_document(path, self.to_json())

    @cached_property
    def by_name(self) -> dict[str, Host]:
        """The hosts by their names."""
        return {host.name: host for host in self.hosts}

    @property
    def slots(self) -> int:
        """Of all hosts."""
        return sum(host.slots for host in self.hosts)

    @cached_property
    def distance_matrix(self) -> "NDArray[np.float64]":
        """(H, H) switch hops; 1 between any two hosts where nothing is known."""
        import numpy as np

        if self.distances:
            return np.array(self.distances, dtype=np.float64)
        return 1.0 - np.eye(len(self.hosts))


class _HostDocument(msgspec.Struct):
    name: str
    slots: int
    machine: str | Topology


class _Document(msgspec.Struct):
    hosts: list[_HostDocument]
    machines: dict[str, Topology] = {}
    distances: tuple[tuple[float, ...], ...] = ()


def _cluster(document: _Document) -> Cluster:
    known = {name: Machine.of(topology) for name, topology in document.machines.items()}
    hosts = []
    for number, host in enumerate(document.hosts):
        machine = host.machine
        if isinstance(machine, str):
            if machine not in known:
                known[machine] = _built_in(machine, f"hosts[{number}] ({host.name})")
            found = known[machine]
        else:
            found = Machine.of(machine)
        hosts.append(Host(name=host.name, slots=host.slots, machine=found))
    return Cluster(hosts=tuple(hosts), distances=document.distances)


def _built_in(name: str, where: str) -> Machine:
    """A document must mean the same everywhere: it cannot name this machine, or a file."""
    if name not in BUILT_IN and not GRID.fullmatch(name):
        raise UsageError(
            f"{where}: no machine {name!r}", "describe it in 'machines', or name a built-in one, such as 4x8"
        )
    return Machine.load(name)


def _from_words(words: str) -> Cluster:
    hosts: list[Host] = []
    for word in words.split("+"):
        found = _GROUP.fullmatch(word.strip())
        if not found:
            raise UsageError(
                f"cluster {words}: cannot read {word!r}",
                "give a file, or words such as 4*2x8 or 2*2x8:4+1*4x4",
            )
        machine = Machine.load(found[2])
        slots = int(found[3] or len(machine.cpus))
        if len(hosts) + int(found[1]) > MAX_HOSTS:
            raise UsageError(f"cluster {words}: more than {MAX_HOSTS} hosts", "give fewer")
        hosts += [
            Host(name=f"h{len(hosts) + number}", slots=slots, machine=machine)
            for number in range(int(found[1]))
        ]
    return Cluster(hosts=tuple(hosts))


def _machine_names(machines: list[Machine]) -> tuple[list[str], dict[str, Machine]]:
    """What each is called in a document, and those that must be described there."""
    seen: dict[int, str] = {}  # machines of equal hosts are often one object
    described: dict[str, Machine] = {}
    names: list[str] = []
    for machine in machines:
        if id(machine) not in seen:
            seen[id(machine)] = _machine_name(machine, described)
        names.append(seen[id(machine)])
    return names, described


def _machine_name(machine: Machine, described: dict[str, Machine]) -> str:
    name = machine.name or "machine"
    built_in = name in BUILT_IN or GRID.fullmatch(name)
    if built_in and Machine.load(name) == machine:
        return name
    number, found = 1, f"{name} (changed)" if built_in else name
    while described.setdefault(found, machine) != machine:
        number += 1
        found = f"{name} ({number})"
    return found


def _check(cluster: Cluster) -> None:
    hosts = cluster.hosts
    if not 1 <= len(hosts) <= MAX_HOSTS:
        raise UsageError(f"cluster: {len(hosts)} hosts", f"give 1 to {MAX_HOSTS}")
    seen: set[str] = set()
    for number, host in enumerate(hosts):
        where = f"hosts[{number}] ({host.name[:80]})"
        if not _HOST_NAME.fullmatch(host.name):
            raise UsageError(f"{where}: not a host's name", "letters, digits, '.', '-' and '_'")
        if host.name in seen:
            raise UsageError(f"{where}: listed twice", "keep one line per host")
        seen.add(host.name)
        if not 1 <= host.slots <= MAX_SLOTS:
            raise UsageError(f"{where}: {host.slots} slots", f"give 1 to {MAX_SLOTS}")
        if not host.machine.cpus:
            raise UsageError(f"{where}: its machine has no cpus", "leave it out, or correct its machine")
    _check_distances(cluster.distances, len(hosts))


def _check_distances(rows: tuple[tuple[float, ...], ...], count: int) -> None:
    if not rows:
        return
    hint = "give switch hops: as far one way as the other, 0 from a host to itself"
    if len(rows) != count or any(len(row) != count for row in rows):
        raise UsageError(f"'distances' is not {count} x {count}", "give one row and column per host")
    for one, row in enumerate(rows):
        if not all(math.isfinite(value) and value >= 0 for value in row) or row[one]:
            raise UsageError(f"'distances' row {one}: an entry that cannot be", hint)
        if any(row[other] != rows[other][one] for other in range(one)):
            raise UsageError(f"'distances' row {one}: not symmetric", hint)
