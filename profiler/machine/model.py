"""The machine: nodes, cpus, cores, distances, and where known latencies and bandwidths.

This is the content of a machine.json (design: data contracts). It says what is there, not how it was read;
`sources.py` finds the reader for what a user names.
"""

import math
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from numaplan.common import UsageError, reviewable_json

if TYPE_CHECKING:  # nlaunch reads machines and must not wait for numpy
    import numpy as np
    from numpy.typing import NDArray

SCHEMA = "numaplan/machine/1"
LOCAL_DISTANCE = 10.0
REMOTE_DISTANCE = 21.0  # what firmware reports for one hop when nothing better is known
MAX_CPUS = 1 << 16
MAX_CACHE_LEVEL = 9
MAX_CACHE_BYTES = 1 << 40
MAX_CACHE_WAYS = 1 << 20
MAX_LEVELS = 32  # between a node and a core; real machines have three or four


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One NUMA node: its operating-system id, usable cpus (may be none), memory (0 unknown)."""

    id: int
    cpus: tuple[int, ...] = ()
    memory_bytes: int = 0


class Core(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One physical core: its hwthreads, the node it is in, and its last-level cache (None unknown).

    groups: ids of the dies, clusters and shared caches that the node divides into, from the one around all
    others to the one around this core; empty where nothing stands between the node and the core.
    """

    cpus: tuple[int, ...]
    node: int
    l3: int | None = None
    groups: tuple[int, ...] = ()


