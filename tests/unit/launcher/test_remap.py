"""A plan moved to another machine: everything placed, groups together, memory with its group."""

from collections import defaultdict

import msgspec
from hypothesis import given, strategies as st

from numaplan.launcher import remap_plan
from numaplan.launcher.enforce.idle_cpus import idle_beside
from numaplan.launcher.enforce.plan_fit import cpus_in_turn
from numaplan.machine import Core, Machine, Node
from numaplan.mapper import Plan, PlanApp, PlanMachine, PlanRegion, PlanThread, Predicted, RegionKey, Run
from tests.support.outside import plan_of_threads
from tests.support.properties import examples


def plan_of(nodes: list[int], machine: Machine, memory: tuple[PlanRegion, ...] = ()) -> Plan:
    """A plan with thread i on the machine's node number nodes[i], on one cpu each."""
    threads = tuple(
        PlanThread(
            path="0" if n == 0 else f"0.{n}",
            thread=n,
            node=machine.node_ids[k],
            cpus=(machine.nodes[k].cpus[n % len(machine.nodes[k].cpus)],),
            load=1.0,
        )
        for n, k in enumerate(nodes)
    )
    return Plan(
        app=PlanApp(threads=len(threads)),
        machine=PlanMachine.of(machine),
        method="best",
        objective="remote",
        threads=threads,
        memory=memory,
        predicted=Predicted(remote_comm=0, remote_share=0, hop_cost=0, load_std=0),
    )


