"""The plan against what is here today (machine, usable cpus, build of the program, rank in a job), and a plan
for one machine made to fit another: groups of threads stay together as far as it lets them."""

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path

import msgspec
from msgspec import UNSET

from numaplan.common import UsageError, script_name, script_path
from numaplan.machine import Machine, format_list
from numaplan.mapper import Plan, PlanMachine, PlanRegion, PlanThread, Run
from numaplan.profiler import ElfFacts, executable_of

HINT = "plan again ('nmap plan --machine local'), or add --remap"
REBUILT = "the program is another build than the one that the plan was made for"
# Threads that were on one node of the plan's machine, in the plan's order.
Group = list[PlanThread]


def fit_plan(
    path: str, machine: Machine, remap: bool, program: str = "", facts: ElfFacts | None = None
) -> Plan:
    """The plan in a file as it can be used on `machine` for a program with these facts (None: unknown).

    Raises UsageError with every reason why it cannot be used; with `remap` the plan is fitted to the machine,
    and another build of the program is taken.
    """
    return fitted(Plan.load(path), path, machine, remap, program, facts, HINT)


def fitted(
    plan: Plan, where: str, machine: Machine, remap: bool, program: str, facts: ElfFacts | None, hint: str
) -> Plan:
    """As fit_plan, of a plan that is called `where`; hint: what to do where it cannot be used."""
    reasons = misfits(plan, machine, program, facts)
    if not reasons:
        return plan
    if not remap:
        raise UsageError(f"{where}: {'; '.join(reasons)}", hint)
    return remap_plan(plan, machine) if is_other_machine(plan, machine) else plan


def misfits(plan: Plan, machine: Machine, program: str = "", facts: ElfFacts | None = None) -> list[str]:
    """Every reason why a plan cannot be used on `machine` for a program with these facts (None: unknown)."""
    reasons = [_mismatch(plan, machine)] if is_other_machine(plan, machine) else []
    if (
        facts
        and program
        and what_differs(plan, {program: None, executable_of(program): facts}).startswith(REBUILT)
    ):
        reasons.append("made for another build of the program")
    return reasons


def part_of_process(plan: Plan, root: str) -> Plan:
    """What the plan says of the process `root` and its children; all of it when it knows no such rank."""
    if root == "p0" or not any(_within(thread.process, root) for thread in plan.threads):
        return plan
    return only_process(plan, root)


def no_part_for(plan: Plan, root: str) -> str:
    """What to say where the first process is a rank that the plan does not know; empty where it does."""
    if root == "p0" or not (plan.threads or plan.memory):
        return ""
    processes = [*(thread.process for thread in plan.threads), *(one.region.process for one in plan.memory)]
    if any(_within(process, root) for process in processes):
        return ""
    return f"has nothing for {root}, a rank of a job, so nothing is placed: record it as it is started here"


def only_process(plan: Plan, root: str) -> Plan:
    """What the plan says of the process `root` and its children, be it nothing."""
    threads = tuple(thread for thread in plan.threads if _within(thread.process, root))
    whole, part = (sum(thread.load for thread in some) for some in (plan.threads, threads))
    return msgspec.structs.replace(
        plan,
        threads=threads,
        memory=tuple(
            _of_fewer_accesses(region, whole / part if part > 0 else 1.0)
            for region in plan.memory
            if _within(region.region.process, root)
        ),
    )


def _of_fewer_accesses(region: PlanRegion, times: float) -> PlanRegion:
    """Its share of the accesses of a part of the job's threads; loads are accesses."""
    if not isinstance(region.share, float):
        return region
    return msgspec.structs.replace(region, share=min(1.0, region.share * times))


def _within(process: str, root: str) -> bool:
    return process == root or process.startswith(root + ".")


def what_differs(plan: Plan, programs: Mapping[str, ElfFacts | None]) -> str:
    """What tells that no program of those that run is the plan's; empty when one is, or nothing tells.

    programs: by file, with what that says of itself (None: a script, or not known). What has the plan's name
    is another build of it. Anything else is another program, or one that starts it (a shell, mpirun).
    """
    wanted = plan.app.build_id
    builds = {file: facts.build_id for file, facts in programs.items() if facts}
    if not wanted or not builds or wanted in builds.values():
        return ""
    names = {name for file in programs for name in (Path(file).name, Path(os.path.realpath(file)).name)}
    if plan.app.name in names:
        return f"{REBUILT} ({plan.app.name})"
    return f"the plan was made for another program ({plan.app.name}, not {Path(next(iter(builds))).name})"


