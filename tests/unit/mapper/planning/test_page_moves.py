"""How many pages AutoNUMA is expected to move, and where they are then."""

import math
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.analyzer import PageCounts, pages_by_pairs
from numaplan.mapper import RegionKey
from numaplan.mapper.memory.page_moves import (
    BEGINS_S,
    MOVED,
    OWN_LINES,
    ROAMED,
    ROAMED_LINES,
    SHARED,
    STILL,
    followed_traffic,
    moving_part,
    page_moves,
    roaming_moves,
    shared_by_processes,
)
from numaplan.mapper.planning.cost.counted_pages import CountedPages
from numaplan.mapper.workload.activity import Activity
from numaplan.mapper.workload.lasted import ACCESS_S, lasted_s, lived_of, ran_of
from numaplan.profiler import Trace
from tests.support.traces import write_trace

PAGE = 4096
APART, TOGETHER = np.eye(2), np.ones((2, 2))
ROWS = np.array([0, 1])


def stats(pages: int, samples: int, user: int, toucher: int = 0) -> PageCounts:
    """Samples that fall anywhere in a region of so many pages."""
    page, count = np.unique(np.random.default_rng(1).integers(0, pages, samples), return_counts=True)
    same = np.zeros(len(page), np.int64)
    key = RegionKey(kind="heap", name="r", bytes=pages * PAGE)
    return PageCounts([key], same, page, same + user, count, count, toucher=same + toucher)


def both(first: int, second: int) -> PageCounts:
    """Two threads access ten pages so many times each, all of which the first touched."""
    page, thread = np.repeat(np.arange(10), 2), np.tile([0, 1], 10)
    key = RegionKey(kind="heap", name="r", bytes=10 * PAGE)
    made = np.tile([first, second], 10)
    return PageCounts([key], 0 * page, page, thread, made, made, toucher=0 * page)


@pytest.mark.parametrize("samples", [500, 1000, 5000])
def test_pages_that_samples_do_not_show_move_too(samples: int) -> None:
    moved = page_moves(stats(1000, samples, 1), APART, ROWS, 2)
    assert moved.pages == pytest.approx(1000 * MOVED, rel=0.1)
    assert moved.lines == pytest.approx(moved.pages * 64 * OWN_LINES)


def test_what_is_used_where_it_is_stays() -> None:
    assert page_moves(stats(1000, 5000, 0), APART, ROWS, 2) == STILL
    assert page_moves(stats(1000, 5000, 1), TOGETHER, ROWS, 2) == STILL
    assert page_moves(stats(1000, 5000, 1, toucher=-1), APART, ROWS, 2) == STILL
    often = page_moves(stats(1000, 5000, 1), np.array([[1.0, 0.25], [0.25, 1.0]]), ROWS, 2)
    assert often.pages == pytest.approx(0.75 * page_moves(stats(1000, 5000, 1), APART, ROWS, 2).pages)


def test_pages_of_several_nodes_move_more_often_and_are_in_caches() -> None:
    """Of each thread's half of the accesses the other half is by the other node."""
    moved = page_moves(both(100, 100), APART, ROWS, 2)
    assert moved.pages == pytest.approx(10 * (MOVED + SHARED / 2) / 2)
    assert moved.lines == pytest.approx(moved.pages * 64 * (OWN_LINES + (1 - OWN_LINES) / 2))


@pytest.mark.parametrize(("first", "second"), [(100, 100), (30, 10), (0, 10)])
def test_memory_of_no_region_moves_as_other_memory_does(first: int, second: int) -> None:
    """Small blocks, say, or a heap that the program's own allocator divides."""
    known = both(first, second)
    assert known.toucher is not None
    used, shared = pages_by_pairs(known.page, known.thread, known.toucher, known.accesses, 2)
    none = np.zeros(0, np.int64)
    outside = PageCounts([], *[none] * 5, elsewhere_pages=used, elsewhere_shared=shared)
    moved, expected = (page_moves(one, APART, ROWS, 2) for one in (outside, known))
    assert moved.pages == pytest.approx(expected.pages) != 0
    assert moved.lines == pytest.approx(expected.lines)
    assert page_moves(outside, TOGETHER, ROWS, 2) == STILL


