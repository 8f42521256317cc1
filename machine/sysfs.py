"""Read the machine from Linux's sysfs: this machine's, or a tree recorded elsewhere.

This machine is read as this process may use it (affinity, cpuset); a recorded tree is read as the machine
was, unless the cpuset of the process that recorded it is asked for.
"""

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from numaplan.common import UsageError

from .caches import FoundCache, cache_kinds
from .cpusets import parse_list, parse_mask
from .levels import with_groups
from .localities import Locality, nodeless, nodes_of
from .topology import Core, Node, Topology, read_from

_FILE_LIMIT = 1 << 20
_MEMORY = re.compile(r"MemTotal:\s*(\d{1,15})\s*kB")
_NODE_FOLDER = re.compile(r"node(\d{1,6})")
_CPU_FOLDER = re.compile(r"cpu(\d{1,6})")
_CACHE_FOLDER = re.compile(r"index(\d{1,3})")
_CACHE_SIZE = re.compile(r"(\d{1,10})([KMG]?)")
_UNITS = ("package_cpus_list", "core_siblings_list", "die_cpus_list", "cluster_cpus_list")
_HINT = "give the root of a tree with sys/devices/system inside"
_INSTEAD = "describe the machine in a machine.json instead; 'nmap machine 2x2 --json' shows the format"


def read_sysfs(
    root: str | os.PathLike[str] = "/",
    restrict: bool | None = None,
    cpus: Collection[int] | None = None,
) -> Topology:
    """The machine that the sysfs under `root` describes.

    restrict: leave out cpus that our affinity (for a recorded tree: its cpuset) forbids; default: on this
    machine only; cpus: those that we may use here, if not those of our affinity. Offline cpus are always left
    out; a forbidden memory counts as none, and a node that keeps neither cpus nor memory that may be used is
    dropped. Raises UsageError if it cannot be read.
    """
    tree = Path(root)
    local = str(tree) == "/"
    allowed, mems = _allowed(tree, local) if (local if restrict is None else restrict) else (None, None)
    allowed = allowed if cpus is None else set(cpus)
    online = _online_cpus(tree) or set(allowed or ())  # a sandbox may hide sysfs: what we may use is there
    usable = online if allowed is None else online & allowed
    found = _localities(tree, usable, mems)
    nodes = nodes_of(found)
    if not any(node.cpus for node in nodes):
        raise UsageError(f"{tree}: no cpus in sys/devices/system/cpu", _HINT)
    with read_from(str(tree), _INSTEAD):
        return Topology(
            name="local" if local else tree.resolve().name,
            nodes=tuple(nodes),
            nodeless_cpus=nodeless(usable, nodes),
            distances=_distances(tree, [place.id for place in found], [node.id for node in nodes]),
            cores=_cores(tree, nodes),
            caches=cache_kinds(_caches(tree, usable), {cpu for node in nodes for cpu in node.cpus}),
        )


def _read(path: Path) -> str | None:
    """A small file's text, or None when it is not there (sysfs leaves out what does not apply)."""
    try:
        with path.open("rb") as file:
            return file.read(_FILE_LIMIT).decode("ascii", "replace")
    except OSError:
        return None


def _ids(path: Path) -> tuple[int, ...] | None:
    text = _read(path)
    return None if text is None else parse_list(text, str(path))


def _folders(folder: Path, pattern: re.Pattern[str]) -> list[tuple[int, Path]]:
    try:
        names = [(pattern.fullmatch(entry.name), entry) for entry in folder.iterdir()]
    except OSError:
        return []
    return sorted((int(match[1]), entry) for match, entry in names if match)


def _online_cpus(tree: Path) -> set[int]:
    folder = tree / "sys/devices/system/cpu"
    listed = _ids(folder / "online")
    if listed:
        return set(listed)
    # Old kernels have no list: a cpu is online unless its own file says 0 (cpu0 often has no file).
    return {cpu for cpu, entry in _folders(folder, _CPU_FOLDER) if (_read(entry / "online") or "1")[0] != "0"}


def _localities(tree: Path, usable: set[int], mems: set[int] | None) -> list[Locality]:
    found = []
    for node, folder in _folders(tree / "sys/devices/system/node", _NODE_FOLDER):
        cpus = _ids(folder / "cpulist")
        if cpus is None:
            cpus = parse_mask(_read(folder / "cpumap") or "0", str(folder / "cpumap"))
        allowed = mems is None or node in mems
        found.append(Locality(node, frozenset(cpus) & usable, _memory(folder / "meminfo"), allowed=allowed))
    # Kernels without NUMA have no such folder: the machine is one node.
    return found or [
        Locality(0, frozenset(usable), _memory(tree / "proc/meminfo"), allowed=mems is None or 0 in mems)
    ]


def _memory(path: Path) -> int:
    match = _MEMORY.search(_read(path) or "")
    return int(match[1]) * 1024 if match else 0


