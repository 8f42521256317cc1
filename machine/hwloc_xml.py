"""Read the machine from an hwloc XML file, formats 1, 2 and 3, without libhwloc.

The formats differ in where NUMA nodes are (1: in the tree; 2 and 3: beside it), in the names of caches and
packages, and in how distances are written. What a process may not use (disallowed, offline) is left out.
"""

from collections.abc import Iterator
from xml.etree import ElementTree as Xml

from numaplan.common import UsageError

from .caches import FoundCache, cache_kinds
from .cpusets import parse_mask
from .hwloc_distances import read_distances
from .levels import with_groups
from .localities import Locality, nodeless, nodes_of
from .topology import Core, Topology, read_from

_HINT = "export it again, for example with 'lstopo machine.xml'"
_INSTRUCTION_CACHE = "2"  # the attribute cache_type
_MEMORY_LIMIT = 1 << 60
_MAIN_MEMORY = ("", "DRAM")


def parse_hwloc_xml(data: bytes, where: str) -> Topology:
    """The machine an hwloc XML file describes; `where` names it in errors.

    Several nodes can be near to the same cpus (see `nodes_of`). Raises UsageError for what is no topology.
    """
    root = _parse(data, where)
    top = next((child for child in root if child.tag == "object"), None)
    if root.tag != "topology" or top is None:
        raise UsageError(f"{where}: no hwloc topology", _HINT)
    usable = _usable_cpus(top, root, where)
    nodes = nodes_of(_localities(top, usable, where))
    if not any(node.cpus for node in nodes):
        raise UsageError(f"{where}: no usable cpu", _HINT)
    with read_from(where, _HINT):
        return Topology(
            name=_name(top, where),
            nodes=tuple(nodes),
            nodeless_cpus=nodeless(usable, nodes),
            distances=read_distances(root, [node.id for node in nodes], where),
            cores=_cores(top, {cpu: node.id for node in nodes for cpu in node.cpus}, where),
            caches=cache_kinds(_caches(top, where), {cpu for node in nodes for cpu in node.cpus}),
        )


def _parse(data: bytes, where: str) -> Xml.Element:
    if b"<!ENTITY" in data:
        raise UsageError(f"{where}: declares XML entities", _HINT)
    try:
        return Xml.fromstring(data)
    except (Xml.ParseError, ValueError, LookupError) as error:  # LookupError: an unknown encoding
        raise UsageError(f"{where}: broken XML ({error})", _HINT) from None


def _integer(element: Xml.Element, name: str, where: str) -> int:
    """A number from 0 up in an attribute; raises UsageError naming it."""
    text = element.get(name, "")
    if not text.isdecimal() or not text.isascii() or len(text) > 20:
        raise UsageError(f"{where}: {element.tag} with {name}={text[:20]!r}", _HINT)
    return int(text)


def _set(element: Xml.Element, name: str, where: str) -> frozenset[int] | None:
    text = element.get(name)
    return None if text is None else frozenset(parse_mask(text, f"{where}: {name}"))


def _usable_cpus(top: Xml.Element, root: Xml.Element, where: str) -> frozenset[int]:
    """Cpus that exist, are online and allowed."""
    existing = [_integer(pu, "os_index", where) for pu in root.iter("object") if pu.get("type") == "PU"]
    cpus = frozenset(existing)
    for name in ("cpuset", "online_cpuset", "allowed_cpuset"):
        limit = _set(top, name, where)
        cpus = cpus if limit is None else cpus & limit
    if not cpus:
        raise UsageError(f"{where}: no usable cpu", _HINT)
    return cpus


def _memory(element: Xml.Element, where: str) -> int:
    if element.get("local_memory") is None:
        return 0
    memory = _integer(element, "local_memory", where)
    if memory > _MEMORY_LIMIT:
        raise UsageError(f"{where}: {memory} bytes of memory", _HINT)
    return memory


def _localities(top: Xml.Element, usable: frozenset[int], where: str) -> list[Locality]:
    allowed = _set(top, "allowed_nodeset", where)
    found = []
    for element in top.iter("object"):
        if element.get("type") == "NUMANode":
            node = _integer(element, "os_index", where)
            cpus = (_set(element, "cpuset", where) or frozenset()) & usable
            main = element.get("subtype", "") in _MAIN_MEMORY
            may_use = allowed is None or node in allowed
            found.append(Locality(node, cpus, _memory(element, where), main, may_use))
    # Format 1 leaves the node out on machines with one.
    return found or [Locality(0, usable, _memory(top, where))]


def _name(top: Xml.Element, where: str) -> str:
    facts = {info.get("name"): info.get("value", "").strip() for info in top if info.tag == "info"}
    return facts.get("DMIProductName") or where.rsplit("/", 1)[-1]


def _with_caches(top: Xml.Element) -> Iterator[tuple[Xml.Element, Xml.Element | None]]:
    """Every object with the outermost data cache around it (files may nest too deep for recursion)."""
    pending: list[tuple[Xml.Element, Xml.Element | None]] = [(top, None)]
    while pending:
        element, cache = pending.pop()
        yield element, cache
        if cache is None and _is_cache(element):
            cache = element
        pending.extend((child, cache) for child in element if child.tag == "object")


def _is_cache(element: Xml.Element) -> bool:
    kind = element.get("type", "")
    named = kind == "Cache" or (kind.startswith("L") and kind.endswith("Cache"))
    return named and element.get("cache_type") != _INSTRUCTION_CACHE


def _caches(top: Xml.Element, where: str) -> Iterator[FoundCache]:
    for element in top.iter("object"):
        if not _is_cache(element) or element.get("cache_size") is None or element.get("depth") is None:
            continue
        ways = element.get("cache_associativity", "")  # -1: fully associative
        facts = {info.get("name"): info.get("value") for info in element if info.tag == "info"}
        yield FoundCache(
            _integer(element, "depth", where),
            _integer(element, "cache_size", where),
            int(ways) if ways.isascii() and ways.isdecimal() and len(ways) < 10 else 0,
            _set(element, "cpuset", where) or frozenset(),
            {"0": False, "1": True}.get(facts.get("Inclusive") or ""),
        )


def _cores(top: Xml.Element, node_of: dict[int, int], where: str) -> tuple[Core, ...]:
    found: dict[tuple[int, ...], Xml.Element | None] = {}
    for element, cache in _with_caches(top):
        if element.get("type") == "Core":
            cpus = tuple(sorted(cpu for cpu in _set(element, "cpuset", where) or () if cpu in node_of))
            if cpus:
                found[cpus] = cache
    ids: dict[int, int] = {}
    cores = []
    for cpus, cache in sorted(found.items()):
        l3 = None if cache is None else ids.setdefault(id(cache), len(ids))
        own = tuple(cpu for cpu in cpus if node_of[cpu] == node_of[cpus[0]])
        cores.append(Core(cpus=own, node=node_of[cpus[0]], l3=l3))
    # Whatever the tree has, of whatever name: packages, dies, groups, clusters, caches.
    return with_groups(
        cores, {_set(element, "cpuset", where) or frozenset() for element in top.iter("object")}
    )
