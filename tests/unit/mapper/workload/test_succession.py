"""Threads of several creators and processes that follow one another need no more cpus than live at once."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from numaplan.machine import Machine
from numaplan.mapper import PlanOptions, Workload, make_plan
from numaplan.mapper.planning.cost.planned import lanes_by_plans, seats_of
from numaplan.mapper.planning.cost.timed_task import TimedTask
from numaplan.mapper.planning.judge.judging import judge
from numaplan.mapper.planning.planner import plan_task
from numaplan.mapper.workload.activity import Activity
from numaplan.mapper.workload.lasted import lived_of, ran_of
from numaplan.mapper.workload.lifetimes.barriers import Barriers
from numaplan.mapper.workload.lifetimes.lanes import FOREVER, by_lane, lanes_of, most_at_once
from numaplan.mapper.workload.lifetimes.succession import loose_lanes, shared_lanes
from numaplan.mapper.workload.roles.pools import pools_of
from tests.support.timed import plan_of, workload

times = st.integers(0, 40)
OBJECTIVES = ["time", "balanced", "remote"]


def of_threads(
    threads: Sequence[tuple[str, str]],
    lives: Sequence[tuple[int, int]],
    lines: dict[tuple[int, int], float] | None = None,
    *,
    keeps: bool = True,
    names: Sequence[str] = (),
) -> Workload:
    users = [[number] for number in range(len(threads))]
    made = workload(len(threads), lines=lines, users=users, keeps=keeps)
    return replace(made, threads=list(threads), lives=tuple(lives), names=tuple(names))


def commands(lives: Sequence[tuple[int, int]], names: Sequence[str] = ()) -> Workload:
    """A shell and commands with these lives."""
    threads = [("p0", "0"), *((f"p0.{number}", "0") for number in range(1, len(lives) + 1))]
    return of_threads(threads, [(0, -1), *lives], names=("sh", *names) if names else ())


def one_by_one(count: int) -> Workload:
    return commands([(10 * at + 1, 10 * at + 9) for at in range(count)])


def four_at_once(count: int) -> Workload:
    """A shell that runs four commands at a time: as soon as one ends the next begins."""
    return commands([(10 * at + 1, 10 * at + 41) for at in range(count)])


def teams(rounds: int, workers: int, order: Sequence[int] = (), *, keeps: bool = True) -> Workload:
    """Main makes a thread after another, each of which makes a team; order: whose lines each worker of a
    round takes of the round before."""
    threads, lives, lines = [("p0", "0")], [(0, -1)], dict[tuple[int, int], float]()
    for number in range(1, rounds + 1):
        start = 100 * number
        threads.append(("p0", f"0.{number}"))
        lives.append((start, start + 90))
        for worker in range(workers):
            if number > 1 and order:
                lines[len(threads), len(threads) - 1 - workers - worker + order[worker]] = 1e6
            threads.append(("p0", f"0.{number}.{worker + 1}"))
            lives.append((start + 10 + worker, start + 80))
    return of_threads(threads, lives, lines, keeps=keeps, names=["x"] * len(threads))


def notes_of(work: Workload, machine: str, objective: str = "") -> list[str]:
    return [
        note
        for note in make_plan(work, Machine.load(machine), PlanOptions(objective=objective)).notes
        if " share " in note and " cpu" in note
    ]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_commands_one_after_the_other_share_a_cpu(objective: str) -> None:
    work = one_by_one(20)
    assert shared_lanes(work, 16).tolist() == [0, *[1] * 20]
    plan = plan_of(work, "2x8", objective=objective)
    assert not notes_of(work, "2x8", objective)
    assert len({(thread.node, thread.cpus, thread.lane) for thread in plan.threads[1:]}) == 1
    assert {len(thread.cpus) for thread in plan.threads} == {1}
    assert judge(plan, plan, work, Machine.load("2x8"), PlanOptions(objective=objective), "plan").regress == 0


def test_what_fits_on_the_cpus_is_left_as_it_is() -> None:
    assert len(set(shared_lanes(one_by_one(20), 21).tolist())) == 21
    idle = one_by_one(20)
    assert idle.use is not None
    accesses = np.append(np.full(16, 1e7), np.zeros(5))
    idle = replace(idle, use=replace(idle.use, accesses=accesses))  # that one would have to wait for
    assert len(set(shared_lanes(idle, 16).tolist())) == 21


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_later_teams_have_the_seats_of_those_whose_lines_they_take(objective: str) -> None:
    work = teams(3, 4, [2, 3, 0, 1])
    lane = shared_lanes(work, 8).tolist()
    assert lane == [0, 1, 2, 3, 4, 5, 1, 4, 5, 2, 3, 1, 2, 3, 4, 5]
    assert not loose_lanes(work, np.array(lane))
    plan = plan_of(work, "2x4", objective=objective)
    seat = [(thread.node, thread.cpus) for thread in plan.threads]
    assert all(seat[one] == seat[lane.index(of)] for one, of in enumerate(lane))
    assert not notes_of(work, "2x4", objective)
    assert notes_of(work, "2x2", objective) == ["6 threads share 4 cpus"]


def test_teams_that_have_nothing_in_common_follow_each_other_in_order() -> None:
    assert shared_lanes(teams(3, 4), 8).tolist() == [0, *[1, 2, 3, 4, 5] * 3]


def test_who_reads_what_another_touched_first_has_its_seat() -> None:
    work = teams(2, 2)
    pages = workload(7, users=[[6], [5]]).pages
    assert pages is not None
    work = replace(work, pages=replace(pages, toucher=np.where(pages.thread == 6, 2, 3)))
    assert shared_lanes(work, 4).tolist() == [0, 1, 2, 3, 1, 3, 2]


def test_where_chance_decides_who_follows_whom_they_have_the_node_in_common() -> None:
    """Of these the second may be the last to end in the next run, and who follows it comes sooner."""
    work = four_at_once(12)
    lane = shared_lanes(work, 8)
    assert lane.tolist() == [0, *[1, 2, 3, 4] * 3] and loose_lanes(work, lane) == [1, 2, 3, 4]
    for objective in ("time", "remote"):
        plan = plan_of(work, "2x4", objective=objective)
        assert {len(thread.cpus) for thread in plan.threads[1:]} == {4}
        options = PlanOptions(objective=objective)
        assert judge(plan, plan, work, Machine.load("2x4"), options, "plan").regress == 0
    assert not notes_of(work, "2x4", "remote")
    assert notes_of(work, "2x1", "remote") == ["5 threads share 2 cpus"]


def test_of_free_seats_that_of_the_same_program_comes_first() -> None:
    lives = [(1, 11), (2, 12), (3, 33), (13, 23), (14, 24)]
    work = commands(lives, ["cc", "ld", "as", "ld", "cc"])
    assert shared_lanes(work, 4).tolist() == [0, 1, 2, 3, 2, 1]


def test_who_has_others_to_be_near_takes_no_seat_of_one_with_partners_elsewhere() -> None:
    """A server has a helper that ends (1) and one that stays (2), then a client (3) begins with its own (4).

    The client does not follow the server's helper, as it exchanges lines with its own; it would if it were
    the server's, or exchanged none.
    """
    threads = [("p0", "0"), *((f"p0.{number}", "0") for number in range(1, 5))]
    lives = [(0, -1), (1, 9), (1, -1), (20, -1), (20, -1)]
    server = {(1, 2): 1e6, (2, 1): 1e6}
    for lines, follows in (
        ({**server, (3, 4): 1e6, (4, 3): 1e6}, False),
        ({**server, (3, 2): 1e6, (2, 3): 1e6}, True),
        (server, True),
    ):
        lane = shared_lanes(of_threads(threads, lives, lines), 2)
        assert (lane[1] in lane[3:].tolist()) == follows


def test_those_that_follow_for_sure_go_before_those_by_chance() -> None:
    """Six in turns that overlap, then one by one."""
    overlapping = [(10 * at, 10 * at + 15) for at in range(1, 7)]
    work = commands([*overlapping, *[(100 + 10 * at, 109 + 10 * at) for at in range(6)]])
    lane = shared_lanes(work, 8)
    assert lane.tolist() == [0, 1, 2, 3, 4, 5, 6, *[1] * 6] and not loose_lanes(work, lane)
    lane = shared_lanes(work, 6)
    assert lane.tolist() == [0, *[1, 2] * 3, *[1] * 6] and loose_lanes(work, lane) == [1, 2]


def test_pins_that_differ_keep_commands_apart() -> None:
    work = one_by_one(5)
    assert shared_lanes(work, 2, {3: "node 1"}).tolist() == [0, 1, 1, 2, 1, 1]
    plan = plan_of(work, "2x1", pins={"p0.3:0": "1", "p0.2:0": "0"})
    assert plan.threads[3].node == 1 and plan.threads[2].node == 0


def test_ranks_have_seats_of_their_own() -> None:
    """Each may have a clock of its own."""
    threads = [(f"r{rank}{child}", "0") for rank in range(2) for child in ("", ".1", ".2")]
    work = of_threads(threads, [(0, -1), (1, 9), (11, 19), (20, -1), (21, 29), (31, 39)])
    assert shared_lanes(work, 2).tolist() == [0, 1, 1, 2, 3, 3]
    assert most_at_once(work.threads, work.lives) == 4


def test_a_later_pool_is_the_one_before_it() -> None:
    work = teams(3, 3, keeps=False)
    work = replace(work, keeps=tuple("." not in path[2:] for _, path in work.threads))
    grown = replace(work, threads=[*work.threads, ("p0", "0.3.4")], lives=(*work.lives, (313, 380)))
    grown = replace(workload(14), threads=grown.threads, lives=grown.lives, keeps=(*work.keeps, False))
    lane = shared_lanes(grown, 4)
    assert lane.tolist() == [0, *[1, 2, 3, 4] * 3, 5]
    lanes = by_lane(grown, lane)
    pools = pools_of(lanes.threads, lanes.keeps, lives=lanes.lives, makers=lanes.makers)
    assert [pool.tolist() for pool in pools] == [[2, 3, 4, 5]]


def test_pools_of_other_names_or_beside_each_other_do_not_follow() -> None:
    threads = [("p0", path) for path in ("0", "0.1", "0.1.1", "0.1.2", "0.2", "0.2.1", "0.2.2")]
    lives = [(0, -1), (1, 20), (2, 19), (2, 19), (21, 40), (22, 39), (22, 39)]
    work = of_threads(threads, lives, names=["m", "x", "w-1", "w-2", "x", "v-1", "v-2"])
    work = replace(work, keeps=(True, True, False, False, True, False, False))
    assert shared_lanes(work, 2).tolist() == [0, 1, 2, 3, 1, 4, 5]
    beside = [(0, -1), (1, 40), (2, 19), (2, 38), (1, 40), (22, 39), (22, 39)]
    work = replace(work, lives=tuple(beside), names=("x",) * 7)
    assert shared_lanes(work, 2).tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_a_seat_s_processes_run_and_are_there_as_long_as_each_of_them() -> None:
    work = one_by_one(4)
    assert work.use is not None
    running = np.zeros((40, 5))
    running[:, 0] = np.arange(40) % 10 == 0
    for at in range(4):
        running[10 * at + 1 : 10 * at + 9, at + 1] = 1
    activity = Activity(np.ones(40), running, looked=True)
    use = replace(work.use, activity=activity, accesses=np.array([4e6, *[8e6] * 4]))
    work = replace(work, use=use, lives=((0, 40), *work.lives[1:]))
    lanes = by_lane(work, shared_lanes(work, 2))
    assert lanes.there is not None
    ran, lived = lanes.there
    assert ran.tolist() == pytest.approx(ran_of(work.threads, work.lives, activity)[:2])
    assert lived.tolist() == pytest.approx(lived_of(work.threads, work.lives)[:2])
    assert by_lane(work, lanes_of(work.threads, work.lives)).there is None


def test_commands_one_after_the_other_wait_for_nobody() -> None:
    work = replace(one_by_one(20), pages=workload(21, users=[[1], [2]]).pages)
    assert work.use is not None
    apart = np.zeros((21, 21))
    apart[0] = apart[:, 0] = 1.0
    np.fill_diagonal(apart, 0.0)
    work = replace(work, use=replace(work.use, together=apart))
    task, lane = plan_task(work, Machine.load("2x1"), PlanOptions())
    timed = TimedTask(task)
    assert lane.max() == 1 and timed.running == 2
    assert timed.placed("apart", np.array([0, 1])).cost.cpu_ns == 0


def test_lanes_of_plans_are_those_that_they_were_made_with() -> None:
    for work in (one_by_one(20), four_at_once(20), teams(4, 6, [1, 0, 3, 2, 5, 4])):
        plan = plan_of(work, "2x4", objective="remote")
        seats = seats_of(plan, work, "plan")
        lane = lanes_by_plans(work, PlanOptions(), Machine.load("2x4"), [seats])
        assert lane.tolist() == shared_lanes(work, 8).tolist()


@given(st.lists(st.tuples(times, times), min_size=1, max_size=20), st.integers(1, 4))
def test_commands_in_a_seat_never_meet(spans: list[tuple[int, int]], cpus: int) -> None:
    lives = sorted((start, start + 1 + length) for start, length in spans)
    work = commands(lives)
    lane = shared_lanes(work, cpus)
    ends = [(start, FOREVER if end < 0 else end) for start, end in work.lives]
    for number in range(int(lane.max()) + 1):
        own = sorted(ends[thread] for thread in np.flatnonzero(lane == number))
        assert all(end <= start for (_, end), (start, _) in pairwise(own))
    most = max(sum(start <= at < end for start, end in ends) for at in range(90))
    assert most_at_once(work.threads, work.lives) == most
    assert int(lane.max()) + 1 <= max(most, cpus)


@given(st.lists(st.tuples(times, times), min_size=2, max_size=8))
def test_a_barrier_is_a_moment_with_those_only_that_stay(spans: list[tuple[int, int]]) -> None:
    lives = [(start, start + 1 + length) for start, length in spans]
    barriers = Barriers(lives)
    for one in lives:
        for other in lives:
            moments = np.arange(one[1], other[0] + 0.25, 0.25)
            clear = [
                all(start <= one[0] and end >= other[1] for start, end in lives if start < moment < end)
                for moment in moments
            ]
            assert barriers.between(one, other) == any(clear)