def _distances(tree: Path, found: Sequence[int], kept: Sequence[int]) -> tuple[tuple[float, ...], ...]:
    """Rows of the kept nodes; columns of sysfs follow all nodes. Empty unless every row is complete."""
    columns = [found.index(node) for node in kept]
    rows = []
    for node in kept:
        text = _read(tree / f"sys/devices/system/node/node{node}/distance") or ""
        values = text.replace("\0", "").split()
        if len(values) != len(found) or not all(value.isdecimal() for value in values):
            return ()
        rows.append(tuple(float(values[column]) for column in columns))
    return tuple(rows)


def _cores(tree: Path, nodes: Sequence[Node]) -> tuple[Core, ...]:
    node_of = {cpu: node.id for node in nodes for cpu in node.cpus}
    cores: dict[int, Core] = {}
    last: dict[tuple[int, ...], int] = {}
    units: set[tuple[int, ...]] = set()
    covered: dict[str, set[int]] = {name: set() for name in _UNITS}
    for cpu in sorted(node_of):
        folder = tree / f"sys/devices/system/cpu/cpu{cpu}"
        siblings = _siblings(folder / "topology")
        if siblings is None or cpu in cores:
            continue
        cpus = tuple(c for c in siblings if node_of.get(c) == node_of[cpu]) or (cpu,)
        caches = _data_caches(folder / "cache")
        units.update(caches)
        for name, known in covered.items():
            if cpu not in known and (unit := _ids(folder / "topology" / name)):
                units.add(unit)
                known.update(unit)
        l3 = last.setdefault(caches[-1], len(last)) if caches else None
        cores.update(dict.fromkeys(cpus, Core(cpus=cpus, node=node_of[cpu], l3=l3)))
    return with_groups([cores[cpu] for cpu in sorted(cores) if cores[cpu].cpus[0] == cpu], units)


def _siblings(topology: Path) -> tuple[int, ...] | None:
    for name in ("core_cpus_list", "thread_siblings_list"):
        cpus = _ids(topology / name)
        if cpus:
            return cpus
    mask = _read(topology / "thread_siblings")
    return parse_mask(mask, str(topology)) if mask else None


def _data_caches(cache: Path) -> list[tuple[int, ...]]:
    """The cpus that share each data cache, which identify it, by level; empty when sysfs does not say."""
    found: list[tuple[int, tuple[int, ...]]] = []
    for _index, folder in _folders(cache, _CACHE_FOLDER):
        level = _level(folder)
        if level is not None and (shared := _shared(folder)):
            found.append((level, shared))
    return [shared for _level, shared in sorted(found, key=lambda cache: cache[0])]


def _caches(tree: Path, cpus: set[int]) -> list[FoundCache]:
    """Every data cache of these cpus, once."""
    found = []
    covered: dict[str, set[int]] = {}
    for cpu in sorted(cpus):
        for _index, folder in _folders(tree / f"sys/devices/system/cpu/cpu{cpu}/cache", _CACHE_FOLDER):
            if cpu in covered.setdefault(folder.name, set()):
                continue
            level, shared = _level(folder), _shared(folder)
            covered[folder.name].update(shared)
            size = _CACHE_SIZE.fullmatch((_read(folder / "size") or "").strip())
            ways = (_read(folder / "ways_of_associativity") or "").strip()
            if level is not None and size and len(ways) < 10:
                bytes_ = int(size[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[size[2]]
                here = frozenset(shared) or frozenset([cpu])
                found.append(FoundCache(level, bytes_, int(ways) if ways.isdecimal() else 0, here))
    return found


def _level(folder: Path) -> int | None:
    """The level of a cache that holds data."""
    level = (_read(folder / "level") or "").strip()
    if not level.isdecimal() or len(level) > 3 or (_read(folder / "type") or "").startswith("Instruction"):
        return None
    return int(level)


def _shared(folder: Path) -> tuple[int, ...]:
    """The cpus that share a cache."""
    shared = _ids(folder / "shared_cpu_list")
    return parse_mask(_read(folder / "shared_cpu_map") or "0", str(folder)) if shared is None else shared


def _allowed(tree: Path, local: bool) -> tuple[set[int] | None, set[int] | None]:
    """Cpus and memory nodes we may use; None where nothing restricts them."""
    if local:
        status = _read(tree / "proc/self/status") or ""
        mems = re.search(r"^Mems_allowed_list:\s*(\S+)", status, re.MULTILINE)
        nodes = set(parse_list(mems[1], "/proc/self/status")) if mems else None
        return set(os.sched_getaffinity(0)), nodes
    name = (_read(tree / "proc/self/cpuset") or "").replace("\0", "").strip().lstrip("/")
    for mount, prefix in (
        ("dev/cpuset", ""),
        ("sys/fs/cgroup/cpuset", "cpuset."),
        ("sys/fs/cgroup", "cpuset."),
    ):
        folder = tree / mount / name
        suffix = ".effective" if (folder / f"{prefix}cpus.effective").exists() else ""
        cpus, nodes_listed = _ids(folder / f"{prefix}cpus{suffix}"), _ids(folder / f"{prefix}mems{suffix}")
        if cpus and ".." not in name:
            return set(cpus), set(nodes_listed) if nodes_listed else None
    return None, None
