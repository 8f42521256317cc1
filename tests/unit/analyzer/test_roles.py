"""Threads with roles come back to their part of shared memory; those of a pool do not, whatever they own."""

import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from numaplan.analyzer import TraceSamples, thread_roles
from numaplan.profiler import EVENT_CODE, LEVEL_CODE, Trace
from tests.support.traces import write_trace

THREADS, PAGES, SWEEPS, PAGE = 4, 400, 8, 4096
START = (1 << 44) + np.arange(3 + THREADS) * (1 << 32)
PLACES, TABLE, OWN = 0, 1, 3  # numbers of regions; those of threads from OWN on

Array = NDArray[np.int64]
Shares = Callable[[Array, Array, np.random.Generator], Array]


def slices(_sweep: Array, page: Array, _rng: np.random.Generator) -> Array:
    """Each thread has its part."""
    return page * THREADS // PAGES


def as_it_comes(_sweep: Array, page: Array, rng: np.random.Generator) -> Array:
    """Anybody takes the next page."""
    return rng.integers(0, THREADS, len(page))


def split_up(sweep: Array, page: Array, rng: np.random.Generator) -> Array:
    """Of every ten pages of a thread's part another one takes five."""
    moved = rng.random(len(page)) < 0.5
    return np.where(moved, (page * THREADS // PAGES + sweep) % THREADS, page * THREADS // PAGES)


def by_turns(sweep: Array, page: Array, _rng: np.random.Generator) -> Array:
    """Two threads have each part, and come to it in turn."""
    return (page * THREADS // PAGES) ^ (sweep % 2)


def of_two(_sweep: Array, page: Array, rng: np.random.Generator) -> Array:
    """Two threads have each part, and either may come."""
    return (page * THREADS // PAGES) ^ rng.integers(0, 2, len(page))


def of_two_for_a_while(sweep: Array, page: Array, rng: np.random.Generator) -> Array:
    """Each page is passed on to two others after every two sweeps."""
    two = (page * 7 + sweep // 2 * (1 + page % 3)) % THREADS
    return two ^ rng.integers(0, 2, len(page))


def looked_into(_sweep: Array, page: Array, rng: np.random.Generator) -> Array:
    """Each thread has its part, into which others look now and then, as into a vector by a sparse matrix."""
    others = rng.random(len(page)) < 0.2
    return np.where(others, rng.integers(0, THREADS, len(page)), page * THREADS // PAGES)


def keeps_of(path: Path, who: Shares, *, table: float = 0.0, own: float = 0.0) -> list[bool]:
    """Of threads that sweep over pages of main's, look up a table of main's, and use memory of their own.

    table, own: samples of these for each of the pages'.
    """
    rng = np.random.default_rng(7)
    sweep, page = (part.ravel() for part in np.mgrid[:SWEEPS, :PAGES])
    time = (sweep * PAGES + page) * 1000
    thread = thread_of = who(sweep, page, rng) + 1
    rows = [np.stack([time, thread, START[PLACES] + page * PAGE, np.full(len(page), PLACES)])]
    for share, region in ((table, None), *[(own / 4, OWN)] * 4):
        chosen = rng.random(len(page)) < share
        number = np.full(len(page), TABLE) if region is None else region + thread - 1
        place = rng.integers(0, 100, len(page)) * PAGE
        rows.append(np.stack([time + 1, thread, START[number] + place, number])[:, chosen])
    columns = np.concatenate(rows, axis=1)
    time, thread, addr, region = columns[:, np.argsort(columns[0], kind="stable")]
    made_by = [0, 0, 0, *range(1, THREADS + 1)]
    write_trace(
        path,
        {
            "time_ns": time + 20,
            "thread": thread,
            "cpu": thread,
            "node": 0 * thread,
            "addr": addr,
            "event": EVENT_CODE["store"],
            "is_write": True,
            "level": LEVEL_CODE["local_dram"],
            "latency": 0,
            "region": region,
        },
        [(t, "p0", f"0.{t}" if t else "0", t + 1, 1, "", 10 if t else 0, -1) for t in range(THREADS + 1)],
        [
            (i, "p0", "heap", f"program+{i}", "", int(START[i]), PAGES * PAGE, made_by[i], i, 0, -1)
            for i in range(len(START))
        ],
        {"backend": "emulate", "period": 1000, "duration_ns": SWEEPS * PAGES * 1000},
        "2x4",
        transfers=lines_of(sweep, page, thread_of),
    )
    with Trace.open(path) as trace:
        return thread_roles(trace, TraceSamples(trace)).keeps.tolist()[1:]


def lines_of(sweep: Array, page: Array, thread: Array) -> list[tuple[int, ...]]:
    """Transfers: each thread takes ten lines of a page from who was there in the sweep before."""
    who = np.zeros((SWEEPS, PAGES), np.int64)
    who[sweep, page] = thread
    length = PAGES * 1000
    return [
        (at * length, (at + 1) * length, writer, reader, PLACES, 10 * int(count))
        for at in range(1, SWEEPS)
        for (writer, reader), count in Counter(
            zip(who[at - 1].tolist(), who[at].tolist(), strict=True)
        ).items()
        if writer != reader
    ]


@pytest.mark.parametrize("table", [0.0, 2.0])
def test_who_comes_back_to_a_part_has_a_role_beside_a_table_too(table: float, tmp_path: Path) -> None:
    assert keeps_of(tmp_path / "t.db", slices, table=table) == [True] * THREADS


@pytest.mark.parametrize("who", [by_turns, of_two])
def test_who_shares_a_part_with_the_same_one_all_the_time_has_a_role(who: Shares, tmp_path: Path) -> None:
    assert keeps_of(tmp_path / "t.db", who) == [True] * THREADS
    assert keeps_of(tmp_path / "o.db", who, table=2.0) == [True] * THREADS


def test_who_has_a_part_that_others_look_into_has_a_role(tmp_path: Path) -> None:
    assert keeps_of(tmp_path / "t.db", looked_into) == [True] * THREADS


@pytest.mark.parametrize("who", [as_it_comes, split_up, of_two_for_a_while])
def test_who_comes_back_now_and_then_is_of_a_pool(who: Shares, tmp_path: Path) -> None:
    assert keeps_of(tmp_path / "t.db", who) == [False] * THREADS
    assert keeps_of(tmp_path / "o.db", who, own=0.5) == [False] * THREADS


def test_who_hardly_shares_anything_has_a_role(tmp_path: Path) -> None:
    assert keeps_of(tmp_path / "t.db", as_it_comes, own=3.0) == [True] * THREADS


def test_memory_does_not_grow_with_the_number_of_threads_times_that_of_regions(tmp_path: Path) -> None:
    """A server's start script makes a thousand short processes with all their libraries."""
    threads, regions = 500, 4000
    where = ("heap", "program+1", "")
    number = np.arange(regions)
    write_trace(
        tmp_path / "t.db",
        {
            "time_ns": number,
            "thread": number % threads,
            "cpu": 0,
            "node": 0,
            "addr": (1 << 44) + number * PAGE,
            "event": EVENT_CODE["store"],
            "is_write": True,
            "level": LEVEL_CODE["local_dram"],
            "latency": 0,
            "region": number,
        },
        [(t, f"p0.{t}", "0", t + 1, t + 1, "", 0, -1) for t in range(threads)],
        [
            (i, f"p0.{i % threads}", *where, (1 << 44) + i * PAGE, PAGE, i % threads, 0, 0, -1)
            for i in number.tolist()
        ],
        {"backend": "emulate", "period": 1000, "duration_ns": regions},
        "2x4",
    )
    with Trace.open(tmp_path / "t.db") as trace:
        samples = TraceSamples(trace)
        tracemalloc.start()
        keeps = thread_roles(trace, samples).keeps
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert keeps.all() and peak < 100 << 20  # places of regions times threads are 2 GB