class Cache(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A kind of data cache: level (1 is nearest), bytes of one, ways (0 unknown), which cpus share each.

    inclusive: whether it holds all that the levels before it hold; None where nobody says.
    """

    level: int
    bytes: int
    ways: int = 0
    inclusive: bool | None = None
    cpus: tuple[tuple[int, ...], ...] = ()


class Machine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """A NUMA machine; matrices follow the order of `nodes`, whose ids may be sparse.

    distances: (K, K), 10 on the diagonal where firmware is sane; latency_ns: (K, K), from cpus of the row's
    node to memory of the column's; bandwidth_mb_s: (K, K) likewise. Empty means unknown.
    """

    schema: str = SCHEMA
    name: str = ""
    nodes: tuple[Node, ...]
    distances: tuple[tuple[float, ...], ...] = ()
    cores: tuple[Core, ...] = ()
    caches: tuple[Cache, ...] = ()
    latency_ns: tuple[tuple[float, ...], ...] = ()
    bandwidth_mb_s: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        _check(self)

    @staticmethod
    def load(source: str) -> "Machine":
        """The machine that `source` names: `local`, an hwloc XML or machine.json file, a built-in name, AxB.

        Raises UsageError when it names nothing or what it names cannot be read.
        """
        from numaplan.profiler.machine.sources import load_machine

        return load_machine(source)

    @staticmethod
    def from_dict(content: dict[str, Any]) -> "Machine":
        """The machine of a machine.json's content; raises UsageError naming the field that is wrong."""
        try:
            return msgspec.convert(content, Machine)
        except msgspec.ValidationError as error:
            raise UsageError(f"machine: {error}", "see 'nmap machine 2x2 --json' for the form") from error

    @staticmethod
    def from_json(data: bytes | str, where: str = "machine.json") -> "Machine":
        """The machine of a machine.json's text; raises UsageError naming `where` and the wrong field."""
        try:
            return msgspec.json.decode(data, type=Machine)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise UsageError(f"{where}: {error}", "see 'nmap machine 2x2 --json' for the form") from error

    def to_dict(self) -> dict[str, Any]:
        """The content of a machine.json, `schema` first."""
        content: dict[str, Any] = msgspec.to_builtins(self)
        return {"schema": SCHEMA, **content}

    def to_json(self) -> bytes:
        """A machine.json with stable key order, one node and one core a line."""
        return reviewable_json(self.to_dict())

    @cached_property
    def node_ids(self) -> tuple[int, ...]:
        """Ids of all nodes in the order of the matrices."""
        return tuple(node.id for node in self.nodes)

    @cached_property
    def cpu_nodes(self) -> tuple[Node, ...]:
        """The nodes that have cpus: those that threads can be placed on."""
        return tuple(node for node in self.nodes if node.cpus)

    @cached_property
    def cpus(self) -> tuple[int, ...]:
        """Every usable cpu, ascending."""
        return tuple(sorted(cpu for node in self.nodes for cpu in node.cpus))

    @cached_property
    def node_of_cpu(self) -> dict[int, int]:
        """Node id of each cpu."""
        return {cpu: node.id for node in self.nodes for cpu in node.cpus}

    @cached_property
    def distance_rows(self) -> tuple[tuple[float, ...], ...]:
        """K rows of K distances in the order of `nodes`; 10 and 21 where the machine does not say."""
        if self.distances:
            return self.distances
        places = range(len(self.nodes))
        return tuple(tuple(LOCAL_DISTANCE if a == b else REMOTE_DISTANCE for b in places) for a in places)

    @cached_property
    def distance_matrix(self) -> "NDArray[np.float64]":
        """`distance_rows` as a (K, K) array."""
        import numpy as np

        return np.array(self.distance_rows, dtype=np.float64)

    def index_of_node(self, node_id: int) -> int:
        """Row of a node in the matrices; raises UsageError if there is no such node."""
        try:
            return self.node_ids.index(node_id)
        except ValueError:
            raise UsageError(
                f"no node {node_id} on this machine", f"its nodes are {_listed(self.node_ids)}"
            ) from None

    @cached_property
    def fingerprint(self) -> str:
        """`sha256:…` over what a placement depends on (nodes, cpus, distances), not names or memory sizes."""
        facts = {
            "nodes": sorted((node.id, list(node.cpus)) for node in self.nodes),
            "distances": self.distance_rows,
        }
        import hashlib

        return "sha256:" + hashlib.sha256(msgspec.json.encode(facts, order="sorted")).hexdigest()


def _listed(ids: Iterable[int]) -> str:
    return ", ".join(str(value) for value in ids)


def _check(machine: Machine) -> None:
    if machine.schema != SCHEMA:
        raise UsageError(f"machine: schema {machine.schema!r}", f"this version reads {SCHEMA}")
    ids = [node.id for node in machine.nodes]
    if not ids or len(set(ids)) != len(ids) or min(ids) < 0:
        raise UsageError("machine: nodes must have distinct ids from 0 up", "correct 'nodes'")
    cpus = [cpu for node in machine.nodes for cpu in node.cpus]
    if len(set(cpus)) != len(cpus) or any(not 0 <= cpu < MAX_CPUS for cpu in cpus):
        raise UsageError(f"machine: a cpu stands twice or is not in 0..{MAX_CPUS - 1}", "correct 'nodes'")
    if any(node.memory_bytes < 0 for node in machine.nodes):
        raise UsageError("machine: negative memory_bytes", "correct 'nodes'")
    for name in ("distances", "latency_ns", "bandwidth_mb_s"):
        _check_matrix(name, getattr(machine, name), len(ids))
    known = set(cpus)
    for core in machine.cores:
        if core.node not in ids or not known.issuperset(core.cpus):
            raise UsageError(f"machine: core {list(core.cpus)} is not in its node", "correct 'cores'")
        if len(core.groups) > MAX_LEVELS:
            raise UsageError(
                f"machine: core {list(core.cpus)} has more than {MAX_LEVELS} groups", "correct 'cores'"
            )

    _check_caches(machine.caches, known)


def usable_cache(level: int, size: int, ways: int) -> bool:
    """Whether a cache can be so: level, bytes and ways in range."""
    return 1 <= level <= MAX_CACHE_LEVEL and 0 < size <= MAX_CACHE_BYTES and 0 <= ways <= MAX_CACHE_WAYS


def _check_caches(caches: tuple[Cache, ...], known: set[int]) -> None:
    seen: dict[int, set[int]] = {}
    for cache in caches:
        named = f"machine: a cache of level {cache.level} with {cache.bytes} bytes"
        if not usable_cache(cache.level, cache.bytes, cache.ways):
            raise UsageError(f"{named} and {cache.ways} ways", "correct 'caches'")
        for cpus in cache.cpus:
            level = seen.setdefault(cache.level, set())
            if not known.issuperset(cpus) or level.intersection(cpus):
                raise UsageError(f"{named}: a cpu that is not there or has two of them", "correct 'caches'")
            level.update(cpus)


def _check_matrix(name: str, rows: tuple[tuple[float, ...], ...], count: int) -> None:
    if not rows:
        return
    if len(rows) != count or any(len(row) != count for row in rows):
        raise UsageError(f"machine: '{name}' is not {count} x {count}", "give one row and column a node")
    if not all(math.isfinite(value) and value >= 0 for row in rows for value in row):
        raise UsageError(f"machine: '{name}' has a negative or infinite entry", f"correct '{name}'")
