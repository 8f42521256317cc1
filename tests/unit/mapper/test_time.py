"""The objective `time`: what is chosen where lines, memory, cpus and pools ask for it."""

import numpy as np
import pytest
from msgspec import UNSET
from msgspec.structs import replace

from numaplan.analyzer import PageCounts
from numaplan.machine import OVERLAP
from numaplan.mapper import Plan, PlanOptions, RegionKey, Workload, make_plan
from numaplan.mapper.memory.page_moves import MOVED
from numaplan.mapper.plan_file.export import export_plan
from numaplan.mapper.plan_file.summary import summary
from numaplan.mapper.planning.candidates import choose
from numaplan.mapper.planning.counted_pages import CountedPages
from numaplan.mapper.planning.planner import plan_task
from numaplan.mapper.planning.timed_task import TimedTask
from numaplan.mapper.workload.use import ThreadUse
from numaplan.profiler import Machine

PAGE, PAGES = 4096, 40
BY_ROW = ("region", "page", "thread", "accesses", "writes", "before", "missed", "missed_before")
PAIRS = {(0, 3): 1e6, (1, 2): 1e6}


def workload(
    threads: int = 4,
    lines: dict[tuple[int, int], float] | None = None,
    users: list[list[int]] | None = None,
    *,
    keeps: bool = True,
    together: float = 1.0,
    missed: bool = True,
) -> Workload:
    """users: of each region, the threads that use its pages in turns; main touches all of them first."""
    comm = np.zeros((threads, threads))
    for (one, other), count in (lines or {}).items():
        comm[one, other] = comm[other, one] = count
    rows = np.array(
        [
            (region, page, thread)
            for region, own in enumerate(users or [])
            for page in range(PAGES)
            for thread in ([own[page % len(own)]] if keeps else sorted(own))
        ],
        np.int64,
    ).reshape(-1, 3)
    counts = np.full(len(rows), 500)
    pages = PageCounts(
        [RegionKey(kind="heap", name=f"r{i}", bytes=PAGES * PAGE) for i in range(len(users or []))],
        *rows.T,
        counts,
        counts // 2,
        toucher=np.zeros(len(rows), np.int64),
        before=np.where(np.append(True, np.diff(rows[:, 1]) != 0)[: len(rows)], 1, 0),
        missed=counts // 5 if missed else 0 * counts,
        missed_before=0 * counts,
        elsewhere=np.zeros((threads, threads)),
        elsewhere_missed=np.zeros((threads, threads)),
    )
    apart = together * (1 - np.eye(threads))
    return Workload(
        [("p0", f"0.{i}" if i else "0") for i in range(threads)],
        comm,
        np.ones(threads),
        {},
        pages=pages,
        use=ThreadUse(np.full(threads, 1e7), comm / 2, apart, exact=True),
        keeps=(keeps,) * threads,
    )


def plan_of(work: Workload, machine: str = "2x2", **options: object) -> Plan:
    return make_plan(work, Machine.load(machine), PlanOptions(**options)).plan  # type: ignore[arg-type]


def plan_on(content: dict[str, object], work: Workload, **options: object) -> Plan:
    return make_plan(work, Machine.from_dict(content), PlanOptions(**options)).plan  # type: ignore[arg-type]


def nodes_of(plan: Plan) -> list[int]:
    return [thread.node for thread in plan.threads]


def test_threads_that_take_lines_from_each_other_sit_together() -> None:
    plan = plan_of(workload(lines=PAIRS))
    assert plan.objective == "time"
    nodes = nodes_of(plan)
    assert nodes[0] == nodes[3] != nodes[1] == nodes[2]
    assert plan.predicted.cost == pytest.approx(plan.predicted.cost_parts["lines_ns"], rel=0.01)
    assert plan.predicted.today is not None and plan.predicted.cost < plan.predicted.today.cost


def test_pages_go_to_who_misses_on_them() -> None:
    plan = plan_of(workload(lines=PAIRS, users=[[1], [3]]))
    home = {region.region.name: {run.node for run in region.runs} for region in plan.memory}
    nodes = nodes_of(plan)
    assert home == {"r0": {nodes[1]}, "r1": {nodes[3]}}
    assert plan.predicted.memory_share == 1.0 and plan.predicted.counted == "memory accesses"
    assert plan.predicted.local_share > 0.95


def test_what_stays_in_caches_has_a_home_by_its_accesses() -> None:
    plan = plan_of(workload(lines=PAIRS, users=[[1]], missed=False))
    assert {run.node for run in plan.memory[0].runs} == {nodes_of(plan)[1]}
    assert plan.predicted.local_share > 0.95


def test_a_few_misses_do_not_outweigh_all_that_is_used() -> None:
    """Counted exactly, a program that stays in its caches has some misses at its beginning and no more."""
    work = workload(lines=PAIRS, users=[[1], [3]], missed=False)
    assert work.pages is not None
    missed = np.where(np.arange(len(work.pages)) == PAGES, 1, 0)
    plan = plan_of(replace(work, pages=replace(work.pages, missed=missed, exact=True)))
    home = {region.region.name: {run.node for run in region.runs} for region in plan.memory}
    nodes = nodes_of(plan)
    assert home == {"r0": {nodes[1]}, "r1": {nodes[3]}}


