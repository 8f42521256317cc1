"""Distances between NUMA nodes in hwloc XML files, in every way the formats 1, 2 and 3 write them."""

from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from numaplan.common import UsageError

_LATENCY = 4  # hwloc_distances_kind_e: the values mean latency
_HINT = "export it again, for example with 'lstopo machine.xml'"
_LIMIT = 1e9

Rows = tuple[tuple[float, ...], ...]


def read_distances(root: Xml.Element, nodes: Sequence[int], where: str) -> Rows:
    """(K, K) distances in the order of `nodes` (os ids); empty when the file has none that cover them all.

    A matrix follows its own list of nodes, by os index or by gp_index. Raises UsageError for a malformed one.
    """
    found = [matrix for element in root.iter("distances2") if (matrix := _format_2(element, root, where))]
    found = found or [matrix for matrix in _format_1(root, where) if matrix]
    # Several matrices: the kernel's own is named, older files leave the name out.
    for _named, ids, rows in sorted(found, key=lambda matrix: not matrix[0]):
        if set(nodes) <= set(ids):
            order = [ids.index(node) for node in nodes]
            return tuple(tuple(rows[a][b] for b in order) for a in order)
    return ()


Matrix = tuple[bool, list[int], list[list[float]]]


def _format_2(element: Xml.Element, root: Xml.Element, where: str) -> Matrix | None:
    kind = element.get("kind", "")
    name = element.get("name", "NUMALatency" if kind.isdecimal() and int(kind[:9]) & 1 else "")
    if element.get("type") != "NUMANode" or not (kind.isdecimal() and int(kind[:9]) & _LATENCY):
        return None
    ids = [int(value) for value in _numbers(element, "indexes", where)]
    if element.get("indexing") == "gp":
        os_of = {o.get("gp_index"): o.get("os_index", "") for o in root.iter("object") if _is_node(o)}
        names = [os_of.get(str(value), "") for value in ids]
        if not all(value.isdecimal() for value in names):
            raise UsageError(f"{where}: distances between nodes that do not exist", _HINT)
        ids = [int(value) for value in names]
    return name == "NUMALatency", ids, _square(_numbers(element, "u64values", where), ids, where)


def _format_1(root: Xml.Element, where: str) -> list[Matrix | None]:
    """Format 1 writes relative values in the logical order of the nodes below the object that holds them."""
    found: list[Matrix | None] = []
    for holder in root.iter("object"):
        for element in holder.findall("distances"):
            ids = [int(o.get("os_index", "0")[:9]) for o in holder.iter("object") if _is_node(o)]
            if element.get("nbobjs") == str(len(ids)):
                base = _number(element.get("latency_base", ""), where)
                values = [_number(v.get("value", ""), where) for v in element.findall("latency")]
                scaled = [round(value * base, 6) for value in values]
                found.append((True, ids, _square(scaled, ids, where)))
    return found


def _is_node(element: Xml.Element) -> bool:
    return element.get("type") == "NUMANode" and element.get("os_index", "").isdecimal()


def _numbers(element: Xml.Element, tag: str, where: str) -> list[float]:
    return [_number(word, where) for part in element.findall(tag) for word in (part.text or "").split()]


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= _LIMIT:
        raise UsageError(f"{where}: {text[:20]!r} in distances", _HINT)
    return value


def _square(values: list[float], ids: list[int], where: str) -> list[list[float]]:
    count = len(ids)
    if not count or len(values) != count * count or len(set(ids)) != count:
        raise UsageError(f"{where}: {len(values)} distances between {count} nodes", _HINT)
    return [values[row * count : (row + 1) * count] for row in range(count)]
