"""What is read from a trace for the pages: who uses them, and who touched them first."""

from pathlib import Path

import numpy as np

from numaplan.analyzer import PageCounts
from numaplan.mapper import RegionKey
from numaplan.mapper.workload.pages import mappings_joined, placed_pages, with_runtimes
from numaplan.profiler import EVENT_CODE, Trace
from tests.support.traces import write_trace

START = 0x10010  # not at the start of a page: a region's pages are counted from its own start
PAGE = 4096


def threads(*starts: int) -> list[tuple[object, ...]]:
    names = ("0", "0.1", "0.2")
    return [(i, "p0", names[i], 10 + i, 10, "t", at, -1) for i, at in enumerate(starts)]


def test_first_touch_is_from_before_the_threads_start(tmp_path: Path) -> None:
    rows = [  # time, thread, offset in the region, write
        (0, 0, 0, True),
        (1, 0, PAGE, True),
        (50, 1, 8, True),
        (51, 2, PAGE - 1, False),
        (52, 1, PAGE, False),
        (53, 2, 2 * PAGE, True),
        (54, 1, 2 * PAGE, False),
    ]
    time, thread, offset, write = (np.array(column) for column in zip(*rows, strict=True))
    event = np.where(write, EVENT_CODE["store"], EVENT_CODE["load"])
    samples = {"time_ns": time, "thread": thread, "addr": START + offset, "event": event, "is_write": write}
    path = write_trace(
        tmp_path / "trace.db",
        {**samples, "region": 0},
        threads(0, 40, 41),
        [(0, "p0", "heap", "a", "b", START, 1 << 20, 0, 1, 0, -1)],
        {"period": 1},
    )
    with Trace.open(path) as trace:
        stats = placed_pages(trace, [0, 1, 2])
    assert stats.toucher is not None
    columns = (stats.page, stats.thread, stats.accesses, stats.writes, stats.toucher)
    found = list(zip(*(column.tolist() for column in columns), strict=True))
    assert found == [
        (0, 0, 0, 0, 0),
        (0, 1, 1, 1, 0),
        (0, 2, 1, 0, 0),
        (1, 0, 0, 0, 0),
        (1, 1, 1, 0, 0),
        (2, 1, 1, 0, 2),
        (2, 2, 1, 1, 2),
    ]
    assert stats.before is not None and stats.before.tolist() == [1, 0, 0, 1, 0, 0, 0]


def test_memory_that_no_plan_places_belongs_to_who_touched_it_first(tmp_path: Path) -> None:
    """A stack touched by its maker first, a small block, constants, memory of no region, a page at 0."""
    rows = [  # time, thread, address, region
        (1, 0, 0x7000, 1),
        (2, 1, 0x7008, 1),
        (3, 1, 0x7010, 1),
        (4, 2, 0x9000, 2),
        (5, 0, 0x9010, 2),
        (6, 2, 0xA000, 3),
        (7, 0, 0xA008, 3),
        (8, 1, 0xB000, -1),
        (9, 1, 0, -1),
        (10, 1, START, 0),
    ]
    time, thread, addr, region = (np.array(column) for column in zip(*rows, strict=True))
    kinds = (
        ("heap", START, 1 << 20),
        ("stack", 0x6000, 0x2000),
        ("small", 0x9000, 64),
        ("text", 0xA000, 4096),
    )
    path = write_trace(
        tmp_path / "trace.db",
        {"time_ns": time, "thread": thread, "addr": addr, "region": region},
        threads(0, 0, 0),
        [
            (i, "p0", kind, kind, "b", start, size, int(kind == "stack"), i, 0, -1)
            for i, (kind, start, size) in enumerate(kinds)
        ],
        {"period": 7},
    )
    with Trace.open(path) as trace:
        stats = placed_pages(trace, [0, 1, 2])
    assert stats.elsewhere is not None and stats.period == 7
    # By thread, then by who was there first: the stack is thread 0's, the block thread 2's, constants main's.
    assert stats.elsewhere.tolist() == [[2, 0, 1], [2, 1, 0], [1, 0, 1]]
    assert stats.restacked is not None  # the stack is that of thread 1, whose node it is on under a plan
    assert stats.restacked.tolist() == [[-1, 1, 0], [-2, 2, 0], [0, 0, 0]]
    assert stats.accesses.tolist() == [1]  # the heap is what a plan places


