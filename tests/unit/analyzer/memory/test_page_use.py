"""Pages and loads from counted accesses, and from samples where these alone tell."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from numaplan.analyzer import TraceSamples, analyze_trace, count_pages, page_accesses, region_uses
from numaplan.analyzer.memory.local_shares import LocalShares
from numaplan.analyzer.summary import placement_summary
from numaplan.profiler import LEVEL_CODE, Trace
from tests.support.traces import write_trace

HEAP, NEXT, PAGE = 0x10010, 0x14010, 4096
FIRST = 0x10000  # the page in which the block begins
PERIOD = 100
Row = tuple[int, ...]  # start, end, first, thread, region, addr, counts; node and whether local, if known


def write(path: Path, rows: Sequence[Row], **meta: object) -> Path:
    """Two blocks of 4 pages one after the other; thread 1 starts at 1000. Its samples are of the second."""
    time = np.arange(400) * 10
    samples = {
        "time_ns": time,
        "thread": (time >= 1000).astype(int),
        "addr": np.where(time >= 1000, NEXT + time % 64, HEAP),
        "region": np.where(time >= 1000, 1, 0),
        "level": np.where(time % 40 == 0, LEVEL_CODE["local_dram"], LEVEL_CODE["l2"]),
    }
    threads = [(i, "p0", ("0", "0.1")[i], 10 + i, 10, "t", 1000 * i, -1) for i in range(2)]
    regions = [(i, "p0", "heap", "app+0x10", "b", (HEAP, NEXT)[i], 4 * PAGE, 0, i, 0, -1) for i in range(2)]
    return write_trace(
        path, samples, threads, regions, {"period": PERIOD, "clock": "accesses", **meta}, page_use=rows
    )


ROWS: list[Row] = [
    (0, 1000, 5, 0, 0, FIRST + PAGE, 10, 500, 50),
    (0, 1000, 700, 0, 0, FIRST + 2 * PAGE, 0, 80, 8),
    (1000, 2000, 1100, 1, 0, FIRST + PAGE, 300, 20, 7),
    (2000, 4000, 2500, 1, 0, FIRST + PAGE, 30, 0, 3),
    (2000, 4000, 2100, 1, -2, FIRST + 4 * PAGE, 1000, 0, 10),
    (2000, 4000, 2200, 0, -1, 0x900000, 5, 5, 1),
]


def test_counts_are_those_of_the_table(tmp_path: Path) -> None:
    with Trace.open(write(tmp_path / "t.db", ROWS)) as trace:
        found = count_pages(trace, TraceSamples(trace), ("heap",), [2000])
    own = found.region == 0
    assert found.exact and found.period == 1 and found.missed is not None and found.before is not None
    columns = (found.page, found.thread, found.phase, found.accesses, found.before, found.writes)
    listed = [tuple(np.asarray(column)[own].tolist()) for column in (*columns, found.missed, found.toucher)]
    assert list(zip(*listed, strict=True)) == [
        (1, 0, 0, 0, 510, 0, 0, 0),
        (1, 1, 0, 320, 0, 20, 7, 0),
        (1, 1, 1, 30, 0, 0, 3, 0),
        (2, 0, 0, 0, 80, 0, 0, 0),
    ]
    memory = found.memory_accesses
    assert memory is not None and memory[0][own].tolist() == [0, 7, 3, 0]
    assert found.elsewhere is not None and found.elsewhere[0, 0] == 10


def test_what_was_local_is_told_where_it_was_counted(tmp_path: Path) -> None:
    sides = [(3, 1), (3, 0), (2, 1), (2, -1), (2, 0), (-1, -1)]
    rows = [(*row, *side) for row, side in zip(ROWS, sides, strict=True)]
    with Trace.open(write(tmp_path / "known.db", rows)) as trace:
        found = analyze_trace(trace)
        assert found.local == LocalShares(accesses=(510 + 320) / (510 + 80 + 320 + 1000), memory=57 / 75)
        assert "43.5% of accesses were local as the program ran, 76.0% of those that reached memory" in (
            placement_summary(found, [])
        )
    with Trace.open(write(tmp_path / "unknown.db", ROWS)) as trace:
        found = analyze_trace(trace)
        assert found.local is None and not any(
            "as the program ran" in one for one in placement_summary(found, [])
        )


def test_in_a_page_of_several_regions_samples_tell(tmp_path: Path) -> None:
    with Trace.open(write(tmp_path / "t.db", ROWS)) as trace:
        found = count_pages(trace, TraceSamples(trace), ("heap",))
        samples = sum(row[0] for row in trace.rows("SELECT count(*) FROM samples WHERE region = 1"))
    own = found.region == 1
    assert found.accesses[own].sum() == samples * PERIOD
    assert set(found.page[own].tolist()) == {0}


@pytest.mark.parametrize("ratio", [None, 1.0])
def test_other_caches_miss_at_the_rate_of_samples(tmp_path: Path, ratio: float | None) -> None:
    rows = [(*row[:8], -1 if ratio is None else 1) for row in ROWS[:4]]
    with Trace.open(write(tmp_path / "t.db", rows, llc_sizes="65536")) as trace:
        found = count_pages(trace, TraceSamples(trace, ratio), ("heap",))
        counted = TraceSamples(trace, ratio)
        assert found.missed is not None and found.missed_before is not None
        rate = counted.dram_count / counted.count
    begun = (found.thread == 0) & (found.page == 1)
    assert found.missed_before[begun].tolist() == pytest.approx([510 * 0.25], rel=0.1)
    assert rate == pytest.approx(0.25)


def test_loads_are_what_was_counted(tmp_path: Path) -> None:
    rows = [(0, 2000, 0, 0, 0, FIRST, 900, 0, 90), (2000, 4000, 2000, 1, 0, FIRST, 0, 300, 60)]
    with Trace.open(write(tmp_path / "t.db", rows)) as trace:
        found, uses = analyze_trace(trace), region_uses(trace, page_accesses(trace))
    assert found.loads[0] / found.loads[1] == pytest.approx(1.5, rel=0.05)  # of phases
    assert found.load_source == "dram"
    assert found.misses.tolist() == [0.9, 0.6]  # in samples
    assert [(use.region, use.samples, use.writes) for use in uses] == [(0, 12, 3)]


def test_a_part_has_the_stretches_whose_middle_it_has(tmp_path: Path) -> None:
    with Trace.open(write(tmp_path / "t.db", ROWS)) as trace, trace.between(0, 2000) as part:
        found = count_pages(part, TraceSamples(part), ("heap",))
    assert found.accesses[found.region == 0].sum() == 320


def test_of_a_part_all_that_came_before_tells_who_touched_a_page_first(tmp_path: Path) -> None:
    with Trace.open(write(tmp_path / "t.db", ROWS)) as trace, trace.between(1000, 4000) as part:
        found = count_pages(part, TraceSamples(part), ("heap",))
        (use,) = (use for use in region_uses(part, page_accesses(part)) if use.region == 0)
    used = (found.region == 0) & (found.accesses > 0)
    assert found.toucher is not None and found.first_ns is not None and found.before is not None
    assert found.page[used].tolist() == [1] and found.toucher[used].tolist() == [0]
    assert found.accesses.sum() == 350 + 300 * PERIOD and found.before.sum() == 0
    assert found.elsewhere is not None and found.elsewhere.sum() == 10
    assert (use.first_toucher, use.sharers, use.samples, use.foreign_first) == (0, 1, 4, 1.0)


def test_rows_that_cannot_be_do_no_harm(tmp_path: Path) -> None:
    huge = 2**63 - 1
    wrong: list[Row] = [
        (0, 9, 0, 7, 0, FIRST, 5, 5, 5),
        (0, 9, 0, -1, 0, FIRST, 5, 5, 5),
        (0, 9, 0, 1, 0, FIRST, -5, 5, 5),
        (0, 9, 0, 1, 0, FIRST, huge, 5, 5),
        (0, 9, 0, 1, 0, FIRST, 5, huge, 5),
        (0, 9, 0, 1, 0, FIRST, 5, 5, huge),
        (-huge, huge, 0, 1, 0, FIRST, 5, 5, 5),
        (0, 9, huge, 1, 0, FIRST, 5, 5, 5),
        (5, -5, 0, 1, 77, FIRST, 5, 5, 5),
        (5, 5, 0, 1, -77, 2**64 - 1, 5, 5, 5),
    ]
    with Trace.open(write(tmp_path / "t.db", [*ROWS[2:3], *wrong])) as trace:
        found, analysis = count_pages(trace, TraceSamples(trace), ("heap",)), analyze_trace(trace)
    assert found.accesses[found.region == 0].sum() == 320
    assert found.elsewhere is not None
    assert np.isfinite(analysis.loads).all() and np.isfinite(found.elsewhere).all()
