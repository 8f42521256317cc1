"""The objective `time`: what is chosen where lines and memory ask for it."""

import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.analyzer import UNSEEN_BETWEEN
from numaplan.machine import OVERLAP, Cost
from numaplan.mapper import Plan, PlanOptions, Workload, make_plan
from numaplan.mapper.memory.page_moves import MOVED, ROAMED, ROAMED_LINES
from numaplan.mapper.plan_file.summary import summary
from numaplan.mapper.planning.cost.timed_task import TimedTask
from numaplan.mapper.planning.cost.unplanned import alone
from numaplan.mapper.planning.planner import plan_task
from numaplan.mapper.planning.search.candidates import FEW, choose
from numaplan.mapper.planning.search.doubt import UNSEEN
from numaplan.profiler import Machine
from tests.support.timed import PAGES, PAIRS, nodes_of, plan_of, workload


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
    # Thread 3 is where thread 0 is, which touches all first.
    assert home == {"r0": {nodes_of(plan)[1]}}
    assert plan.predicted.local_share > 0.95


def test_nothing_is_placed_where_nothing_is_gained() -> None:
    made = make_plan(workload(), Machine.load("2x2"), PlanOptions())
    assert made.plan.threads == () and made.plan.memory == ()
    assert "kernel" in made.plan.alone
    assert summary(made.plan)[0].startswith("leave it alone: ")
    assert Plan.from_json(made.plan.to_json()) == made.plan
    # Asked for by name, a method or a pin is followed.
    assert len(plan_of(workload(), method="compact").threads) == 4
    assert plan_of(workload(), pins={"0.1": "1"}).threads[1].node == 1


def test_the_choice_is_the_cheapest_of_what_was_tried() -> None:
    task, _ = plan_task(
        workload(lines=PAIRS, users=[[0], [1, 2]]), Machine.load("4x2"), PlanOptions(objective="time")
    )
    found = choose(TimedTask(task))
    least = min(one.cost.total_ns for one in found.tried)
    assert found.chosen.cost.total_ns <= 1.005 * least
    assert {"compact", "compact, interleaved", "compact, first touch"} <= {one.name for one in found.tried}


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


def test_a_short_run_is_over_before_pages_move_and_one_of_a_larger_input_is_not() -> None:
    work = replace(workload(users=[[0], [1], [2], [3]]), lasted_s=1.0)
    assert work.pages is not None
    timed = TimedTask(plan_task(work, Machine.load("4x1"), PlanOptions())[0])
    assert alone(timed).cost.moves_ns == 0
    assert alone(timed.with_misses(work.pages, 8)).cost.moves_ns > 0


def test_without_a_plan_pages_come_after_threads_that_the_kernel_moves_about() -> None:
    """From one node to any other, also where each thread touched its own first."""
    work = workload(users=[[0], [1], [2], [3]])
    assert work.pages is not None
    own = replace(work, pages=replace(work.pages, toucher=work.pages.thread))
    predicted = plan_of(own, "4x1").predicted
    parts = {name: parts["moves_ns"] for name, parts in predicted.candidate_parts.items()}
    copied = 64 * (84 + 143) / OVERLAP
    assert parts["alone"] == pytest.approx(4 * PAGES * ROAMED * 3 / 4 * copied)
    lines = {name: parts["lines_ns"] for name, parts in predicted.candidate_parts.items()}
    # With each page a part of its lines comes out of caches, and these threads exchange no others.
    assert lines["alone"] == pytest.approx(4 * PAGES * ROAMED * 3 / 4 * 64 * ROAMED_LINES * 143)
    assert not any(waited for name, waited in lines.items() if name != "alone")
    assert {name for name, moved in parts.items() if moved} == {"alone"}
    assert {"bound in order", "alone, interleaved"} <= set(parts)
    # Main touches all first: by hand the kernel moves that, too; under a plan it does not.
    parts = {name: one["moves_ns"] for name, one in plan_of(work, "4x1").predicted.candidate_parts.items()}
    assert {name for name, moved in parts.items() if moved} == {"alone", "bound in order"}
    assert parts["bound in order"] == pytest.approx(3 * PAGES * MOVED * copied)


