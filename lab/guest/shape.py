"""From a machine to the guest that has its nodes, cpus and distances, and to QEMU's arguments for it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from numaplan.common import MachineLacksError, UsageError, read_size
from numaplan.machine import Cache, Core, Machine, Node

MAX_CPUS = 255  # beyond, the emulated chipset needs an interrupt remapper
MAX_NODES = 64
USUAL_MIB = 2048  # of the whole guest
MIN_NODE_MIB = 96
MAX_IDS = 1 << 30  # above every cpu id
LEAST_DISTANCE, MOST_DISTANCE = 11, 254  # between nodes, as firmware tables hold them
_HOLE_END_MIB = 3072  # memory beyond goes above 4 GiB
_SCALE = re.compile(r"([1-9][0-9]{0,2})x([1-9][0-9]{0,2})")


def scaled(machine: Machine, scale: str) -> Machine:
    """The first K nodes with cpus of `machine`, with C cpus each, for `scale` "KxC"; distances are kept."""
    found = _SCALE.fullmatch(scale)
    if not found:
        raise UsageError(f"--scale {scale}: not NODESxCPUS", "give for example --scale 4x2")
    count, cpus = int(found[1]), int(found[2])
    if count > len(machine.cpu_nodes):
        raise UsageError(
            f"--scale {scale}: the machine has {len(machine.cpu_nodes)} nodes", "give fewer nodes"
        )
    rows = [machine.index_of_node(node.id) for node in machine.cpu_nodes[:count]]
    number = {
        cpu: k * cpus + i
        for k, row in enumerate(rows)
        for i, cpu in enumerate(machine.nodes[row].cpus[:cpus])
    }
    return _machine(
        f"{machine.name or 'machine'} scaled to {scale}",
        [tuple(range(k * cpus, (k + 1) * cpus)) for k in range(count)],
        [1] * count,
        machine,
        rows,
        number,
    )


def with_cpus_per_node(machine: Machine, cpus: int) -> Machine:
    """The same nodes and distances with at most `cpus` cpus a node."""
    kept = [cpu for node in machine.nodes for cpu in node.cpus[:cpus]]
    number = {cpu: new for new, cpu in enumerate(kept)}
    return _machine(
        f"{machine.name or 'machine'} with {cpus} cpus per node",
        [tuple(number[cpu] for cpu in node.cpus[:cpus]) for node in machine.nodes],
        [node.memory_bytes for node in machine.nodes],
        machine,
        range(len(machine.nodes)),
        number,
    )


def dense(machine: Machine) -> Machine:
    """The machine as the guest's kernel numbers it: cpus 0.. in their order, nodes 0.. in that of their first
    cpu, those without cpus last. Node and cpu ids of most machines stay as they are.

    Raises UsageError for what no guest can have (no cpus, too many cpus or nodes).
    """
    number = {cpu: index for index, cpu in enumerate(machine.cpus)}
    if not 1 <= len(number) <= MAX_CPUS or len(machine.nodes) > MAX_NODES:
        raise UsageError(
            f"{len(machine.nodes)} nodes with {len(number)} cpus do not fit in the lab",
            f"name one of up to {MAX_NODES} nodes and {MAX_CPUS} cpus; nlab run and compare take --scale",
        )
    order = node_order(machine)
    return _machine(
        machine.name or "machine",
        [tuple(number[cpu] for cpu in machine.nodes[row].cpus) for row in order],
        [machine.nodes[row].memory_bytes for row in order],
        machine,
        order,
        number,
    )


def node_order(machine: Machine) -> list[int]:
    """Which of the machine's nodes each of the guest's is, by their numbers and rows."""
    return sorted(range(len(machine.nodes)), key=lambda row: min(machine.nodes[row].cpus, default=MAX_IDS))


def renumbering(machine: Machine) -> str:
    """How `dense` renumbers the nodes of a machine, for people; empty when it does not."""
    order = sorted(machine.nodes, key=lambda node: min(node.cpus, default=MAX_IDS))
    pairs = [f"{node.id} is {new}" for new, node in enumerate(order) if node.id != new]
    return f"in the lab node {', '.join(pairs)}" if pairs else ""


def _machine(
    name: str,
    cpus: list[tuple[int, ...]],
    memory: list[int],
    origin: Machine,
    rows: Sequence[int],
    number: Mapping[int, int],
) -> Machine:
    """Nodes with these cpus and bytes, and what is known of them on the machine that they are of.

    rows: of the origin's matrices, one a node; number: the new cpu of each of the origin's that is kept.
    """
    nodes = tuple(Node(id=k, cpus=own, memory_bytes=memory[k]) for k, own in enumerate(cpus))
    place = {cpu: (node.id, node.id) for node in nodes for cpu in node.cpus}
    for core in origin.cores:
        for cpu in core.cpus:
            if cpu in number and core.l3 is not None:
                place[number[cpu]] = (place[number[cpu]][0], core.l3)
    return Machine(
        name=name,
        nodes=nodes,
        distances=_picked(origin.distance_rows, rows),
        cores=tuple(
            Core(cpus=(cpu,), node=place[cpu][0], l3=place[cpu][1]) for node in nodes for cpu in node.cpus
        ),
        caches=tuple(kept for cache in origin.caches if (kept := _renumbered(cache, number)).cpus),
        latency_ns=_picked(origin.latency_ns, rows),
        bandwidth_mb_s=_picked(origin.bandwidth_mb_s, rows),
    )


def _picked(matrix: Sequence[Sequence[float]], rows: Sequence[int]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(matrix[a][b]) for b in rows) for a in rows) if matrix else ()


def _renumbered(cache: Cache, number: Mapping[int, int]) -> Cache:
    groups = (tuple(number[cpu] for cpu in group if cpu in number) for group in cache.cpus)
    return msgspec.structs.replace(cache, cpus=tuple(group for group in groups if group))


@dataclass(frozen=True)
class GuestShape:
    """A dense machine and how much memory each of its nodes gets, in MiB (0: none)."""

    machine: Machine
    node_mib: tuple[int, ...]

    @property
    def total_mib(self) -> int:
        """Memory of the whole guest."""
        return sum(self.node_mib)


def shape_guest(machine: Machine, memory_mib: int, available_mib: int) -> GuestShape:
    """Divide `memory_mib` evenly among the nodes that have memory.

    Raises UsageError when a node would get too little, MachineLacksError when the host has less available.
    """
    sized = any(node.memory_bytes for node in machine.nodes)
    owners = [bool(node.memory_bytes) or not sized for node in machine.nodes]
    share = memory_mib // sum(owners) // 2 * 2
    if share < MIN_NODE_MIB:
        raise UsageError(
            f"{memory_mib} MiB over {sum(owners)} nodes is {share} MiB per node",
            f"give --memory {MIN_NODE_MIB * sum(owners)}M or more, or fewer nodes",
        )
    if memory_mib > available_mib:
        raise MachineLacksError(
            f"a guest of {memory_mib} MiB does not fit: {available_mib} MiB are available",
            "give less with --memory",
        )
    return GuestShape(machine, tuple(share if owner else 0 for owner in owners))


def parse_memory(text: str) -> int:
    """MiB of a size such as 2G or 1500M."""
    return read_size("--memory", text, least=1 << 20, most=1 << 50) >> 20


def shape_arguments(shape: GuestShape) -> list[str]:
    """QEMU's arguments for the cpus, nodes, memory and distances of a guest."""
    arguments = ["-m", f"{shape.total_mib}M", "-smp", _topology(shape.machine)]
    for node, mib in zip(shape.machine.nodes, shape.node_mib, strict=True):
        memory = f",memdev=ram{node.id}" if mib else ""
        if mib:
            arguments += ["-object", f"memory-backend-ram,id=ram{node.id},size={mib}M"]
        owned = "".join(f",cpus={cpu}" for cpu in node.cpus)
        arguments += ["-numa", f"node,nodeid={node.id}{memory}{owned}"]
    count = len(shape.machine.nodes)
    distances = shape.machine.distance_matrix
    for a in range(count):
        for b in range(count):
            if a != b:
                arguments += ["-numa", f"dist,src={a},dst={b},val={_distance(distances[a, b])}"]
    return arguments


def machine_option(shape: GuestShape) -> str:
    """QEMU's machine type; the hole below 4 GiB is put at a node's end, so that every node is one piece."""
    below = 0
    for mib in shape.node_mib:
        if below + mib > _HOLE_END_MIB:
            break
        below += mib
    limit = f",max-ram-below-4g={below}M" if below < shape.total_mib else ""
    return f"pc,hpet=off,vmport=off{limit}"


def _topology(machine: Machine) -> str:
    """One package a node where nodes are alike and consecutive, else one package a cpu."""
    sizes = {len(node.cpus) for node in machine.cpu_nodes}
    listed = [cpu for node in machine.cpu_nodes for cpu in node.cpus]
    total = len(machine.cpus)
    if len(sizes) == 1 and listed == list(range(total)):
        return f"{total},sockets={len(machine.cpu_nodes)},cores={sizes.pop()},threads=1"
    return f"{total},sockets={total},cores=1,threads=1"


def _distance(value: float) -> int:
    return min(max(round(value), LEAST_DISTANCE), MOST_DISTANCE)