def test_a_forked_process_has_a_stack_of_its_own(tmp_path: Path) -> None:
    """Born with its parent's, it has a copy as soon as it writes to it, wherever the parent's is."""
    path = write_trace(
        tmp_path / "trace.db",
        {"time_ns": np.arange(1, 7), "thread": np.array([0, 0, 1, 1, 1, 2]), "addr": 0x7000, "region": 0},
        [
            (0, "p0", "0", 1, 1, "a", 0, -1),
            (1, "p0.1", "0", 2, 2, "a", 2, -1),
            (2, "p0", "0.1", 1, 3, "a", 3, -1),
        ],
        [(0, "p0", "stack", "0", "", 0x6000, 0x2000, 0, 0, 0, -1)],
    )
    with Trace.open(path) as trace:
        stats = placed_pages(trace, [0, 1, 2])
    assert stats.elsewhere is not None and stats.restacked is not None
    assert stats.elsewhere.tolist() == [[2, 0, 0], [0, 3, 0], [1, 0, 0]]
    assert not stats.restacked.any()


def test_a_mapping_of_several_processes_is_one() -> None:
    """Thread 1's process was forked from thread 0's, and uses pages that this one touched first."""
    shared, other = (RegionKey(kind="mmap", name="m+0x1", bytes=8192, process=who) for who in ("p0", "p0.2"))
    heap = RegionKey(kind="heap", name="m+0x2", bytes=8192)
    rows = [(0, 0, 0), (0, 1, 0), (1, 0, 1), (1, 1, 1), (2, 0, 0), (3, 0, 1), (4, 0, 2)]
    region, page, thread = np.array(rows, np.int64).T
    counts = PageCounts(
        [shared, shared, heap, heap, other],
        region,
        page,
        thread,
        np.arange(1, 8),
        np.zeros(7, np.int64),
        toucher=thread,
        before=np.zeros(7, np.int64),
        first_ns=np.array([5, 9, 6, 7, 1, 1, 1]),
        lives=np.array([[4, 8], [5, -1], [0, -1], [0, -1], [0, 3]]),
    )
    joined = mappings_joined(counts)
    assert joined.toucher is not None and joined.lives is not None
    assert joined.region.tolist() == [0, 0, 0, 0, 2, 3, 4]
    assert joined.page.tolist() == [0, 0, 1, 1, 0, 0, 0]
    assert joined.thread.tolist() == [0, 1, 0, 1, 0, 1, 2]
    assert joined.toucher.tolist() == [0, 0, 1, 1, 0, 1, 2]
    assert joined.accesses.tolist() == [1, 3, 2, 4, 5, 6, 7]
    assert joined.lives[0].tolist() == [4, -1]


def test_what_is_counted_by_thread_alone_is_to_memory_of_its_own(tmp_path: Path) -> None:
    """The loader's accesses: 5 of thread 0. Of thread 2 there is no counter."""
    page_use = [  # stretch, first use, thread, region, address, loads, stores, missed
        (0, 10, 1, 0, 0, START, 3, 4, 0),
        (0, 10, 2, 1, 0, START, 2, 0, 0),
        (0, 10, 3, 2, 0, START + PAGE, 1, 0, 0),
    ]
    counters = [(10, 0, "loads", 7.0), (10, 0, "stores", 5.0), (10, 1, "loads", 2.0), (10, 1, "stores", 0.0)]
    elsewhere = {}
    for name, counted in (("exact", page_use), ("sampled", None)):
        path = write_trace(
            tmp_path / f"{name}.db",
            {"time_ns": np.array([1]), "thread": 0, "addr": START, "region": 0},
            threads(0, 0, 0),
            [(0, "p0", "heap", "a", "b", START, 1 << 20, 0, 1, 0, -1)],
            {"period": 1},
            page_use=counted,
            counters=counters,
        )
        with Trace.open(path) as trace:
            stats = with_runtimes(placed_pages(trace, [1, 0, 2]), trace, [1, 0, 2])
        assert stats.elsewhere is not None
        elsewhere[name] = stats.elsewhere.tolist()
    assert elsewhere == {"exact": [[0, 0, 0], [0, 5, 0], [0, 0, 0]], "sampled": [[0, 0, 0]] * 3}
