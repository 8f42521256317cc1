"""Samples counted by page: the native counts against the same question asked in SQL."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.analyzer import TraceSamples, count_pages
from numaplan.analyzer.memory.page_counting import MOST_BORDERS
from numaplan.analyzer.memory.page_counts import PAGE, PageCounts
from numaplan.profiler import EVENT_CODE, Trace
from tests.support.properties import examples
from tests.support.traces import write_trace

KINDS = ("heap", "static")
THREADS = 5
COLUMNS = ("region", "page", "thread", "phase", "accesses", "before", "writes", "toucher")
REGIONS = (  # kind, process, start, bytes; the numbers have a gap, and regions lie in one another
    (0, "heap", "p0", 1 << 20, 64 * PAGE),
    (1, "static", "p1", (1 << 20) + 100, 3 * PAGE),
    (2, "heap", "p0", 1 << 24, PAGE - 1),
    (4, "text", "p0", 1 << 25, 8 * PAGE),
    (5, "stack", "p1", 1 << 26, 8 * PAGE),
    (6, "text", "p1", (1 << 27) + 5 * PAGE, 8 * PAGE),  # of the same file
)
PLACED = f"r.kind IN {KINDS} AND r.bytes >= {PAGE} AND s.addr >= r.start_addr"


def write(path: Path, seed: int, count: int, **more: object) -> Path:
    rng = np.random.default_rng(seed)
    starts = {number: start for number, _, _, start, _ in REGIONS}
    region = rng.choice([-1, 0, 1, 2, 4, 5, 6, 9], count)
    start = np.array([starts.get(number, 1 << 20) for number in region.tolist()])
    addr = start + rng.integers(-PAGE, 9 * PAGE, count)
    addr[rng.random(count) < 0.1] = 0
    names = [("p0", "0", 0), ("p0", "0.1", 25), ("p0", "0.2", 20), ("p1", "0", 0), ("p1", "0.1", 60)]
    samples = {
        "time_ns": rng.integers(0, 100, count),  # many at one time
        "thread": rng.integers(-1, THREADS, count),
        "addr": addr,
        "is_write": rng.random(count) < 0.4,
        "region": region,
    }
    samples["event"] = np.where(samples["is_write"], EVENT_CODE["store"], EVENT_CODE["load"])
    return write_trace(
        path,
        samples,
        [(i, process, name, i, 1, "t", at, -1) for i, (process, name, at) in enumerate(names)],
        [(n, process, kind, "x", "b", at, size, 0, 1, 0, -1) for n, kind, process, at, size in REGIONS],
        more,
    )


def asked_in_sql(trace: Trace, borders: list[int]) -> dict[str, np.ndarray]:
    phase = " + ".join(["0", *(f"(s.time_ns >= {border})::INTEGER" for border in borders)])
    return trace.arrays(
        f"WITH seen AS (SELECT s.region, (s.addr - r.start_addr) // {PAGE} page, s.thread, s.is_write,"
        f" s.time_ns, {phase} phase, s.time_ns < 20 early"
        f" FROM samples s JOIN regions r USING (region) WHERE s.thread >= 0 AND {PLACED}),"
        " touched AS (SELECT region, page, arg_min(thread, (time_ns, thread)) toucher FROM seen GROUP BY ALL)"
        " SELECT region::BIGINT region, page::BIGINT page, thread::BIGINT thread, phase::BIGINT phase,"
        " (count(*) FILTER (NOT early))::BIGINT accesses, (count(*) FILTER (early))::BIGINT before,"
        " (count(*) FILTER (is_write AND NOT early))::BIGINT writes, any_value(toucher)::BIGINT toucher"
        " FROM seen JOIN touched USING (region, page) GROUP BY region, page, thread, phase"
        " ORDER BY region, page, thread, phase"
    )


def elsewhere_in_sql(trace: Trace) -> np.ndarray:
    """Pages by process, those of code by their file and by where in it they are."""
    code = "r.kind = 'text' AND s.addr >= r.start_addr"
    counts = np.zeros((THREADS, THREADS))
    for thread, toucher, count in trace.rows(
        f"WITH seen AS (SELECT CASE WHEN {code} THEN r.name || ' ' || r.build_id ELSE t.process END process,"
        f" (s.addr - CASE WHEN {code} THEN r.start_addr ELSE 0 END) // {PAGE} page, s.thread, count(*) n,"
        " min(CASE WHEN r.kind = 'text' THEN 0 ELSE s.time_ns END) first"
        " FROM samples s JOIN threads t USING (thread) LEFT JOIN regions r USING (region)"
        f" WHERE NOT coalesce({PLACED}, false) AND s.addr <> 0 GROUP BY ALL),"
        " touched AS (SELECT process, page, arg_min(thread, (first, thread)) toucher FROM seen GROUP BY ALL)"
        " SELECT thread, toucher, sum(n) FROM seen JOIN touched USING (process, page) GROUP BY ALL"
    ):
        counts[thread, toucher] = count
    return counts


def counted(path: Path, borders: list[int]) -> tuple[PageCounts, dict[str, np.ndarray], np.ndarray]:
    with Trace.open(path) as trace:
        found = count_pages(trace, TraceSamples(trace), KINDS, borders)
        return found, asked_in_sql(trace, borders), elsewhere_in_sql(trace)


@pytest.mark.slow
@examples(15)
@given(
    seed=st.integers(0, 1 << 30), count=st.integers(1, 3000), cuts=st.sets(st.integers(1, 99), max_size=16)
)
def test_counts_are_those_of_sql(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int, cuts: set[int]
) -> None:
    path = write(tmp_path_factory.mktemp("counts") / "t.db", seed, count)
    found, expected, elsewhere = counted(path, sorted(cuts))
    for name in COLUMNS:
        assert np.array_equal(getattr(found, name), expected[name]), name
    assert np.array_equal(found.elsewhere, elsewhere)


def test_counts_in_several_pieces_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More samples than are held at once, and tables that must grow."""
    path = write(tmp_path / "t.db", 3, 40_000)
    whole, expected, elsewhere = counted(path, [50])
    monkeypatch.setattr("numaplan.analyzer.samples.trace_samples.PIECE", 3000)
    parts, _, _ = counted(path, [50])
    for name in COLUMNS:
        assert np.array_equal(getattr(whole, name), expected[name]), name
        assert np.array_equal(getattr(parts, name), expected[name]), name
    assert np.array_equal(parts.elsewhere, elsewhere)


def test_samples_count_by_the_periods_of_their_events(tmp_path: Path) -> None:
    """Stores at one in 3000, loads at one in 1000: each store counts three, wherever it is counted."""
    periods = {"period": 1000, "periods": '{"load": 1000, "store": 3000}'}
    plain, expected, _ = counted(write(tmp_path / "a.db", 5, 2000), [50])
    weighed, _, _ = counted(write(tmp_path / "b.db", 5, 2000, **periods), [50])
    assert np.array_equal(plain.accesses, expected["accesses"])
    assert np.array_equal(weighed.writes, 3 * plain.writes)
    assert np.array_equal(weighed.accesses, plain.accesses + 2 * plain.writes)
    assert plain.before.sum() < weighed.before.sum() < 3 * plain.before.sum()
    assert plain.elsewhere.sum() < weighed.elsewhere.sum() < 3 * plain.elsewhere.sum()
    assert np.array_equal(weighed.toucher, plain.toucher)


def test_too_many_phases_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "t.db", 1, 100)
    with Trace.open(path) as trace, pytest.raises(ValueError, match="borders"):
        count_pages(trace, TraceSamples(trace), KINDS, range(MOST_BORDERS + 1))
