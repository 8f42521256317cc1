"""The machine: its parts, what can be derived from them, and reading it from what a user names."""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from numaplan.common import BAD_JSON, UsageError, read_document, reviewable_json

from .cpusets import format_list
from .topology import SCHEMA, Node, Topology, read_from

if TYPE_CHECKING:  # nlaunch reads machines and must not wait for numpy
    import networkx as nx
    import numpy as np
    from numpy.typing import NDArray

LOCAL_DISTANCE = 10.0
REMOTE_DISTANCE = 21.0  # what firmware reports for one hop when nothing better is known
_FORMAT = "see 'nmap machine 2x2 --json' for the format"


class Machine(Topology, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """A NUMA machine (fields: see `Topology`), what follows from its facts, and reading and writing it."""

    @staticmethod
    def load(source: str) -> "Machine":
        """The machine that `source` names: `local`, an hwloc XML or machine.json file, a built-in name, AxB.

        Raises UsageError when it names nothing or what it names cannot be read.
        """
        return Machine.of(_read(source))

    @staticmethod
    def of(topology: Topology) -> "Machine":
        """The machine with these facts."""
        return Machine(**msgspec.structs.asdict(topology))

    @staticmethod
    def from_dict(content: dict[str, Any]) -> "Machine":
        """The machine of a machine.json's content; raises UsageError naming the field that is wrong."""
        try:
            return msgspec.convert(content, Machine)
        except msgspec.ValidationError as error:
            raise UsageError(f"machine: {error}", _FORMAT) from error

    @staticmethod
    def from_json(data: bytes | str, where: str = "machine.json") -> "Machine":
        """The machine of a machine.json's text; raises UsageError naming `where` and the wrong field."""
        try:
            with read_from(where):
                return msgspec.json.decode(data, type=Machine)
        except BAD_JSON as error:
            raise UsageError(f"{where}: {error}", _FORMAT) from error

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
    def notes(self) -> tuple[str, ...]:
        """What people should hear of it before they plan for it."""
        count = len(self.nodeless_cpus)
        cpus = f"{count} cpu{'s' * (count != 1)} ({format_list(self.nodeless_cpus)})"
        return (f"{cpus} left out: in no node here",) if count else ()

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

    def graph(self) -> "nx.DiGraph":
        """The machine as a networkx graph, a vertex `node N` for each node and `cpu N` for each cpu.

        Vertices: `kind` (node, cpu), `id`; nodes also `memory_bytes` and `cpus`, how many they have. Edges
        from node to node: `distance` (10 is local) and, where the machine knows them, `latency_ns` and
        `bandwidth_mb_s` of accesses from the first to the second one's memory; from each node to its cpus.
        """
        import networkx as nx

        graph = nx.DiGraph(name=self.name)
        for node in self.nodes:
            sizes = {"memory_bytes": node.memory_bytes, "cpus": len(node.cpus)}
            graph.add_node(f"node {node.id}", kind="node", id=node.id, **sizes)
            for cpu in node.cpus:
                graph.add_node(f"cpu {cpu}", kind="cpu", id=cpu)
                graph.add_edge(f"node {node.id}", f"cpu {cpu}")
        matrices = {"distance": self.distance_rows, "latency_ns": self.latency_ns}
        for name, rows in {**matrices, "bandwidth_mb_s": self.bandwidth_mb_s}.items():
            for one, row in zip(self.nodes, rows, strict=False):
                for other, value in zip(self.nodes, row, strict=True):
                    if one is not other:
                        graph.add_edge(f"node {one.id}", f"node {other.id}", **{name: float(value)})
        return graph

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


def _read(source: str) -> Topology:
    """What `source` names, by the reader for it; each is loaded when it is needed."""
    if source == "local":
        from .sysfs import read_sysfs

        return read_sysfs()
    from .builtin import BUILT_IN, GRID, grid_machine

    if grid := GRID.fullmatch(source):
        return grid_machine(int(grid[1]), int(grid[2]))
    if source in BUILT_IN:
        return BUILT_IN[source]()
    path = Path(source)
    if not path.exists():
        known = ", ".join(["local", *BUILT_IN, "AxB"])
        raise UsageError(f"{source}: no such machine or file", f"give a file or one of {known}")
    if path.is_dir():
        from .sysfs import read_sysfs

        return read_sysfs(path)
    data = read_document(path, "machine.json or hwloc XML file")
    if data[:1] not in (b"<", b"{"):
        from .archives import is_tree, read_tree, unpacked

        data = unpacked(data, source)
        if is_tree(data):
            return read_tree(data, source)
    if data.lstrip()[:1] == b"<":
        from .hwloc_xml import parse_hwloc_xml

        return parse_hwloc_xml(data, source)
    return Machine.from_json(data, source)


def _listed(ids: Iterable[int]) -> str:
    return ", ".join(str(value) for value in ids)
