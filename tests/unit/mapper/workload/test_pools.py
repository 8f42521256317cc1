"""Threads of a pool count as their mean, and nothing is lost or made by that."""

from pathlib import Path

import numpy as np
import pytest

from numaplan.analyzer import PageCounts
from numaplan.machine import Machine
from numaplan.mapper import PlanOptions, RegionKey
from numaplan.mapper.planning.cost.timed_task import TimedTask
from numaplan.mapper.planning.planner import plan_task
from numaplan.mapper.workload.from_trace import workload_of_trace
from numaplan.mapper.workload.roles.exchanged import (
    allocators,
    exchanged_matrix,
    exchanged_pages,
    exchanged_pairs,
)
from numaplan.mapper.workload.roles.pools import pools_of
from tests.support.traces import write_trace

POOL = np.array([1, 2, 3])
PAGE, START = 4096, 1 << 24


def test_pools_are_threads_of_one_creator_without_roles() -> None:
    threads = [("p0", path) for path in ("0", "0.1", "0.2", "0.1.1", "0.1.2")]
    found = pools_of(threads, [True, False, True, False, False])
    assert [pool.tolist() for pool in found] == [[1, 3, 4]]  # with the one that made them
    assert pools_of(threads, [True, False, True, True, True]) == []


def test_threads_of_other_names_or_with_far_less_to_do_are_of_no_pool() -> None:
    threads = [("p0", path) for path in ("0", "0.1", "0.2", "0.3", "0.3.1", "0.3.1.1")]
    names = ["java", "GC#0", "GC#1", "worker-1", "worker-2", "worker-13"]
    keeps = [True, *[False] * 5]
    found = pools_of(threads, keeps, names)
    assert [pool.tolist() for pool in found] == [[1, 2], [3, 4, 5]]  # each worker made the next
    found = pools_of(threads, keeps, names, [9, 6, 8, 8, 7, 1])
    assert [pool.tolist() for pool in found] == [[1, 2], [3, 4]]


def test_workers_made_in_the_place_of_who_made_them_are_of_one_pool() -> None:
    """As GHC's: each makes the next before it blocks, and does nothing more."""
    threads = [("p0", path) for path in ("0", "0.1", "0.2", "0.3", "0.1.1", "0.2.1", "0.3.1", "0.3.1.1")]
    names = ["main", *["main:w"] * 7]
    keeps = [True, True, True, False, False, False, False, False]
    work = [400, 6, 5, 6, 24000, 25000, 70, 26000]
    assert [pool.tolist() for pool in pools_of(threads, keeps, names, work)] == [[4, 5, 7]]
    # With more than one of its kind it has a team; without numbers nobody knows who did nothing.
    team = [*threads, ("p0", "0.2.2")]
    found = pools_of(team, [*keeps, False], [*names, "main:w"], [*work, 20000])
    assert [pool.tolist() for pool in found] == [[4, 7], [5, 8]]
    assert [pool.tolist() for pool in pools_of(threads, keeps, names)] == [[3, 6, 7]]


def test_what_a_thread_allocated_itself_stays_its_own() -> None:
    key = RegionKey(kind="heap", name="r", bytes=4096, process="p0", thread="0.2")
    same = np.zeros(3, np.int64)
    pages = PageCounts([key], same, same, np.array([1, 2, 3]), np.array([4, 9, 2]), same)
    threads = [("p0", path) for path in ("0", "0.1", "0.2", "0.3")]
    made_by = allocators(pages, {key: number for number, key in enumerate(threads)})
    found = exchanged_pages(pages, [POOL], made_by)
    assert np.bincount(found.thread, found.accesses).tolist() == [0, 3, 9, 3]
    pairs = np.diag([0.0, 1.0, 2.0, 6.0])
    assert np.diag(exchanged_pairs(pairs, [POOL])).tolist() == [0, 3, 3, 3]


