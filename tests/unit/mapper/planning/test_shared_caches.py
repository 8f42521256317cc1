"""What threads miss of the caches that a placement gives them."""

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.analyzer import PageCounts
from numaplan.mapper import Plan, PlanOptions, RegionKey, make_plan
from numaplan.mapper.planning.cost import shared_caches
from numaplan.mapper.planning.cost.shared_caches import SharedCaches
from numaplan.mapper.planning.cost.timed_task import TimedTask
from numaplan.mapper.planning.planner import plan_task
from numaplan.mapper.workload.cache_use import CacheUse
from numaplan.mapper.workload.from_trace import workload_of_trace
from numaplan.profiler import Machine
from tests.support.traces import write_trace

from .test_time import workload

PAGES = 64
SIZES = (1 << 19, 1 << 20, 1 << 21, 1 << 22)
MISSED = (800.0, 600.0, 100.0, 10.0)


def pages(users: list[list[int]], count: int = PAGES) -> PageCounts:
    """Of each region, the threads that use all of its pages."""
    rows = np.array(
        [
            (region, page, thread)
            for region, own in enumerate(users)
            for page in range(count)
            for thread in sorted(own)
        ],
        np.int64,
    )
    keys = [RegionKey(kind="heap", name=f"r{number}", bytes=count * 4096) for number in range(len(users))]
    return PageCounts(keys, *rows.T, np.full(len(rows), 100), np.zeros(len(rows)))


def caches(domain: list[int], own: int = 1 << 20) -> CacheUse:
    return CacheUse(SIZES, np.array([MISSED] * len(domain)), own, np.array(domain))


def misses(users: list[list[int]], domain: list[int], places: list[int], own: int = 1 << 20) -> list[float]:
    found: list[float] = SharedCaches(caches(domain, own), pages(users), []).misses(np.array(places)).tolist()
    return found


def test_threads_with_memory_of_their_own_have_twice_the_room_apart() -> None:
    users = [[0], [1], [2], [3]]
    assert misses(users, [0, 0, 1, 1], [0, 0, 1, 1]) == [1.0] * 4
    assert misses(users, [0, 0, 1, 1], [0, 1, 2, 3]) == pytest.approx([1 / 6] * 4)
    assert misses(users, [0, 0, 1, 1], [0, 0, 0, 0]) == pytest.approx([8 / 6] * 4)
    assert misses(users, [0, 0, 0, 0], [0, 1, 2, 3]) == pytest.approx([1 / 60] * 4)


def test_what_threads_use_together_takes_the_same_room_everywhere() -> None:
    users = [[0, 1, 2, 3]]
    for places in ([0, 1, 2, 3], [0, 0, 0, 0], [1, 1, 0, 0]):
        assert misses(users, [0, 0, 1, 1], places) == [1.0] * 4


def test_memory_that_is_reserved_and_not_used_takes_no_room() -> None:
    counts = pages([[0], [1]])
    large = replace(counts.regions[0], bytes=1 << 33)
    for regions in (counts.regions, [large, counts.regions[1]]):
        shared = SharedCaches(caches([0, 1]), replace(counts, regions=regions), [])
        assert shared.misses(np.array([0, 0])) == pytest.approx([8 / 6] * 2, rel=0.05)


def test_large_memory_of_a_pool_takes_as_much_room_as_that_of_other_threads() -> None:
    """Its pages are joined to larger ones, to be dealt to all of its threads."""

    def found(keeps: bool) -> list[float]:
        work = workload()
        assert work.use is not None
        use = replace(work.use, caches=caches([0, 0, 0, 0]))
        work = replace(work, pages=pages([[0], [1], [2, 3]], 2048), keeps=(True, True, keeps, keeps), use=use)
        task = TimedTask(plan_task(work, Machine.load("2x2"), PlanOptions())[0])
        assert len(task.pools) == (not keeps)
        answer: list[float] = task.caches.misses(np.array([0, 0, 1, 1])).tolist()
        return answer

    assert found(keeps=False) == pytest.approx(found(keeps=True))


def test_blocks_that_follow_one_another_take_the_room_of_one() -> None:
    counts = pages([[0], [1], [1], [1]])
    lives = np.array([[0, -1], [10, 20], [20, 30], [30, -1]])
    for known, room in ((lives, 1 / 2), (0 * lives - [0, 1], 3 / 4)):
        shared = SharedCaches(caches([0, 1]), replace(counts, lives=known), [])
        more = 1 - np.log2(room) * (800 - 600) / 600  # towards what a cache of half the size misses
        assert shared.misses(np.array([0, 0]))[1] == pytest.approx(more)


def test_misses_are_those_beyond_what_decides_what_reaches_memory() -> None:
    assert misses([[0], [1]], [0, 0], [0, 1], own=1 << 19) == pytest.approx([6 / 8] * 2)


def test_where_it_is_not_known_nothing_changes() -> None:
    assert misses([[0], [1]], [0, -1], [0, 1]) == [1.0, 1.0]
    assert SharedCaches(None, pages([[0], [1]]), []).misses(np.array([0, 1])).tolist() == [1.0, 1.0]
    lanes = caches([0, 0, 1]).by_lane(np.array([1.0, 2.0, 5.0]), np.array([0, 1, 0]), 2)
    assert lanes.domain.tolist() == [1, 0] and lanes.missed[0].tolist() == [2 * count for count in MISSED]


def test_of_very_many_regions_the_busiest_count(monkeypatch: pytest.MonkeyPatch) -> None:
    users = [[0], [1], [2], [3]]
    monkeypatch.setattr(shared_caches, "MOST_CELLS", 4 * 4)
    assert misses(users, [0, 0, 1, 1], [0, 1, 2, 3]) == pytest.approx([1 / 6] * 4)
    monkeypatch.setattr(shared_caches, "MOST_CELLS", 2 * 4)
    assert misses(users, [0, 0, 1, 1], [0, 1, 2, 3])[:2] == pytest.approx([1 / 6] * 2)


def test_threads_that_need_the_room_are_spread_over_caches() -> None:
    """They take a few lines from each other, for which one node would be best."""
    few = {(one, other): 1e2 for one in range(4) for other in range(one)}

    def nodes_used(missed: tuple[float, ...]) -> int:
        work = workload(lines=few, users=[[0], [1], [2], [3]])
        assert work.use is not None
        own = CacheUse(SIZES, np.array([missed] * 4) * 1e4, 1 << 20, np.zeros(4, np.int64))
        work = replace(work, use=replace(work.use, caches=own))
        plan: Plan = make_plan(work, Machine.load("4x4"), PlanOptions()).plan
        return len({thread.node for thread in plan.threads})

    assert nodes_used(MISSED) == 4
    assert nodes_used((1.0, 1.0, 1.0, 1.0)) == 1


@pytest.mark.parametrize(("backend", "caches_of"), [("emulate", [0, 0, 1]), ("lab", [0, 0, 0])])
def test_emulated_processes_had_caches_of_their_own(
    tmp_path: Path, backend: str, caches_of: list[int]
) -> None:
    """Two threads of one and one of another, all on node 0."""
    samples = {"time_ns": np.arange(6), "thread": np.arange(6) % 3, "cpu": np.arange(6) % 2, "node": 0}
    threads = [(number, f"p{number // 2}", "0", number, number, "x", 0, -1) for number in range(3)]
    meta = {"backend": backend, "llc_sizes": "65536:131072", "period": 1}
    use = workload_of_trace(write_trace(tmp_path / "t.db", samples, threads, meta=meta)).use
    assert use is not None and use.caches is not None and use.caches.domain.tolist() == caches_of
