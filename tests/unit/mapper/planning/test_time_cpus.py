"""The objective `time`: how many nodes, caches and cpus threads are given."""

import numpy as np
import pytest
from msgspec import UNSET
from msgspec.structs import replace

from numaplan.analyzer import UNSEEN_BETWEEN
from numaplan.mapper import PlanOptions
from numaplan.mapper.plan_file.export import export_plan
from numaplan.mapper.plan_file.summary import summary
from numaplan.mapper.planning.cost.timed_task import TimedTask
from numaplan.mapper.planning.cost.unplanned import alone
from numaplan.mapper.planning.judge.compare import compare
from numaplan.mapper.planning.planner import plan_task
from numaplan.mapper.planning.search.candidates import SIZES, choose
from numaplan.mapper.workload.activity import Activity
from numaplan.profiler import Machine
from tests.support.timed import PAIRS, nodes_of, plan_of, plan_on, workload


def test_few_threads_that_share_take_few_nodes() -> None:
    everyone = {(one, other): 1e6 for one in range(4) for other in range(one)}
    assert len(set(nodes_of(plan_of(workload(lines=everyone), "4x4")))) == 1
    assert len(set(nodes_of(plan_of(workload(lines=everyone), "4x2")))) == 2


def test_threads_that_seldom_run_together_need_no_cpus_of_their_own() -> None:
    everyone = {(one, other): 1e6 for one in range(4) for other in range(one)}
    plan = plan_of(workload(lines=everyone, together=0.0), "4x2")
    assert len(set(nodes_of(plan))) == 1


@pytest.mark.parametrize(("talks", "most"), [(50, 3), (1000, 5)])
def test_threads_of_several_emulated_processes_have_cpus_of_their_own_for_a_little(
    talks: float, most: int
) -> None:
    """Each process counts its own time: who runs beside whom is not seen between them."""
    lines = {(0, 1): 500, (0, 2): 500, (1, 2): 500, (3, 4): 500, (2, 3): talks}
    work = workload(5, lines=lines, users=[[0], [1], [2], [3], [4]], together=0.0)
    assert nodes_of(plan_of(work, "2x4")) == [0] * 5
    task = plan_task(replace(work, notes=(UNSEEN_BETWEEN,)), Machine.load("2x4"), PlanOptions())[0]
    places = choose(TimedTask(task)).tried[0].places
    assert int(np.bincount(places).max()) == most


def test_processes_whose_exchange_nobody_saw_are_on_few_nodes() -> None:
    """A server's processes and its clients talk through the kernel, of which emulation sees nothing."""
    work = workload(users=[[0], [1], [2], [3]])
    assert len(set(nodes_of(plan_of(work, "4x4")))) == 4
    unseen = replace(work, notes=(UNSEEN_BETWEEN,))
    assert len(set(nodes_of(plan_of(unseen, "4x4")))) == 1
    assert len(set(nodes_of(plan_of(unseen, "4x2")))) == 2  # with a cpu for each


def test_nodes_are_filled_by_the_threads_that_run_at_a_time() -> None:
    """Of twenty threads eight are busy, each with all of these: as few nodes as have cpus for them."""
    busy = range(5, 13)
    work = workload(20, lines={(one, other): 1e4 for one in busy for other in busy if other < one})
    assert work.use is not None
    runs = np.array([0.02] * 5 + [1.0] * 8 + [0.02] * 7)
    use = replace(work.use, accesses=1e7 * runs, together=runs * (1 - np.eye(20)))
    nodes = nodes_of(plan_of(replace(work, use=use), "4x4"))
    assert sorted(np.bincount([nodes[thread] for thread in busy], minlength=4).tolist()) == [0, 0, 4, 4]