def test_few_threads_that_share_take_few_nodes() -> None:
    everyone = {(one, other): 1e6 for one in range(4) for other in range(one)}
    assert len(set(nodes_of(plan_of(workload(lines=everyone), "4x4")))) == 1
    assert len(set(nodes_of(plan_of(workload(lines=everyone), "4x2")))) == 2


def test_threads_that_seldom_run_together_need_no_cpus_of_their_own() -> None:
    everyone = {(one, other): 1e6 for one in range(4) for other in range(one)}
    plan = plan_of(workload(lines=everyone, together=0.0), "4x2")
    assert len(set(nodes_of(plan))) == 1


def test_nodes_are_filled_by_the_threads_that_run_at_a_time() -> None:
    """Of twenty threads eight are busy, each with all of these: as few nodes as have cpus for them."""
    busy = range(5, 13)
    work = workload(20, lines={(one, other): 1e4 for one in busy for other in busy if other < one})
    assert work.use is not None
    runs = np.array([0.02] * 5 + [1.0] * 8 + [0.02] * 7)
    use = replace(work.use, accesses=1e7 * runs, together=runs * (1 - np.eye(20)))
    nodes = nodes_of(plan_of(replace(work, use=use), "4x4"))
    assert sorted(np.bincount([nodes[thread] for thread in busy], minlength=4).tolist()) == [0, 0, 4, 4]


def test_nothing_is_placed_where_nothing_is_gained() -> None:
    made = make_plan(workload(), Machine.load("2x2"), PlanOptions())
    assert made.plan.threads == () and made.plan.memory == ()
    assert "kernel" in made.plan.alone
    assert summary(made.plan)[0].startswith("leave it alone: ")
    assert Plan.from_json(made.plan.to_json()) == made.plan
    # Asked for by name, a method or a pin is followed.
    assert len(plan_of(workload(), method="compact").threads) == 4
    assert plan_of(workload(), pins={"0.1": "1"}).threads[1].node == 1


def test_a_machine_with_one_node_gives_each_thread_a_cpu() -> None:
    assert [thread.cpus for thread in plan_of(workload(), "1x4").threads] == [(0,), (1,), (2,), (3,)]


def test_threads_of_a_pool_have_cpus_in_common_and_the_mean_is_predicted() -> None:
    work = workload(lines=PAIRS, users=[[0, 1, 2, 3]], keeps=False)
    plan = plan_of(work, "4x2")
    assert {thread.pool for thread in plan.threads} == {1}
    cpus = {thread.cpus for thread in plan.threads}
    assert len(cpus) == 1 and len(next(iter(cpus))) == 4  # two nodes hold it
    assert any(line.startswith("  pool 1 of 4 threads") for line in summary(plan))
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.predicted.memory_share == pytest.approx(0.5, abs=0.02)
    alone = {thread.pool for thread in plan_of(workload(lines=PAIRS), "4x2").threads}
    assert alone == {UNSET}


def test_threads_of_a_pool_that_come_back_to_what_they_touched_first_stay_on_a_node() -> None:
    work = workload(lines=PAIRS, users=[[0, 1, 2, 3]], keeps=False)
    assert work.pages is not None
    rows = np.flatnonzero(work.pages.page % 4 == work.pages.thread)  # each page has one user, who touches it
    columns = {name: getattr(work.pages, name)[rows] for name in BY_ROW if name != "toucher"}
    pages = replace(work.pages, **columns, toucher=work.pages.thread[rows])
    work = replace(work, pages=pages)
    plan = plan_of(work, "4x2")
    assert {thread.pool for thread in plan.threads} == {1}
    assert sorted(thread.cpus for thread in plan.threads) == [(0, 1), (0, 1), (2, 3), (2, 3)]
    assert plan.memory == () and plan.predicted.memory_share == 1.0  # whoever they are, they come back


def test_a_pool_is_on_as_many_cpus_as_it_runs_threads() -> None:
    task, _ = plan_task(workload(keeps=False), Machine.load("2x4"), PlanOptions())
    cpus = TimedTask(task).cpus
    assert cpus.spread(np.array([0, 0, 0, 1])).tolist() == [0, 0, 1, 1]
    task, _ = plan_task(workload(keeps=False), Machine.load("4x2"), PlanOptions())
    cpus = TimedTask(task).cpus
    assert cpus.spread(np.array([1, 1, 1, 1])).tolist() == [1, 1, 1, 1]
    assert cpus.spread(np.array([1, 1, 1, 1]), wider=True).tolist() == [0, 0, 1, 1]


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