def test_what_one_sets_up_for_its_pool_it_sets_up_in_every_run() -> None:
    pool = np.arange(4)
    pairs = np.array([[5.0, 1, 0, 2], [9, 3, 0, 0], [3, 0, 3, 1], [6, 2, 1, 3]])
    found = exchanged_pairs(pairs, [pool], tied=[0])
    assert found[:, 0].tolist() == [5, 6, 6, 6]  # who uses it may be exchanged, who touched it first not
    assert np.diag(found)[1:].tolist() == [3, 3, 3]
    assert found[:, 1:].sum() == pytest.approx(pairs[:, 1:].sum())
    assert np.ptp(found[1:, 1:][~np.eye(3, dtype=bool)]) == pytest.approx(0)
    assert exchanged_pairs(pairs, [pool])[:, 0].tolist() != found[:, 0].tolist()


def test_pages_of_a_large_region_that_a_pool_uses_stand_for_each_other() -> None:
    page = np.arange(4096)
    key = RegionKey(kind="heap", name="r", bytes=4096 * 4096)
    pages = PageCounts([key], 0 * page, page, 1 + page % 3, page + 1, 0 * page)
    found = exchanged_pages(pages, [POOL])
    assert len(found) == 256 * len(POOL) and found.accesses.sum() == pytest.approx((page + 1).sum())


def test_between_threads_of_a_pool_all_is_alike_and_as_much_as_it_was() -> None:
    matrix = np.random.default_rng(1).random((4, 4))
    np.fill_diagonal(matrix, 0.0)
    found = exchanged_matrix(matrix, [POOL])
    assert found.sum() == pytest.approx(matrix.sum())
    assert len(set(np.round(found[1:, 1:][~np.eye(3, dtype=bool)], 12))) == 1
    assert len(set(np.round(found[0, 1:], 12))) == 1


def test_accesses_stay_as_many_and_what_was_before_stays_with_its_thread() -> None:
    columns = np.array([(0, 0, 0), (0, 0, 1), (0, 1, 2), (0, 2, 3)]).T
    apart = np.random.default_rng(2).random((4, 4))
    pages = PageCounts(
        [RegionKey(kind="heap", name="r", bytes=3 * 4096)],
        *columns,
        np.array([5, 6, 9, 3]),
        np.array([1, 2, 3, 0]),
        toucher=np.zeros(4, np.int64),
        before=np.array([0, 4, 0, 0]),
        elsewhere=apart,
    )
    found = exchanged_pages(pages, [POOL])
    assert found.accesses.sum() == 23 and found.writes.sum() == pytest.approx(6)
    assert np.bincount(found.thread, found.accesses).tolist() == pytest.approx([5, 6, 6, 6])
    assert found.before is not None and found.elsewhere is not None
    assert np.bincount(found.thread, found.before).tolist() == [0, 4, 0, 0]
    assert found.elsewhere.sum() == pytest.approx(apart.sum())
    assert np.trace(found.elsewhere) == pytest.approx(np.trace(apart))


@pytest.mark.parametrize("runtime", ["", "go"])
def test_all_threads_are_one_pool_where_none_can_be_told_from_another(runtime: str, tmp_path: Path) -> None:
    """Go's runtime makes them as it needs them: however different they were, the next run has others."""
    number = np.arange(4000)
    thread = np.minimum(number % 8, 2)  # the last does six times as much
    samples = {"time_ns": number, "thread": thread, "addr": START + thread * PAGE, "region": 0}
    threads = [(i, "p0", f"0.{i}" if i else "0", i + 1, 1, "x", 0, -1) for i in range(3)]
    regions = [(0, "p0", "heap", "app+0x1", "", START, 3 * PAGE, 0, 1, 0, -1)]
    trace = write_trace(tmp_path / "t.db", samples, threads, regions, {"period": 1, "runtime": runtime})
    task, _ = plan_task(workload_of_trace(trace), Machine.load("2x2"), PlanOptions(objective="time"))
    assert [pool.tolist() for pool in TimedTask(task).pools] == ([[0, 1, 2]] if runtime else [])