def runs_other_script(plan: Plan, argv: Sequence[str]) -> str:
    """What tells that a plan was made for another script of the interpreter that is started; else empty.

    Of one interpreter, whose build is all that `what_differs` knows, they differ by their names.
    """
    app = plan.app
    planned, path = script_name(app.argv, app.executable), script_path(argv, app.executable)
    names = [Path(path).name, Path(os.path.realpath(path)).name] if path else []
    if not planned or not names or planned in names:
        return ""
    return f"the plan was made for another script ({planned}, not {names[0]})"


def is_other_machine(plan: Plan, machine: Machine) -> bool:
    """Whether the plan cannot be used as it is on `machine`."""
    planned = {cpu for thread in plan.threads for cpu in thread.cpus}
    return plan.machine.fingerprint != machine.fingerprint and not (
        _same_but_for_cpus(plan.machine.machine(), machine) and planned <= set(machine.cpus)
    )


def is_part_of(machine: Machine, plan: Plan) -> bool:
    """Whether all cpus of `machine` are the plan's machine's, on the same nodes."""
    planned = plan.machine.machine().node_of_cpu
    return all(planned.get(cpu) == node for cpu, node in machine.node_of_cpu.items())


def _same_but_for_cpus(planned: Machine, ours: Machine) -> bool:
    """Whether ours is the plan's machine with some cpus out of use; a plan that needs none of them holds."""
    return (
        planned.node_ids == ours.node_ids
        and planned.distance_rows == ours.distance_rows
        and all(planned.node_of_cpu.get(cpu) == node for cpu, node in ours.node_of_cpu.items())
    )


def _mismatch(plan: Plan, machine: Machine) -> str:
    planned = plan.machine.machine()
    if _same_but_for_cpus(planned, machine):
        missing = {cpu for thread in plan.threads for cpu in thread.cpus} - set(machine.cpus)
        return f"needs cpus that are offline or not allowed here ({format_list(missing)})"
    return f"made for another machine ({plan.machine.name}: {_shape(planned)}; here: {_shape(machine)})"


def _shape(machine: Machine) -> str:
    counts = [len(node.cpus) for node in machine.cpu_nodes]
    if len(set(counts)) == 1:
        return f"{len(counts)} node{'s' if len(counts) > 1 else ''} of {counts[0]} cpus"
    return f"{len(machine.nodes)} nodes, {sum(counts)} cpus"


def remap_plan(plan: Plan, machine: Machine) -> Plan:
    """The plan with every node, cpu and run translated to `machine`.

    Groups keep together, but for those larger than the largest node. Within a node threads take the cpus in
    turn, those of a lane one cpu. Raises UsageError when the machine has no cpus.
    """
    if not machine.cpu_nodes:
        raise UsageError("the machine has no node with cpus", "check it with 'nmap machine local'")
    groups: dict[int, Group] = defaultdict(list)
    for thread in plan.threads:
        groups[thread.node].append(thread)
    pieces = _cut(groups, machine)
    nodes = _nodes_of_pieces([group for _, group in pieces], machine)
    node_of: dict[int, int] = {}
    seats: dict[tuple[str, str], tuple[int, tuple[int, ...]]] = {}
    taken: dict[int, dict[tuple[str, ...], int]] = defaultdict(dict)  # by node: the turn of each lane
    whole = _whole_nodes(plan)
    for (origin, group), node in zip(pieces, nodes, strict=True):
        node_of.setdefault(origin, node)
        for thread in group:
            cpus = cpus_in_turn(machine, node)
            turn = taken[node].setdefault(lane_of(thread), len(taken[node]))
            seat = tuple(sorted(cpus)) if whole else (cpus[turn % len(cpus)],)
            seats[thread.process, thread.path] = (node, seat)
    for position, old in enumerate(plan.machine.nodes):  # nodes of the plan that hold memory only
        node_of.setdefault(old.id, machine.node_ids[position % len(machine.node_ids)])
    moved = [_moved(thread, seats[thread.process, thread.path]) for thread in plan.threads]
    return msgspec.structs.replace(
        plan,
        machine=PlanMachine.of(machine),
        threads=_with_pools(moved, machine),
        memory=tuple(_moved_region(region, node_of) for region in plan.memory),
        predicted=msgspec.structs.replace(plan.predicted, node_loads=(), baselines={}, touched=()),
    )


