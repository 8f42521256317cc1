"""Threads that follow one another share a seat."""

from itertools import pairwise
from pathlib import Path

import numpy as np
from hypothesis import given, strategies as st
from msgspec.structs import replace

from numaplan.mapper import PlanOptions
from numaplan.mapper.planning.cost.timed_task import TimedTask
from numaplan.mapper.planning.planner import plan_task
from numaplan.mapper.workload.from_trace import read_trace
from numaplan.mapper.workload.lifetimes.lanes import by_lane, lanes_of
from numaplan.profiler import Machine
from tests.support.timed import workload
from tests.support.traces import write_trace

times = st.integers(0, 40)


def pool(count: int) -> list[tuple[str, str]]:
    return [("p0", "0"), *(("p0", f"0.{number}") for number in range(1, count))]


def test_pools_after_one_another_take_the_same_seats_in_order() -> None:
    lives = [(0, -1), *[(10, 20)] * 3, *[(20, 30)] * 3, *[(31, -1)] * 3]
    assert lanes_of(pool(10), lives).tolist() == [0, 1, 2, 3, 1, 2, 3, 1, 2, 3]


def test_who_comes_takes_the_seat_that_became_free() -> None:
    lives = [(0, -1), (1, 50), (1, 10), (1, 50), (12, 50), (13, 50)]
    assert lanes_of(pool(6), lives).tolist() == [0, 1, 2, 3, 2, 4]


def test_another_creator_or_process_has_seats_of_its_own() -> None:
    threads = [("p0", "0"), ("p0", "0.1"), ("p0", "0.1.1"), ("p1", "0"), ("p1", "0.1"), ("p0", "0.2")]
    lives = [(0, -1), (1, 10), (2, 9), (0, -1), (20, 30), (20, 30)]
    assert lanes_of(threads, lives).tolist() == [0, 1, 2, 3, 4, 1]


def test_pins_that_differ_keep_threads_apart() -> None:
    lives = [(0, -1), (1, 10), (11, 20), (21, 30)]
    assert lanes_of(pool(4), lives, {2: "node 1"}).tolist() == [0, 1, 2, 1]


@given(st.lists(st.tuples(times, times), min_size=1, max_size=30))
def test_threads_of_a_lane_never_meet(spans: list[tuple[int, int]]) -> None:
    lives = [(start, start + 1 + length) for start, length in spans]
    threads = [("p0", f"0.{number}") for number in range(len(lives))]
    lane = lanes_of(threads, lives)
    for number in range(int(lane.max()) + 1):
        own = sorted(lives[thread] for thread in np.flatnonzero(lane == number))
        assert all(end <= start for (_, end), (start, _) in pairwise(own))


@given(st.lists(st.tuples(times, times), min_size=1, max_size=30))
def test_lanes_are_no_more_than_threads_at_once_where_they_begin_as_they_are_made(
    spans: list[tuple[int, int]],
) -> None:
    lives = sorted((start, start + 1 + length) for start, length in spans)
    threads = [("p0", f"0.{number}") for number in range(len(lives))]
    at_once = max(sum(start <= at < end for start, end in lives) for at in range(90))
    assert int(lanes_of(threads, lives).max()) + 1 == at_once


def test_a_lane_lives_from_its_first_thread_s_start_to_its_last_one_s_end() -> None:
    lives = ((0, -1), (1, 10), (5, 9), (11, 20), (21, -1))
    work = replace(workload(5), threads=pool(5), lives=lives)
    assert by_lane(work, np.array([0, 1, 2, 1, 2])).lives == ((0, -1), (1, 20), (5, -1))


def test_a_pool_whose_threads_begin_in_any_order_is_followed_in_the_order_of_making() -> None:
    lives = [(0, -1), (3, 20), (1, 20), (2, 20), (22, 30), (23, 30), (21, 30)]
    assert lanes_of(pool(7), lives).tolist() == [0, 1, 2, 3, 1, 2, 3]


def test_who_begins_when_another_has_ended_does_not_run_beside_it(tmp_path: Path) -> None:
    """Two threads make the workers of each batch in turns: a stretch of time may have those of both."""
    time = np.arange(1000)
    second = time >= 495
    threads = [
        (0, "p0", "0", 1, 1, "", 0, -1),
        (1, "p0", "0.1.1", 2, 2, "", 0, 495),
        (2, "p0", "0.2.1", 3, 3, "", 495, -1),
    ]
    samples = {"time_ns": np.repeat(time, 2), "thread": np.stack([0 * time, 1 + second], 1).ravel()}
    trace = write_trace(tmp_path / "t.db", samples, threads, meta={"duration_ns": 1000})
    use = read_trace(trace, pages=False, by_phase=False).workload.use
    assert use is not None
    assert use.together[1, 2] == use.together[2, 1] == 0
    assert use.together[1, 0] > 0.9 and use.together[2, 0] > 0.9


def test_what_later_threads_of_a_lane_allocate_is_theirs() -> None:
    """Of a pool, three generations of two threads: each works on memory that it made itself."""
    work = workload(7, users=[[number] for number in range(1, 7)], keeps=False)
    assert work.pages is not None
    made = [replace(key, thread=f"0.{number}") for number, key in enumerate(work.pages.regions, 1)]
    pages = replace(work.pages, regions=made, toucher=work.pages.thread)
    lives = ((0, -1), (1, 9), (2, 9), (10, 19), (11, 19), (20, 29), (21, 29))
    keeps = (True, *[False] * 6)
    task = TimedTask(
        plan_task(
            replace(work, threads=pool(7), lives=lives, pages=pages, keeps=keeps),
            Machine.load("2x2"),
            PlanOptions(),
        )[0]
    )
    used = task.pages.accesses
    assert [own.tolist() for own in task.pools] == [[1, 2]]
    assert all(len(np.unique(used.thread[used.region == region])) == 1 for region in range(6))