def test_a_page_comes_to_who_uses_it_as_likely_as_it_is_used_there() -> None:
    assert followed_traffic(stats(10, 500, 1), ROWS, 2).tolist() == [[0, 0], [0, 500]]
    shared = followed_traffic(both(30, 10), ROWS, 2)
    assert shared == pytest.approx(np.array([[300 * 0.75, 300 * 0.25], [100 * 0.75, 100 * 0.25]]))
    assert followed_traffic(both(30, 10), ROWS, 2, but=[0]).sum() == 0
    assert followed_traffic(both(30, 10), np.array([1, 1]), 2).tolist() == [[0, 300], [0, 100]]


def test_in_a_short_run_nothing_moves() -> None:
    lasted = np.array([0.1, BEGINS_S, 2 * BEGINS_S, math.inf])
    assert moving_part(lasted) == pytest.approx(np.array([0, 0, 0.5, 1]))


def test_pages_move_for_processes_that_run_for_long() -> None:
    """The first thread touched all pages first; half of the accesses are the other's, from another node."""
    work, threads = both(100, 100), [("p0", "0"), ("p0", "0.1")]
    long, short, second = (
        CountedPages(work, [], threads, np.array(lasted)) for lasted in ([1e9, 1e9], [1.0, 1.0], [1.0, 1e9])
    )
    assert long.page_moves(ROWS, 2).pages == pytest.approx(10 * (MOVED + SHARED / 2) / 2, rel=1e-6)
    assert second.page_moves(ROWS, 2) == pytest.approx(long.page_moves(ROWS, 2))
    assert short.page_moves(ROWS, 2) == STILL
    assert short.kernel_traffic(ROWS, 2).tolist() == [[1000, 0], [1000, 0]]
    first = CountedPages(work, [], threads, np.array([1e9, 1.0]))
    assert first.page_moves(ROWS, 2) == STILL
    assert first.kernel_traffic(ROWS, 2)[1].tolist() == [1000, 0]


def test_pages_of_threads_that_nobody_binds_come_after_them() -> None:
    """Whoever uses them, and wherever they were touched first."""
    for work in (both(100, 100), stats(10, 5000, 0), stats(10, 5000, 1)):
        held = np.zeros(len(work.page), bool)
        moves = roaming_moves(work, np.ones(2), 4, held)
        assert moves.pages == pytest.approx(10 * ROAMED * 3 / 4)
        assert moves.lines == pytest.approx(moves.pages * 64 * ROAMED_LINES)
        assert roaming_moves(work, np.zeros(2), 4, held) == STILL
    half = roaming_moves(both(100, 100), np.array([1.0, 0.0]), 4, np.zeros(20, bool))
    assert half.pages == pytest.approx(10 * ROAMED * 3 / 4 / 2)


def test_pages_that_nobody_uses_once_threads_have_started_stay() -> None:
    work = both(100, 100)
    begun = replace(
        work, accesses=np.where(work.page < 4, 0, work.accesses), before=np.where(work.page < 4, 50, 0)
    )
    assert roaming_moves(begun, np.ones(2), 2, np.zeros(20, bool)).pages == pytest.approx(6 * ROAMED / 2)


def test_threads_alone_in_their_process_have_their_pages_with_them() -> None:
    """And pages of a file that is only read stay where they are."""
    work = stats(10, 5000, 0)
    teams, alone = (
        CountedPages(work, [], own, 1e9) for own in ([("p0", "0"), ("p0", "0.1")], [("p0", "0"), ("p1", "0")])
    )
    moved = [own.roaming_moves(ROWS, 2, 1.0, 0.75).pages for own in (teams, alone)]
    assert moved == pytest.approx([10 * ROAMED / 2, 10 * ROAMED / 2 / 4], rel=1e-6)
    assert teams.roaming_moves(ROWS, 2, 1.0, 0.75, but=[0]) == STILL
    file = [RegionKey(kind="file", name="f", bytes=10 * PAGE)]
    read, written = (replace(work, regions=file, writes=work.writes * part) for part in (0, 1))
    kept = [CountedPages(one, [], [("p0", "0"), ("p0", "0.1")], 1e9) for one in (read, written)]
    assert [own.roaming_moves(ROWS, 2, 1.0, 0.75).pages > 0 for own in kept] == [False, True]