def lane_of(thread: PlanThread) -> tuple[str, ...]:
    """What threads of a rank share that have one seat through time; of one that has it alone its name."""
    if thread.lane is UNSET:
        return thread.process, thread.path
    return thread.process.partition(".")[0], f"lane {thread.lane}", ""


def _with_pools(threads: Sequence[PlanThread], machine: Machine) -> tuple[PlanThread, ...]:
    """The same with all cpus of a pool's nodes for each of its threads."""
    nodes: dict[int, set[int]] = defaultdict(set)
    for thread in threads:
        if thread.pool is not UNSET:
            nodes[thread.pool].add(thread.node)
    cpus = {
        pool: tuple(cpu for node in machine.nodes if node.id in own for cpu in node.cpus)
        for pool, own in nodes.items()
    }
    return tuple(
        thread if thread.pool is UNSET else msgspec.structs.replace(thread, cpus=cpus[thread.pool])
        for thread in threads
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
    """(node of the plan, threads), groups larger than the largest node cut, threads of a lane together.

    Where all have a cpu each, into pieces that fill such a node, else into equal ones while a node is empty.
    """
    capacity = max(len(node.cpus) for node in machine.cpu_nodes)
    spare = len(machine.cpu_nodes) - len(groups)
    enough = sum(map(_seats, groups.values())) <= len(machine.cpus)
    pieces: list[tuple[int, Group]] = []
    for origin in sorted(groups):
        lanes = _by_lane(groups[origin])
        count = -(-len(lanes) // capacity)
        if enough:
            edges = [min(capacity * piece, len(lanes)) for piece in range(count + 1)]
        else:
            count = min(count, 1 + max(spare, 0))
            edges = [len(lanes) * piece // count for piece in range(count + 1)]
        spare -= count - 1
        pieces += [(origin, [*chain.from_iterable(lanes[a:b])]) for a, b in pairwise(edges)]
    return pieces


def _by_lane(group: Group) -> list[Group]:
    """A group's threads, those of a lane together, in the order of their first ones."""
    lanes: dict[tuple[str, ...], Group] = defaultdict(list)
    for thread in group:
        lanes[lane_of(thread)].append(thread)
    return list(lanes.values())


def _seats(group: Group) -> int:
    return len(_by_lane(group))


def _nodes_of_pieces(pieces: Sequence[Group], machine: Machine) -> list[int]:
    """Node of each piece: in order where there is a node for each that holds it, else the largest first to
    the node with most room."""
    nodes, sizes = machine.cpu_nodes, [_seats(piece) for piece in pieces]
    if len(sizes) <= len(nodes) and all(
        size <= len(node.cpus) for size, node in zip(sizes, nodes, strict=False)
    ):
        return [nodes[index].id for index in range(len(sizes))]
    filled = {node.id: 0 for node in nodes}
    found = [0] * len(sizes)
    for index in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        size = sizes[index]
        best = min(nodes, key=lambda node: ((filled[node.id] + size) / len(node.cpus), node.id))
        filled[best.id] += size
        found[index] = best.id
    return found


def _moved(thread: PlanThread, seat: tuple[int, tuple[int, ...]]) -> PlanThread:
    return msgspec.structs.replace(thread, node=seat[0], cpus=seat[1])


def _moved_region(region: PlanRegion, node_of: dict[int, int]) -> PlanRegion:
    runs: list[Run] = []
    for run in region.runs:
        node = node_of[run.node]
        last = runs[-1] if runs else None
        if last is not None and last.node == node and last.offset + last.bytes == run.offset:
            runs[-1] = Run(offset=last.offset, bytes=last.bytes + run.bytes, node=node)
        else:
            runs.append(Run(offset=run.offset, bytes=run.bytes, node=node))
    return msgspec.structs.replace(region, runs=tuple(runs))
