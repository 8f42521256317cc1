"""Distances between NUMA nodes in hwloc XML files, in every way the formats 1, 2 and 3 write them."""

from collections.abc import Sequence
from typing import NamedTuple
from xml.etree import ElementTree as Xml

from numaplan.common import UsageError

_KERNEL, _LATENCY = 1, 4  # hwloc_distances_kind_e: they come from the kernel; they mean latency
_HINT = "export it again, for example with 'lstopo machine.xml'"
_LIMIT = 1e9
_LOCAL = 10.0  # what the kernel gives a node's own memory

Rows = tuple[tuple[float, ...], ...]


class _Matrix(NamedTuple):
    """doubt: the less, the likelier it is the kernel's own; ids: of its nodes; rows: in their order."""

    doubt: int
    ids: list[int]
    rows: list[list[float]]


def read_distances(root: Xml.Element, nodes: Sequence[int], where: str) -> Rows:
    """(K, K) distances in the order of `nodes` (os ids); empty when the file has none that cover them all.

    A matrix follows its own list of nodes, by os index or by gp_index. Raises UsageError for a malformed one.
    """
    found = [matrix for element in root.iter("distances2") if (matrix := _format_2(element, root, where))]
    found = found or [matrix for matrix in _format_1(root, where) if matrix]
    for matrix in sorted(found, key=lambda matrix: matrix.doubt):
        if set(nodes) <= set(matrix.ids):
            order = [matrix.ids.index(node) for node in nodes]
            return tuple(tuple(matrix.rows[a][b] for b in order) for a in order)
    return ()


def _format_2(element: Xml.Element, root: Xml.Element, where: str) -> _Matrix | None:
    kind, name = element.get("kind", ""), element.get("name")
    if element.get("type") != "NUMANode" or not (kind.isdecimal() and int(kind[:9]) & _LATENCY):
        return None
    ids = [int(value) for value in _numbers(element, "indexes", where)]
    if element.get("indexing") == "gp":
        os_of = {o.get("gp_index"): o.get("os_index", "") for o in root.iter("object") if _is_node(o)}
        names = [os_of.get(str(value), "") for value in ids]
        if not all(value.isdecimal() for value in names):
            raise UsageError(f"{where}: distances between nodes that do not exist", _HINT)
        ids = [int(value) for value in names]
    rows = _square(_numbers(element, "u64values", where), ids, where)
    doubt = 0 if name == "NUMALatency" else _doubt(rows, kernel=name is None and int(kind[:9]) & _KERNEL > 0)
    return _Matrix(doubt, ids, rows)


def _doubt(rows: list[list[float]], *, kernel: bool) -> int:
    """Of a matrix that its name does not tell.

    kernel: the file says that it is the kernel's, as older ones say of a user's, too.
    """
    local = all(row[place] == _LOCAL for place, row in enumerate(rows))
    return (1 if kernel else 3) + (not local)


def _format_1(root: Xml.Element, where: str) -> list[_Matrix | None]:
    """Format 1 writes relative values in the logical order of the nodes below the object that holds them."""
    found: list[_Matrix | None] = []
    for holder in root.iter("object"):
        for element in holder.findall("distances"):
            ids = [int(o.get("os_index", "0")[:9]) for o in holder.iter("object") if _is_node(o)]
            if element.get("nbobjs") == str(len(ids)):
                base = _number(element.get("latency_base", ""), where)
                values = [_number(v.get("value", ""), where) for v in element.findall("latency")]
                rows = _square([round(value * base, 6) for value in values], ids, where)
                found.append(_Matrix(_doubt(rows, kernel=True), ids, rows))
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
