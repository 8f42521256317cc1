"""What a machine consists of, checked: nodes, cpus, cores, caches, distances, latencies, bandwidths.

This is the content of a machine.json, and what every reader returns.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from numaplan.common import UsageError

SCHEMA = "numaplan/machine/1"
MAX_CPUS = 1 << 16
MAX_NODES = 1 << 10  # as many as Linux knows
MAX_ENTRY = 1e12  # of a matrix, so that sums and quotients stay numbers
MAX_CACHE_LEVEL = 9
MAX_CACHE_BYTES = 1 << 40
MAX_CACHE_WAYS = 1 << 20
MAX_LEVELS = 32  # between a node and a core; real machines have three or four
_NO_SOURCE = "machine: "  # begins what is said of facts, until it is known where they were read from


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


class Topology(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The facts of a NUMA machine; matrices follow the order of `nodes`, whose ids may be sparse.

    nodeless_cpus: those that could be used if it were known which node they are near to.
    distances: (K, K), 10 on the diagonal where firmware is sane; latency_ns: (K, K), from cpus of the row's
    node to memory of the column's; bandwidth_mb_s: (K, K) likewise. Empty means unknown.
    """

    schema: str = SCHEMA
    name: str = ""
    nodes: tuple[Node, ...]
    nodeless_cpus: tuple[int, ...] = ()
    distances: tuple[tuple[float, ...], ...] = ()
    cores: tuple[Core, ...] = ()
    caches: tuple[Cache, ...] = ()
    latency_ns: tuple[tuple[float, ...], ...] = ()
    bandwidth_mb_s: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        _check(self)


@contextmanager
def read_from(source: str, hint: str = "") -> Iterator[None]:
    """Around the making of a Topology: facts that cannot be are said to be those of `source`.

    hint: what to do about them, where that is not to correct a machine.json.
    """
    try:
        yield
    except UsageError as error:
        if not error.what.startswith(_NO_SOURCE):
            raise
        raise UsageError(f"{source}: {error.what.removeprefix(_NO_SOURCE)}", hint or error.hint) from error


def _check(machine: Topology) -> None:
    if machine.schema != SCHEMA:
        raise UsageError(f"machine: schema {machine.schema!r}", f"this version reads {SCHEMA}")
    ids = [node.id for node in machine.nodes]
    if not ids or len(set(ids)) != len(ids) or min(ids) < 0:
        raise UsageError("machine: nodes must have distinct ids from 0 up", "correct 'nodes'")
    if len(ids) > MAX_NODES:
        raise UsageError(f"machine: {len(ids)} nodes", f"at most {MAX_NODES} are supported")
    cpus = [cpu for node in machine.nodes for cpu in node.cpus]
    if len(set(cpus)) != len(cpus) or any(not 0 <= cpu < MAX_CPUS for cpu in cpus):
        raise UsageError(f"machine: a cpu is listed twice or is not in 0..{MAX_CPUS - 1}", "correct 'nodes'")
    if any(node.memory_bytes < 0 for node in machine.nodes):
        raise UsageError("machine: negative memory_bytes", "correct 'nodes'")
    for name in ("distances", "latency_ns", "bandwidth_mb_s"):
        _check_matrix(name, getattr(machine, name), len(ids))
    home = {cpu: node.id for node in machine.nodes for cpu in node.cpus}
    for core in machine.cores:
        if core.node not in ids or any(home.get(cpu) != core.node for cpu in core.cpus):
            raise UsageError(f"machine: core {list(core.cpus)} is not in its node", "correct 'cores'")
        if len(core.groups) > MAX_LEVELS:
            raise UsageError(
                f"machine: core {list(core.cpus)} has more than {MAX_LEVELS} groups", "correct 'cores'"
            )
    _check_caches(machine.caches, set(home))


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
                raise UsageError(f"{named}: a cpu that does not exist or has two of them", "correct 'caches'")
            level.update(cpus)


def _check_matrix(name: str, rows: tuple[tuple[float, ...], ...], count: int) -> None:
    if not rows:
        return
    if len(rows) != count or any(len(row) != count for row in rows):
        raise UsageError(f"machine: '{name}' is not {count} x {count}", "give one row and column per node")
    if not all(value == 0 or 1 / MAX_ENTRY <= value <= MAX_ENTRY for row in rows for value in row):
        raise UsageError(f"machine: '{name}' has an entry that cannot be", f"correct '{name}'")