def groups(plan: Plan) -> list[list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for thread in plan.threads:
        found[thread.node].append(thread.path)
    return sorted(found.values())


def shape(sizes: list[int]) -> Machine:
    """A machine with sparse node ids and nodes of the given numbers of cpus."""
    nodes, at = [], 0
    for k, size in enumerate(sizes):
        nodes.append(Node(id=3 * k + 1, cpus=tuple(range(at, at + size))))
        at += size
    return Machine(nodes=tuple(nodes))


sizes = st.lists(st.integers(1, 6), min_size=1, max_size=5)


@examples(150)
@given(sizes, sizes, st.data())
def test_every_plan_fits_every_machine(theirs: list[int], ours: list[int], data: st.DataObject) -> None:
    machine = shape(ours)
    seats = data.draw(st.lists(st.integers(0, len(theirs) - 1), min_size=1, max_size=20))
    key = RegionKey(kind="heap", name="a+0x1", bytes=4096 * len(theirs), thread="0", sequence=1)
    runs = tuple(Run(offset=4096 * k, bytes=4096, node=3 * k + 1) for k in range(len(theirs)))
    plan = plan_of(seats, shape(theirs), (PlanRegion(region=key, policy="bind", runs=runs),))
    moved = remap_plan(plan, machine)
    # What comes out passes every check of a plan file.
    again = Plan.from_json(moved.to_json())
    assert again.machine.fingerprint == machine.fingerprint
    assert [thread.path for thread in again.threads] == [thread.path for thread in plan.threads]
    assert sum(run.bytes for run in again.memory[0].runs) == key.bytes
    for before in groups(plan):
        homes = {thread.node for thread in again.threads if thread.path in before}
        assert len(homes) <= max(1, -(-len(before) // max(ours)))


def test_the_same_shape_keeps_groups_and_order() -> None:
    plan = plan_of([0, 1, 1, 0], Machine.load("2x2"))
    moved = remap_plan(plan, shape([2, 2]))
    assert [thread.node for thread in moved.threads] == [1, 4, 4, 1]
    assert len({thread.cpus for thread in moved.threads}) == 4


def test_four_groups_on_one_small_node_share_its_cpus_evenly() -> None:
    moved = remap_plan(plan_of([0, 0, 1, 1, 2, 2, 3, 3], Machine.load("4x2")), Machine.load("1x2"))
    assert [thread.cpus for thread in moved.threads] == [(0,), (1,)] * 4


def test_a_group_too_large_for_a_node_is_cut_into_neighbours_in_order() -> None:
    moved = remap_plan(plan_of([0] * 4 + [1] * 4, Machine.load("2x4")), Machine.load("4x2"))
    assert groups(moved) == [["0", "0.1"], ["0.2", "0.3"], ["0.4", "0.5"], ["0.6", "0.7"]]


def test_two_groups_together_where_nodes_are_too_few() -> None:
    moved = remap_plan(plan_of([0, 0, 1, 1, 2, 2, 3, 3], Machine.load("4x2")), Machine.load("2x4"))
    assert sorted(len(group) for group in groups(moved)) == [4, 4]
    for pair in (["0", "0.1"], ["0.2", "0.3"], ["0.4", "0.5"], ["0.6", "0.7"]):
        assert len({thread.node for thread in moved.threads if thread.path in pair}) == 1


def test_memory_goes_with_its_group_and_touching_runs_join() -> None:
    key = RegionKey(kind="mmap", name="a+0x1", bytes=16384, thread="0", sequence=1)
    runs = tuple(Run(offset=4096 * k, bytes=4096, node=k) for k in range(4))
    plan = plan_of([0, 1, 2, 3], Machine.load("4x1"), (PlanRegion(region=key, policy="bind", runs=runs),))
    assert remap_plan(plan, Machine.load("1x4")).memory[0].runs == (Run(offset=0, bytes=16384, node=0),)


def test_whole_nodes_stay_whole_nodes() -> None:
    plan = plan_of([0, 1], Machine.load("2x2"))
    threads = tuple(msgspec.structs.replace(t, cpus=(2 * t.node, 2 * t.node + 1)) for t in plan.threads)
    moved = remap_plan(msgspec.structs.replace(plan, threads=threads), Machine.load("2x4"))
    assert [thread.cpus for thread in moved.threads] == [(0, 1, 2, 3), (4, 5, 6, 7)]


def test_cores_before_their_second_hwthreads() -> None:
    machine = Machine(
        nodes=(Node(id=0, cpus=(0, 1, 2, 3)),), cores=(Core(cpus=(0, 1), node=0), Core(cpus=(2, 3), node=0))
    )
    assert cpus_in_turn(machine, 0) == [0, 2, 1, 3]


def test_a_pool_gets_all_cpus_of_the_nodes_that_its_threads_come_to() -> None:
    plan = plan_of([0, 0, 1, 1], Machine.load("4x2"))
    pool = tuple(msgspec.structs.replace(thread, cpus=(0, 1, 2, 3), pool=1) for thread in plan.threads)
    moved = remap_plan(msgspec.structs.replace(plan, threads=pool), Machine.load("4x1"))
    assert {thread.cpus for thread in moved.threads} == {tuple(sorted({t.node for t in moved.threads}))}
    assert {thread.pool for thread in moved.threads} == {1}


def test_threads_of_a_lane_keep_one_cpu() -> None:
    """Four lanes of which each has two threads, on a node of three cpus."""
    plan = plan_of([0] * 8, shape([4, 4]))
    threads = tuple(msgspec.structs.replace(one, lane=1 + n % 4) for n, one in enumerate(plan.threads[1:]))
    plan = msgspec.structs.replace(plan, threads=(plan.threads[0], *threads))
    moved = [thread.cpus for thread in remap_plan(plan, shape([3])).threads[1:]]
    assert len(set(moved)) == 3 and moved[4:] == moved[:3]
    alone = msgspec.structs.replace(plan, threads=plan.threads[:1] + plan.threads[2:3])
    assert len({thread.cpus for thread in remap_plan(alone, shape([3])).threads}) == 2


def test_threads_of_several_creators_in_a_lane_keep_one_cpu() -> None:
    """Two makers, one after the other, with three threads each that follow one another."""
    names = [("p0", f"0.{maker}.{k}") for maker in (1, 2) for k in (1, 2, 3)]
    plan = plan_of_threads([("p0", "0"), *names], machine=shape([4, 4]))
    threads = tuple(msgspec.structs.replace(one, lane=1 + n % 3) for n, one in enumerate(plan.threads[1:]))
    plan = msgspec.structs.replace(plan, threads=(plan.threads[0], *threads))
    moved = [thread.cpus for thread in remap_plan(plan, shape([4])).threads[1:]]
    assert len(set(moved)) == 3 and moved[3:] == moved[:3]


def doubled(plan: Plan) -> int:
    """Threads that have not a cpu of their own."""
    return len(plan.threads) - len({thread.cpus for thread in plan.threads})


def test_groups_larger_than_a_node_are_cut_so_that_each_thread_has_a_cpu() -> None:
    pieces = remap_plan(plan_of([0] * 8, shape([8])), shape([5, 3]))
    assert ([len(group) for group in groups(pieces)], doubled(pieces)) == ([5, 3], 0)
    pieces = remap_plan(plan_of([0] * 4 + [1] * 4, shape([4, 4])), shape([3, 3, 3]))
    assert doubled(pieces) == 0
    crowded = remap_plan(plan_of([0] * 8 + [1] * 8, shape([8, 8])), shape([2, 2]))
    assert [len(group) for group in groups(crowded)] == [8, 8]


def test_threads_that_follow_one_another_are_no_reason_to_cut_a_group() -> None:
    plan = plan_of([0] * 8, shape([8]))
    threads = tuple(msgspec.structs.replace(t, lane=1 + t.thread % 2) for t in plan.threads)
    moved = remap_plan(msgspec.structs.replace(plan, threads=threads), shape([2, 2]))
    assert {(thread.node, thread.cpus) for thread in moved.threads} == {(1, (0,)), (1, (1,))}


def test_groups_kept_together_beside_idle_cpus_are_told() -> None:
    """Two groups of four on nodes of five and three cpus, and the same where no cpu is idle."""
    plan = plan_of([0] * 4 + [1] * 4, shape([4, 4]))
    told = idle_beside(remap_plan(plan, shape([5, 3])))
    assert told.startswith("2 threads share 1 cpu, with 1 cpu left idle, as groups") and "nmap plan" in told
    for machine in (shape([4, 4]), shape([3, 3]), shape([2, 2, 2, 2])):
        assert idle_beside(remap_plan(plan, machine)) == ""
    pool = tuple(msgspec.structs.replace(one, cpus=tuple(range(8)), pool=1) for one in plan.threads)
    assert idle_beside(remap_plan(msgspec.structs.replace(plan, threads=pool), shape([5, 3]))) == ""
