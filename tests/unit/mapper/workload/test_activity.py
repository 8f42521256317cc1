"""When threads run, stretch by stretch: what is joined, and how long they wait for cpus by that."""

import numpy as np
import pytest
from numpy.typing import NDArray

from numaplan.machine import Machine
from numaplan.mapper.planning.cost.cpu_sets import MOST_PAIRED, CpuSets
from numaplan.mapper.planning.cost.waiting import waiting_in_stretches
from numaplan.mapper.workload.activity import STRETCHES, Activity, joined
from numaplan.mapper.workload.use import ThreadUse

Floats = NDArray[np.float64]


def use(running: list[list[float]], *, known: bool = True) -> ThreadUse:
    ran = np.array(running)
    count = ran.shape[1]
    together = (ran.T @ ran) / np.maximum(ran.sum(axis=0), 1e-300)[:, None] * (1 - np.eye(count))
    activity = Activity(np.ones(len(ran)), ran) if known else None
    return ThreadUse(np.full(count, 1e7), np.zeros((count, count)), together, activity=activity)


def waits(running: list[list[float]], cpus: list[tuple[int, ...]], **more: bool) -> list[float]:
    found: list[float] = CpuSets(Machine.load("1x4"), use(running, **more), [], {}).waits(cpus).tolist()
    return found


def test_three_of_which_any_two_run_do_not_wait_for_two_cpus() -> None:
    """What pairs do does not tell: each runs with each of the others half of its time."""
    two_of_three = [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]
    assert waits(two_of_three, [(0, 1)] * 3) == [0.0, 0.0, 0.0]
    assert min(waits(two_of_three, [(0, 1)] * 3, known=False)) > 0.1


def test_who_runs_at_once_waits_although_most_of_the_time_nobody_runs() -> None:
    batch = [[1.0] * 4, [0.0] * 4, [0.0] * 4]
    assert waits(batch, [(0, 1)] * 4) == [1.0] * 4  # two of them for two cpus
    assert waits(batch, [(0,), (0,), (1, 2), (1, 2)]) == [1.0, 1.0, 0.0, 0.0]


def test_of_sets_that_overlap_the_kernel_finds_each_thread_an_idle_cpu() -> None:
    batch = [[1.0] * 5, [0.0] * 5]
    assert waits(batch, [(0, 1), (0, 1), (1, 2), (3,), (3,)]) == [0.0, 0.0, 0.0, 1.0, 1.0]
    # Four threads have the first three cpus, and three of these the first two.
    assert waits(batch, [(0, 1), (0, 1), (0, 1), (1, 2), (3,)]) == pytest.approx([0.5, 0.5, 0.5, 1 / 3, 0])
    # One cpu of its own for one of those who may run anywhere: the others are elsewhere.
    assert waits(batch, [(0,), *[(0, 1, 2, 3)] * 4]) == pytest.approx([0.25] * 5)
    assert waits([[1.0] * 4], [(0,), *[(0, 1, 2, 3)] * 3]) == [0.0] * 4


def test_the_fullest_area_around_a_thread_may_be_another_at_each_time() -> None:
    """First those on the first two cpus run at once, then all that may run on the first three."""
    cpus = [(0, 1), (0, 1), (0, 1), (1, 2), (1, 2), (1, 2)]
    running = [[1.0, 1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 1.0, 1.0], [1.0] * 6]
    assert waits(running, cpus) == pytest.approx([(0.5 + 1.0) / 2] * 6)


@pytest.mark.parametrize("count", [MOST_PAIRED - 1, MOST_PAIRED + 1])
def test_sets_that_hang_together_share_their_cpus_however_many_they_are(count: int) -> None:
    """Each beside the next; all threads run at once, twice as many as there are cpus in all."""
    chain = [(at, at + 1) for at in range(count)] * 2
    found = waits([[1.0] * (2 * count)], chain)
    assert found == pytest.approx([(count - 1) / (count + 1)] * 2 * count)


def test_threads_of_a_pool_wait_as_long_as_all_of_it_in_the_mean() -> None:
    """Which of them does the work is chance."""
    running = [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    pools = CpuSets(Machine.load("1x4"), use(running), [np.array([0, 1])], {})
    assert pools.waits([(0,), (0,), (1,)]).tolist() == [0.5, 0.5, 0.0]  # two of four stretches of work
    assert pools.waits([(1,), (2,), (3,)]).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("looked", [False, True])
def test_stretches_that_are_alike_are_merged_and_waits_stay(looked: bool) -> None:
    running = np.random.default_rng(3).integers(0, 2, (200, 5)) * (1.0 if looked else 0.5)
    whole = Activity(np.arange(1.0, 201.0), running, looked)
    merged = whole.merged()
    assert len(merged.lasts) <= 32 and merged.lasts.sum() == whole.lasts.sum()
    assert merged.ran == pytest.approx(whole.ran)
    everyone = np.arange(5)
    found = [waiting_in_stretches(one.of(everyone), 2) for one in (whole, merged)]
    waits = [one.mean_over(each, everyone) for one, each in zip((whole, merged), found, strict=True)]
    assert waits[0] == pytest.approx(waits[1]) and waits[0].min() > 0
    assert Activity(np.ones(2), np.zeros((2, 0)), looked).merged().running.shape == (2, 0)


def test_a_lane_runs_while_any_of_its_threads_does() -> None:
    activity = Activity(np.ones(3), np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 1.0], [0.6, 0.6, 0.0]]))
    found = activity.by_lane(np.array([0, 0, 1]), 2)
    assert found.running.tolist() == [[1.0, 0.5], [1.0, 1.0], [1.0, 0.0]]
    assert found.ran.tolist() == [3.0, 1.5]


def test_ranks_are_joined_side_by_side_and_runs_one_after_another() -> None:
    rank = Activity(np.array([1.0, 3.0]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    other = Activity(np.array([50.0]), np.array([[1.0]]))
    found = joined([(np.array([0, 1]), rank), (np.array([2]), other)], 3)
    assert found is not None and found.running.shape == (STRETCHES, 3)
    assert found.ran.tolist() == [STRETCHES / 4, STRETCHES * 3 / 4, STRETCHES]
    assert found.running[0].tolist() == [1, 0, 1] and found.running[-1].tolist() == [0, 1, 1]
    again = joined([(np.array([0, 1]), rank), (np.array([1, 0]), rank)], 2)
    assert again is not None and again.running.shape == (2 * STRETCHES, 2)
    assert again.ran.tolist() == [STRETCHES, STRETCHES]
    assert joined([(np.array([0, 1]), rank), (np.array([2]), None)], 3) is None
    assert joined([], 0) is None


def test_who_runs_at_once_waits_as_long_where_runs_are_joined() -> None:
    batch = np.repeat(np.random.default_rng(5).random(4096) < 0.25, 8).reshape(-1, 8).astype(np.float64)
    run, everyone = Activity(np.ones(4096), batch, looked=True), np.arange(8)
    found = joined([(everyone, run), (everyone, run)], 8)
    assert found is not None and found.looked
    assert found.mean_over(waiting_in_stretches(found.of(everyone), 4), everyone) == pytest.approx(
        np.full(8, 4)
    )