def test_the_kernel_moves_no_page_that_two_processes_share() -> None:
    """A mapping that both have, or what a forked child and its parent have in common."""
    threads, known = [("p0", "0"), ("p0.1", "0")], both(100, 100)
    assert known.toucher is not None
    used, shared = pages_by_pairs(known.page, known.thread, known.toucher, known.accesses, 2)
    apart = replace(known, elsewhere=10 * used, elsewhere_pages=used, elsewhere_shared=shared)
    several, one = (CountedPages(apart, [], own, 1e9) for own in (threads, [("p0", "0"), ("p0", "0.1")]))
    assert shared_by_processes(known, np.array([0, 1])).all()
    assert several.page_moves(ROWS, 2) == STILL
    assert one.page_moves(ROWS, 2).pages == pytest.approx(2 * 10 * (MOVED + SHARED / 2) / 2, rel=1e-6)
    assert several.kernel_traffic(ROWS, 2) == pytest.approx(np.array([[1050, 0], [1050, 0]]))
    assert one.kernel_traffic(ROWS, 2)[1, 1] > 0


def test_a_page_that_another_process_has_stays_for_all() -> None:
    """Of twenty pages that a process touched, two threads of it use all, and another process ten."""
    page = np.concatenate([np.repeat(np.arange(10), 3), np.repeat(np.arange(10, 20), 2)])
    thread = np.concatenate([np.tile([0, 1, 2], 10), np.tile([0, 1], 10)])
    made, key = np.full(len(page), 50), RegionKey(kind="mmap", name="r", bytes=20 * PAGE)
    stats = PageCounts([key], 0 * page, page, thread, made, made, toucher=0 * page)
    assert (shared_by_processes(stats, np.array([0, 0, 1])) == (page < 10)).all()
    rows = np.array([0, 1, 1])
    counted = CountedPages(stats, [], [("p0", "0"), ("p0", "0.1"), ("p1", "0")], 1e9)
    traffic = counted.kernel_traffic(rows, 2)
    assert traffic[2].tolist() == [500, 0] and traffic[1, 0] == pytest.approx(500 + 500 * (1 - 0.9 / 2))
    assert 0 < counted.page_moves(rows, 2).pages < 10 * MOVED


def test_a_process_runs_for_the_stretches_in_which_any_of_its_threads_does() -> None:
    threads = [("p0", "0"), ("p0", "0.1"), ("p0.1", "0"), ("p0.2", "0")]
    running = np.array([[1.0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]])
    seen, told = (Activity(np.array([3.0, 1.0, 7.0]), running, looked=looked) for looked in (True, False))
    assert ran_of(threads, (), seen).tolist() == [1, 1, 0.25, 0]
    assert ran_of(threads, (), told).tolist() == ran_of(threads, (), None).tolist() == [1] * 4
    assert ran_of(threads, [(0, 4), (0, 4), (1, 3), (3, 4)], told).tolist() == [1, 1, 0.5, 0.25]
    assert ran_of(threads[:2], (), seen).tolist() == [1, 1]


def test_a_process_lives_from_its_first_thread_to_its_last() -> None:
    threads = [("p0", "0"), ("p0.1", "0"), ("p0.1", "0.1"), ("p0.2", "0")]
    lives = [(0, 100), (10, 20), (15, 60), (75, -1)]
    assert lived_of(threads, lives).tolist() == [1, 0.5, 0.5, 0.25]
    assert lived_of(threads, ()).tolist() == lived_of(threads, [*lives[:3], (150, -1)]).tolist() == [1] * 4


@pytest.mark.parametrize(
    ("meta", "seconds"),
    [
        ({"duration_ns": 5 * 10**9}, 5.0),
        ({"duration_ns": 10**9, "clock": "accesses"}, 1e9 * ACCESS_S),
        ({}, math.inf),
    ],
)
def test_a_run_takes_as_long_as_it_did_or_as_it_does_in_the_lab(
    meta: dict[str, object], seconds: float, tmp_path: Path
) -> None:
    write_trace(tmp_path / "t.db", {"time_ns": np.arange(3)}, [(0, "p0", "0", 1, 1, "t", 0, -1)], meta=meta)
    with Trace.open(tmp_path / "t.db") as trace:
        assert lasted_s(trace) == pytest.approx(seconds)
