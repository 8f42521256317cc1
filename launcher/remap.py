"""A plan for one machine made to fit another: groups of threads stay together as far as it lets them."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from numaplan.common import UsageError
from numaplan.mapper import Plan, PlanMachine, PlanRegion, PlanThread, Run
from numaplan.profiler.machine import Machine

# Threads that were on one node of the plan's machine, in the plan's order.
Group = list[PlanThread]


def remap_plan(plan: Plan, machine: Machine) -> Plan:
    """The plan with every node, cpu and run translated to `machine`.

    Groups keep together; a group larger than a node is cut only while nodes would stay empty. Within a node
    threads take the cpus in turn. Raises UsageError when the machine has no cpus.
    """
    if not machine.cpu_nodes:
        raise UsageError("the machine has no node with cpus", "check it with 'nmap machine local'")
    groups: dict[int, Group] = defaultdict(list)
    for thread in plan.threads:
        groups[thread.node].append(thread)
    pieces = _cut(groups, machine)
    nodes = _nodes_of_pieces([group for _, group in pieces], machine)
    home: dict[int, int] = {}
    seats: dict[tuple[str, str], tuple[int, tuple[int, ...]]] = {}
    taken: dict[int, int] = defaultdict(int)
    whole = _whole_nodes(plan)
    for (origin, group), node in zip(pieces, nodes, strict=True):
        home.setdefault(origin, node)
        for thread in group:
            cpus = cpus_in_turn(machine, node)
            seat = tuple(sorted(cpus)) if whole else (cpus[taken[node] % len(cpus)],)
            taken[node] += 1
            seats[thread.process, thread.path] = (node, seat)
    for position, old in enumerate(plan.machine.nodes):  # nodes of the plan that hold memory only
        home.setdefault(old.id, machine.node_ids[position % len(machine.node_ids)])
    threads = tuple(_moved(thread, seats[thread.process, thread.path]) for thread in plan.threads)
    return msgspec.structs.replace(
        plan,
        machine=PlanMachine.of(machine),
        threads=threads,
        memory=tuple(_moved_region(region, home) for region in plan.memory),
        predicted=msgspec.structs.replace(plan.predicted, node_loads=(), baselines={}),
    )


def cpus_in_turn(machine: Machine, node: int) -> list[int]:
    """A node's cpus in the order threads take them: one hwthread of every core first."""
    cpus = list(machine.nodes[machine.index_of_node(node)].cpus)
    rank = {cpu: place for core in machine.cores for place, cpu in enumerate(core.cpus)}
    return sorted(cpus, key=lambda cpu: (rank.get(cpu, 0), cpus.index(cpu)))


def _whole_nodes(plan: Plan) -> bool:
    """Whether the plan binds threads to nodes, not to single cpus."""
    return bool(plan.threads) and all(len(thread.cpus) > 1 for thread in plan.threads)


def _cut(groups: dict[int, Group], machine: Machine) -> list[tuple[int, Group]]:
    """(node of the plan, threads), groups larger than the largest node cut while nodes are to spare."""
    room = max(len(node.cpus) for node in machine.cpu_nodes)
    spare = len(machine.cpu_nodes) - len(groups)
    pieces: list[tuple[int, Group]] = []
    for origin in sorted(groups):
        group = groups[origin]
        count = min(-(-len(group) // room), 1 + max(spare, 0))
        spare -= count - 1
        edges = [len(group) * piece // count for piece in range(count + 1)]
        pieces += [(origin, group[a:b]) for a, b in pairwise(edges)]
    return pieces


def _nodes_of_pieces(pieces: Sequence[Group], machine: Machine) -> list[int]:
    """Node of each piece: in order where there is a node for each that holds it, else the largest first to
    the node with most room."""
    nodes = machine.cpu_nodes
    if len(pieces) <= len(nodes) and all(
        len(piece) <= len(node.cpus) for piece, node in zip(pieces, nodes, strict=False)
    ):
        return [nodes[index].id for index in range(len(pieces))]
    filled = {node.id: 0 for node in nodes}
    found = [0] * len(pieces)
    for index in sorted(range(len(pieces)), key=lambda i: -len(pieces[i])):
        size = len(pieces[index])
        best = min(nodes, key=lambda node: ((filled[node.id] + size) / len(node.cpus), node.id))
        filled[best.id] += size
        found[index] = best.id
    return found


def _moved(thread: PlanThread, seat: tuple[int, tuple[int, ...]]) -> PlanThread:
    return msgspec.structs.replace(thread, node=seat[0], cpus=seat[1])


def _moved_region(region: PlanRegion, home: dict[int, int]) -> PlanRegion:
    runs: list[Run] = []
    for run in region.runs:
        node = home[run.node]
        last = runs[-1] if runs else None
        if last is not None and last.node == node and last.offset + last.bytes == run.offset:
            runs[-1] = Run(offset=last.offset, bytes=last.bytes + run.bytes, node=node)
        else:
            runs.append(Run(offset=run.offset, bytes=run.bytes, node=node))
    return msgspec.structs.replace(region, runs=tuple(runs))