def test_little_is_not_gained_where_nothing_shows_what_processes_exchange() -> None:
    """Of a server under emulation: what a plan saves of memory it may lose by taking workers apart."""
    mains = replace(workload(users=[[0], [1], [2], [3]]), lasted_s=1.0)
    assert mains.pages is not None
    own = replace(mains, pages=replace(mains.pages, toucher=mains.pages.thread))

    def gain(work: Workload) -> float:
        found = choose(TimedTask(plan_task(work, Machine.load("2x2"), PlanOptions())[0]))
        return 1 - found.tried[0].cost.total_ns / found.alone.cost.total_ns

    assert 0 < gain(own) < UNSEEN < gain(mains)
    assert plan_of(own).threads and not plan_of(replace(own, notes=(UNSEEN_BETWEEN,))).threads
    assert plan_of(replace(mains, notes=(UNSEEN_BETWEEN,))).threads


def test_pages_are_left_to_first_touch_where_placing_them_saves_next_to_nothing() -> None:
    """To move them costs, and who uses which may be chance."""
    mains = workload(users=[[0], [1], [2], [3]])
    assert mains.pages is not None
    own = replace(mains, pages=replace(mains.pages, toucher=mains.pages.thread))
    assert len(plan_of(own).memory) == 4  # samples do not show who touches what first
    exact = [replace(work, pages=replace(work.pages, exact=True)) for work in (own, mains) if work.pages]
    left, placed = (plan_of(work) for work in exact)
    assert left.threads and not left.memory
    assert left.predicted.local_share == placed.predicted.local_share == 1.0
    assert any("stay where they are touched first" in line for line in summary(left))
    node = nodes_of(placed)
    assert {region.region.name for region in placed.memory} == {
        f"r{thread}" for thread in range(4) if node[thread] != node[0]
    }
    assert plan_of(own, objective="hop").memory
    assert len(plan_of(exact[0], place_all=True).memory) == 4
    # Roles that threads do not keep to are found by their memory.
    assert plan_of(replace(exact[0], identity={"stable": False})).memory


def test_where_few_regions_are_placed_they_are_as_before_and_the_others_are_left_by_sites() -> None:
    """Of what is left out nothing else moves in, and one rule is for all blocks of a place in the code."""
    work = workload(users=[[0], [1], [2], [3], [1], [2], [3]])
    assert work.pages is not None
    thread, region = work.pages.thread, work.pages.region
    toucher = np.where(region < 4, 0, thread)  # main sets up four regions, the others their users
    names = ["r0", "r1", "r2", "r3", "r4", "r5", "r2"]
    regions = [replace(key, name=name) for key, name in zip(work.pages.regions, names, strict=True)]
    pages = replace(work.pages, regions=regions, toucher=toucher, exact=True)
    task = TimedTask(plan_task(replace(work, pages=pages), Machine.load("4x1"), PlanOptions())[0])
    found = choose(task)
    few = found.chosen
    whole = next(one for one in found.tried if one.name == few.name.removesuffix(FEW))
    assert few.name.endswith(FEW) and few.pages is not None and whole.pages is not None
    assert set(whole.pages.tables) == set(range(7))
    assert all(whole.pages.tables[number] is table for number, table in few.pages.tables.items())
    assert set(few.pages.tables) - {0, 1, 2, 3, 6} == set() and {2, 6} <= set(few.pages.tables)
    assert {one.region.name for one in few.pages.memory} == {names[number] for number in few.pages.tables}
    assert few.pages.local_share == whole.pages.local_share == 1.0


def test_a_thread_that_runs_alone_stays_where_its_memory_is() -> None:
    def costs(together: float) -> Cost:
        work = workload(2, users=[[0], [0]], together=together)
        return alone(TimedTask(plan_task(work, Machine.load("2x4"), PlanOptions())[0])).cost

    still, half, whole = costs(0.0), costs(0.5), costs(1.0)
    assert still.memory_ns < half.memory_ns < whole.memory_ns
    assert still.moves_ns == 0 < half.moves_ns < whole.moves_ns


def test_of_lines_in_a_cache_that_two_threads_share_only_those_of_its_writer_cost() -> None:
    work = workload(lines=PAIRS)
    assert work.use is not None

    def waited(near: float, machine: str) -> dict[str, float]:
        assert work.use is not None
        kept = (1 - near) * work.use.lines
        found = plan_of(replace(work, use=replace(work.use, kept=kept)), machine).predicted
        return {name: parts["lines_ns"] for name, parts in found.candidate_parts.items()}

    whole, quarter = waited(1.0, "2x2"), waited(0.25, "2x2")
    assert quarter["best"] == pytest.approx(whole["best"] / 4)  # each pair on a node
    assert quarter["scatter"] == pytest.approx(whole["scatter"]) and whole["scatter"] > whole["best"]
    assert waited(0.25, "4x1")["compact"] == pytest.approx(waited(1.0, "4x1")["compact"])
