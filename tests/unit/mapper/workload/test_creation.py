"""In which order threads were made, and that `bound in order` goes by it."""

import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.mapper import PlanOptions, make_plan
from numaplan.mapper.planning.cost.timed_task import TimedTask
from numaplan.mapper.planning.cost.unplanned import in_order
from numaplan.mapper.planning.planner import plan_task
from numaplan.mapper.workload.lifetimes.creation import creation_ranks, ranks_of_lanes
from numaplan.mapper.workload.workload import Workload
from numaplan.profiler import Machine
from tests.support.timed import workload


def ranks(*made: tuple[str, str, int]) -> list[int]:
    """made: process, creation path and when each began to run."""
    threads = [(process, path) for process, path, _ in made]
    return creation_ranks(threads, [(start, -1) for *_, start in made]).tolist()


def test_threads_are_made_in_the_order_of_their_paths_where_no_times_are_known() -> None:
    assert creation_ranks([("p0", "0"), ("p0", "0.1"), ("p0", "0.1.1")], []).tolist() == [0, 1, 2]


def test_threads_of_several_creators_and_processes_take_turns() -> None:
    found = ranks(
        ("p0", "0", 0), ("p0", "0.1", 10), ("p0", "0.1.1", 40), ("p0", "0.2", 20), ("p0.1", "0", 30)
    )
    assert found == [0, 1, 4, 2, 3]


def test_a_thread_that_begins_late_was_made_before_the_next_of_its_creator() -> None:
    found = ranks(
        ("p0", "0", 0), ("p0", "0.1", 30), ("p0", "0.2", 10), ("p0", "0.1.1", 40), ("p0.1", "0", 20)
    )
    assert found == [0, 1, 2, 4, 3]


def test_the_tenth_thread_was_made_after_the_second() -> None:
    made = [("p0", "0", 0), *(("p0", f"0.{number}", 5) for number in (1, 10, 2, 3))]
    assert ranks(*made) == [0, 1, 4, 2, 3]


def test_threads_of_one_moment_are_in_the_order_of_the_list() -> None:
    made = [*(("p0", path, 0) for path in ("0", "0.1", "0.1.1", "0.2")), ("p1", "0", 0), ("p1", "0.1", 0)]
    assert ranks(*made) == [0, 1, 2, 3, 4, 5]


def test_a_lane_stands_where_its_busiest_thread_does() -> None:
    found = ranks_of_lanes(np.arange(5), np.array([9.0, 1.0, 5.0, 3.0, 2.0]), np.array([0, 1, 1, 2, 2]))
    assert found.tolist() == [0, 2, 3]


def test_who_binds_in_order_deals_cpus_to_threads_that_have_ended_too() -> None:
    """Two short threads come first: the four that work are on the third to the sixth cpu, of two nodes."""
    lives = [(0, -1), (1, 2), (1, 2), *[(3, -1)] * 4]
    work = workload(7, lines={(3, 4): 1e6})
    assert work.use is not None
    use = replace(work.use, accesses=np.array([1e5, 1e5, 1e5, 1e7, 1e7, 1e7, 1e7]))
    task, lane = plan_task(replace(work, lives=lives, use=use), Machine.load("2x4"), PlanOptions())
    placed = in_order(TimedTask(task))
    assert lane.tolist() == [0, 1, 2, 1, 2, 3, 4]
    assert [placed.cpus[at] for at in lane[3:]] == [(3,), (4,), (5,), (6,)]


@pytest.mark.parametrize("keeps", [True, False])
def test_each_of_the_threads_that_follow_one_another_has_its_own_cpu_when_bound_in_order(keeps: bool) -> None:
    """Of two pairs that live one after the other the second is on two nodes, with its lines between them."""
    lives, machine = [(0, -1), (1, 2), (1, 2), (3, -1), (3, -1)], Machine.load("2x4")
    work = workload(5, lines={(3, 4): 1e6, (1, 2): 1e6})
    work = replace(work, lives=lives, keeps=(True, *[keeps] * 4))
    assert plan_task(work, machine, PlanOptions())[1].tolist() == [0, 1, 2, 1, 2]

    def lines(work: Workload) -> float:
        parts = make_plan(work, machine, PlanOptions()).plan.predicted.candidate_parts
        return parts["bound in order"]["lines_ns"]

    assert work.use is not None
    near = replace(work, use=work.use.with_lines(np.where(np.arange(5) < 3, work.use.lines, 0.0)))
    assert lines(work) > 2 * lines(near) > 0
    pinned = make_plan(work, machine, PlanOptions(pins={"0.3": "0"}))
    assert pinned.plan.predicted.costs["bound in order"] > 0