def test_a_pool_is_taken_to_be_in_all_its_caches_alike() -> None:
    content = {
        "schema": "numaplan/machine/1",
        "nodes": [{"id": 0, "cpus": list(range(4))}],
        "cores": [{"cpus": [cpu], "node": 0, "l3": cpu // 2} for cpu in range(4)],
    }
    plan = plan_on(content, workload(lines=PAIRS, users=[[0, 1, 2, 3]], keeps=False))
    assert {len(thread.cpus) for thread in plan.threads} == {4}
    assert plan.predicted.cache_share == pytest.approx(0.5)


def test_the_choice_is_the_cheapest_of_what_was_tried() -> None:
    task, _ = plan_task(
        workload(lines=PAIRS, users=[[0], [1, 2]]), Machine.load("4x2"), PlanOptions(objective="time")
    )
    found = choose(TimedTask(task))
    least = min(one.cost.total_ns for one in found.tried)
    assert found.chosen.cost.total_ns <= 1.005 * least
    assert {"compact", "compact, interleaved", "compact, first touch"} <= {one.name for one in found.tried}


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
        return max(np.bincount(nodes_of(plan_of(replace(work, use=use), "2x4"))).tolist())

    assert most_on_a_node(1e3) <= 4
    assert most_on_a_node(1e7) == 6


def test_who_sets_up_memory_alone_keeps_its_node_though_it_is_of_a_pool() -> None:
    lines = {(one, other): 1e6 for one in range(8) for other in range(one)}
    work = workload(8, lines, users=[list(range(8))], keeps=False)
    assert work.pages is not None and work.pages.before is not None
    begun = replace(work.pages, before=2000 * work.pages.before, missed_before=400 * work.pages.before)
    threads = plan_of(replace(work, pages=begun), "4x4").threads
    assert threads[0].pool is UNSET and len(threads[0].cpus) == 4
    assert {thread.pool for thread in threads[1:]} == {1}
    assert all(len(thread.cpus) == 8 for thread in threads[1:])


def test_a_trace_s_usual_objective_is_time_and_a_matrix_s_balance() -> None:
    work = workload(lines=PAIRS)
    assert plan_of(work).objective == "time"
    assert plan_of(replace(work, pages=None)).objective == "balanced"
    assert plan_of(work, objective="hop").predicted.cost == -1


def test_nothing_is_said_of_balance_where_nothing_is_balanced() -> None:
    work = replace(workload(lines=PAIRS), not_balanced=("20% of the load",))
    said = {
        objective: make_plan(work, Machine.load("2x2"), PlanOptions(objective=objective)).notes
        for objective in ("time", "balanced")
    }
    assert "20% of the load" in said["balanced"] and "20% of the load" not in said["time"]


def test_where_threads_were_seen_is_tried_too() -> None:
    work, machine = workload(lines=PAIRS), Machine.load("2x2")
    seen = replace(work, machine=machine, seen_on=(1, 0, 0, 1))
    plan = make_plan(seen, machine, PlanOptions()).plan
    assert {"as recorded", "as recorded, first touch"} <= set(plan.predicted.costs)
    assert plan.predicted.today is not None and plan.predicted.today.threads == "recorded"
    other = make_plan(seen, Machine.load("2x4"), PlanOptions()).plan  # another machine's nodes say nothing
    assert "as recorded" not in other.predicted.costs


def test_without_a_plan_threads_leave_what_they_touched_first() -> None:
    """Half of the time they are anywhere: away from it three times in eight."""
    work = workload(users=[[0], [1], [2], [3]])
    assert work.pages is not None
    own = replace(work, pages=replace(work.pages, toucher=work.pages.thread))
    predicted = plan_of(own, "4x1").predicted
    parts = {name: parts["moves_ns"] for name, parts in predicted.candidate_parts.items()}
    copied = 64 * (84 + 143) / OVERLAP
    assert parts["alone"] == pytest.approx(4 * PAGES * MOVED * 3 / 8 * copied)
    assert {name for name, moved in parts.items() if moved} == {"alone"}
    assert {"bound in order", "alone, interleaved"} <= set(parts)
    # Main touches all first: by hand the kernel moves that, too; under a plan it does not.
    parts = {name: one["moves_ns"] for name, one in plan_of(work, "4x1").predicted.candidate_parts.items()}
    assert {name for name, moved in parts.items() if moved} == {"alone", "bound in order"}
    assert parts["bound in order"] == pytest.approx(3 * PAGES * MOVED * copied)


def test_who_goes_from_node_to_node_leaves_what_was_its_own() -> None:
    pool = np.arange(4)
    work = workload(users=[list(range(4))], keeps=False)
    assert work.pages is not None
    apart = np.eye(4) * 1000
    pages = replace(work.pages, elsewhere=apart, elsewhere_missed=apart)  # small blocks of each
    found = CountedPages(pages, [pool], work.threads)
    assert found.staying == [False]
    rows = np.array([0, 0, 1, 1])
    near = found.near(rows)
    assert near[2, 2] == near[2, 3] == pytest.approx((1 / 3 * 3 + 1) / 4)
    assert CountedPages(pages, [], work.threads).near(rows)[2].tolist() == [0, 0, 1, 1]