def test_a_node_with_several_caches_is_planned_by_cache() -> None:
    content = {
        "schema": "numaplan/machine/1",
        "nodes": [{"id": 0, "cpus": list(range(8))}],
        "cores": [{"cpus": [cpu], "node": 0, "l3": cpu // 2} for cpu in range(8)],
    }
    work = workload(lines=PAIRS | {(0, 1): 5e5})
    plan = plan_on(content, work)
    cache = [thread.cpus[0] // 2 for thread in plan.threads]
    assert cache[0] == cache[3] != cache[1] == cache[2]
    assert plan.predicted.cache_share == pytest.approx(0.2)
    assert plan.predicted.cache_baselines == {"compact": 1, "scatter": 1}  # one thread a cache
    assert any(line.startswith("between L3 caches       20.0%") for line in summary(plan))
    assert plan_on(content, work, objective="balanced").predicted.cache_share == 1  # as its loads are
    one = plan_on(content | {"cores": []}, workload(lines=PAIRS))
    assert one.predicted.cache_share == -1 and not any("L3" in line for line in summary(one))


EPYC = {  # two nodes of four caches
    "schema": "numaplan/machine/1",
    "nodes": [{"id": node, "cpus": [8 * node + cpu for cpu in range(8)]} for node in range(2)],
    "cores": [{"cpus": [cpu], "node": cpu // 8, "l3": cpu // 2} for cpu in range(16)],
}


def test_placements_on_caches_are_called_so() -> None:
    work = workload(lines=PAIRS)
    for content, what in ((EPYC, "caches"), (EPYC | {"cores": []}, "nodes")):
        counted = {name.partition(",")[0] for name in plan_on(content, work).predicted.costs}
        assert {name.split(" ", 1)[1] for name in counted if name[0].isdigit()} <= {what, f"{what} in order"}
    assert "2 caches" in plan_on(EPYC, work).predicted.costs


def test_loads_are_told_by_node_where_threads_are_placed_on_caches() -> None:
    """Four threads on one node of two, whatever caches they are on."""
    everyone = {(one, other): 1e6 for one in range(4) for other in range(one)}
    (best,) = compare(
        workload(lines=everyone), Machine.from_dict(EPYC), "best", "time", seed=0, effort="fast"
    )
    assert set(best.nodes) == {0} and best.imbalance == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("cpus", "said"),
    [
        ([[0, 1]] * 2, "all cpus of 1 L3 cache of node 0"),
        ([[0, 1, 2, 3]] * 2, "all cpus of 2 L3 caches of node 0"),
        ([[0, 1], [2, 3]], "each all cpus of one of 2 L3 caches of node 0"),
        ([[6, 7, 8, 9]] * 2, "all cpus of 2 L3 caches of nodes 0, 1"),
        ([[0, 2, 4, 6]] * 2, "all cpus of node 0"),  # one hwthread of each core
        ([list(range(8))] * 2, "all cpus of node 0"),
        ([list(range(8)), list(range(8, 16))], "each all cpus of one of nodes 0, 1"),
        ([list(range(16))] * 2, "all cpus of nodes 0, 1"),
    ],
)
def test_pools_are_on_caches_or_nodes(cpus: list[list[int]], said: str) -> None:
    plan = plan_on(EPYC, workload(2), method="compact")
    threads = [
        replace(one, cpus=tuple(own), node=own[0] // 8, pool=1)
        for one, own in zip(plan.threads, cpus, strict=True)
    ]
    assert f"  pool 1 of 2 threads: {said}" in summary(replace(plan, threads=tuple(threads), alone=""))


@pytest.mark.parametrize("caches", [1, 2, 4])
def test_few_threads_begin_on_all_nodes_however_many_caches_these_have(caches: int) -> None:
    content = {
        "schema": "numaplan/machine/1",
        "nodes": [{"id": node, "cpus": [8 * node + cpu for cpu in range(8)]} for node in range(2)],
        "cores": [{"cpus": [cpu], "node": cpu // 8, "l3": cpu * caches // 8} for cpu in range(16)],
    }
    pins = {"0.4": "0", "0.5": "1", "0.6": "0", "0.7": "1"}
    for given, options in (({}, PlanOptions()), (pins, PlanOptions(pins=pins))):
        work = workload(8 if given else 4)
        task = TimedTask(plan_task(work, Machine.from_dict(content), options)[0])
        assert task.rows[alone(task).places].tolist()[:4] == [0, 1, 0, 1]
        assert np.bincount(task.rows[task.mapped("compact")]).tolist() == [task.problem.threads / 2] * 2
        pinned = task.mapped("best")[task.fixed]
        assert len(set(pinned.tolist())) == min(2 * caches, len(given))
        assert task.rows[pinned].tolist() == [0, 1, 0, 1][: len(given)]


def test_more_threads_than_cpus_share_those_of_a_node() -> None:
    plan = plan_of(workload(6), "2x2", method="compact")
    assert all(len(thread.cpus) == 2 for thread in plan.threads)
    gomp = export_plan(plan, "gomp").partition("\n")[0]
    assert sorted(set(gomp.partition("=")[2].strip("'").split())) == ["0", "1", "2", "3"]


def test_threads_with_little_to_do_take_no_cpu_from_those_that_work() -> None:
    work = workload(6)
    assert work.use is not None
    work = replace(work, use=replace(work.use, accesses=np.array([1e7, 1e7, 1e5, 1e7, 1e7, 1e5])))
    threads = plan_of(work, "2x2", method="compact").threads
    assert sorted(thread.cpus for i, thread in enumerate(threads) if i not in (2, 5)) == [
        (0,),
        (1,),
        (2,),
        (3,),
    ]
    assert all(len(threads[light].cpus) == 2 for light in (2, 5))


def test_polling_threads_do_not_share_cpus_for_a_little() -> None:
    """They make few accesses and are seldom seen to run."""

    def most_on_a_node(lines: float) -> int:
        work = workload(6, lines={(one, other): lines for one in range(6) for other in range(one)})
        assert work.use is not None
        together = np.array([0.7] * 4 + [0.1] * 2) * (1 - np.eye(6))
        use = replace(work.use, accesses=np.array([1e7] * 4 + [1e6] * 2), together=together)
        options = PlanOptions(objective="time")
        task, _ = plan_task(replace(work, use=use), Machine.load("2x4"), options)
        return int(np.bincount(choose(TimedTask(task)).tried[0].places).max())

    assert most_on_a_node(1e3) <= 4
    assert most_on_a_node(1e7) == 6


@pytest.mark.parametrize(("runs", "most"), [(0.05, 6), (1.0, 4)])
def test_what_was_seen_of_polling_threads_counts(runs: float, most: int) -> None:
    """They make few accesses, and exchange lines with all others, whether they run all the time or hardly."""
    work = workload(6, lines={(one, other): 6e3 for one in range(6) for other in range(one)})
    assert work.use is not None
    rows = np.array([[1.0] * 4 + [0.0] * 2, [1.0] * 6])
    active = Activity(np.array([1 - runs, runs]), rows, looked=True)
    together = np.array([1.0] * 4 + [runs] * 2) * (1 - np.eye(6))
    use = replace(work.use, accesses=np.array([1e7] * 4 + [1e6] * 2), together=together, activity=active)
    task, _ = plan_task(replace(work, use=use), Machine.load("2x4"), PlanOptions(objective="time"))
    assert int(np.bincount(choose(TimedTask(task)).tried[0].places).max()) == most


def test_a_pool_is_tried_on_somewhat_fewer_cpus_than_it_could_use_if_that_was_seen() -> None:
    """Nine threads that exchange lines all the time, on eight cpus."""
    lines = {(one, other): 1e6 for one in range(9) for other in range(one)}
    work = workload(9, lines=lines)
    assert work.use is not None
    tried = {}
    for looked in (True, False):
        active = Activity(np.ones(1), np.ones((1, 9)), looked=looked)
        task, _ = plan_task(
            replace(work, use=replace(work.use, activity=active)), Machine.load("4x4"), PlanOptions()
        )
        tried[looked] = {one.name.partition(",")[0] for one in choose(TimedTask(task)).tried}
    assert "2 nodes in order" in tried[True] and "2 nodes in order" not in tried[False]
    assert "1 nodes in order" not in tried[True]


def test_a_machine_with_one_node_gives_each_thread_a_cpu() -> None:
    assert [thread.cpus for thread in plan_of(workload(), "1x4").threads] == [(0,), (1,), (2,), (3,)]


def test_a_machine_with_many_nodes_is_tried_on_some_numbers_of_them() -> None:
    """Of a thousand nodes to try each number would take an hour."""

    def numbers(threads: int, machine: str) -> set[int]:
        lines = {(0, number): 1e6 for number in range(1, threads)}
        task, _ = plan_task(workload(threads, lines, together=0.01), Machine.load(machine), PlanOptions())
        names = [one.name.partition(",")[0] for one in choose(TimedTask(task)).tried]
        return {int(name.split()[0]) for name in names if name.endswith("nodes in order")}

    # On one they wait, four are `compact`, and more than threads help nobody.
    assert numbers(4, "8x1") == {2, 3}
    assert len(numbers(48, "96x1")) in range(SIZES // 2, SIZES)


def test_idle_threads_are_where_those_are_that_worked_beside_them() -> None:
    """A queue that is short gives all work to one of five workers, and in the next run to another."""
    work = workload(7, lines={(0, 1): 1e4, (0, 6): 1e2})
    assert work.use is not None
    works = np.array([1, 1, 0, 0, 0, 0, 1])
    use = replace(work.use, accesses=1e3 + 1e7 * works, together=work.use.together * works)
    names = ["app", *["worker"] * 5, "log"]
    plan = plan_of(replace(work, use=use, names=names), "4x2")
    main, worker, *idle, log = plan.threads
    assert {thread.node for thread in idle} == {worker.node} == {main.node} != {log.node}
    assert {len(thread.cpus) for thread in idle} == {2}
    pinned = plan_of(replace(work, use=use, names=names), "4x2", pins={"0.3": "3"})
    assert pinned.threads[3].node == 3 and pinned.threads[2].node == pinned.threads[1].node


def test_a_crowd_of_idle_threads_is_wherever_no_other_thread_is() -> None:
    """Such as those that a library makes in each rank and does not use: they all start at a time."""

    def planned(idle: int) -> tuple[list[tuple[int, ...]], list[object]]:
        work = workload(4 + idle, lines={(one, other): 1e4 for one in range(4) for other in range(one)})
        assert work.use is not None
        runs = np.array([1.0] * 4 + [0.001] * idle)
        use = replace(work.use, accesses=1e7 * runs, together=runs * (1 - np.eye(4 + idle)))
        made = [("p0", f"0.1.{number}") for number in range(idle)]
        work = replace(work, use=use, threads=[*work.threads[:4], *made])
        threads = plan_of(work, "4x2").threads
        return [thread.cpus for thread in threads], [thread.pool for thread in threads]

    cpus, pools = planned(8)
    assert pools == [UNSET] * 4 + [1] * 8
    busy = {cpu for some in cpus[:4] for cpu in some}
    assert len(busy) == 4 and set(cpus[4:]) == {tuple(cpu for cpu in range(8) if cpu not in busy)}
    for few in (4, 3):  # for four there are cpus; more must be than half as many as there are
        assert planned(few)[1] == [UNSET] * (4 + few)


def test_a_thread_that_does_little_but_talk_is_with_its_partner() -> None:
    """Beside four that work by themselves, one that one of them asks all the time."""
    work = workload(6, lines={(4, 5): 1e6, (1, 2): 1e3})
    assert work.use is not None
    works = np.array([1, 1, 1, 1, 1, 0])
    use = replace(work.use, accesses=1e3 + 1e7 * works, together=work.use.together * works)
    plan = plan_of(replace(work, use=use), "6x1")
    assert plan.threads[5].node == plan.threads[4].node


def test_threads_that_wait_for_each_other_may_meet_on_a_cpu_though_others_are_idle() -> None:
    """Of sixteen threads eight run at a time, which three nodes have cpus for, if all went well."""
    lines = {(one, other): 1e6 for one in range(16) for other in range(one)}
    work = workload(16, lines, together=0.5)
    assert work.use is not None
    running = (np.random.default_rng(7).random((256, 16)) < 0.5).astype(np.float64)
    use = replace(work.use, activity=Activity(np.ones(256), running, looked=True))
    task, _ = plan_task(replace(work, use=use), Machine.load("4x4"), PlanOptions())
    first, *others = choose(TimedTask(task)).tried
    assert len(np.unique(first.places)) == 4
    assert any(one.cost.total_ns < first.cost.total_ns and len(np.unique(one.places)) == 3 for one in others)
