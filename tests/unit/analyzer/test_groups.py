"""Groups of threads in sentences: who, in what memory, and when."""

from pathlib import Path

import numpy as np
import pytest

from numaplan.analyzer import analyze_trace, merge_analyses, page_accesses, placement_summary, region_uses
from numaplan.analyzer.groups import main_region, main_times
from numaplan.analyzer.report.units import use_cells
from numaplan.profiler import Trace
from tests.unit.analyzer.samples.test_trace_analysis import FILE_A, HEAP, Row, exchange, write

PATHS = [("p0", "0"), *(("p0", f"0.{number}") for number in range(1, 8))]
MS = 1_000_000


def said(path: Path) -> list[str]:
    with Trace.open(path) as trace:
        analysis = analyze_trace(trace, slice_ns=MS)
        pages = page_accesses(trace)
        return placement_summary(analysis, region_uses(trace, pages), (), pages)


def pairs(time: int, rng: np.random.Generator, partner: int, split: int = 8) -> Row:
    """Threads t and t ^ partner write and read a page of their own in the file, from the thread `split` on in
    the heap; all read a heap block."""
    thread = int(rng.integers(8))
    if rng.random() < 0.3:
        return time, thread, HEAP + int(rng.integers(1 << 14)), False, 0
    place = min(thread, thread ^ partner)
    if place >= split:
        where = HEAP + (1 << 16) + (place << 12)
        return time, thread, where + int(rng.integers(4096)), bool(rng.random() < 0.5), 0
    return time, thread, FILE_A + (place << 12) + int(rng.integers(4096)), bool(rng.random() < 0.5), 3


@pytest.fixture
def changing(tmp_path: Path) -> Path:
    """Neighbours exchange for 100 ms, then threads four apart for as long."""
    rng = np.random.default_rng(0)
    rows = [pairs(at * 10_000, rng, 1 if at < 10_000 else 4) for at in range(20_000)]
    return write(tmp_path / "t.db", rows, PATHS, meta={"period": 1000})


def test_a_group_is_told_with_its_memory_unless_all_meet_in_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    heads = [f"threads {pair} exchange" for pair in ("0, 0.1", "0.2, 0.3", "0.4, 0.5", "0.6, 0.7")]
    ends = ["file /data/shared"] * 2 + ["heap app+0x10"] * 2
    for split, expected in ((4, [f", mostly in {end}" for end in ends]), (8, [""] * 4)):
        rows = [pairs(at * 1000, rng, 1, split) for at in range(20_000)]
        text = said(write(tmp_path / f"{split}.db", rows, PATHS, meta={"period": 1000}))
        groups = sorted(one for one in text if "among themselves" in one)
        for one, head, end in zip(groups, heads, expected, strict=True):
            assert one.startswith(head) and one.endswith(f"among themselves{end}")


def test_what_a_group_exchanges_at_one_time_only_is_told_with_it(changing: Path) -> None:
    with Trace.open(changing) as trace:
        analysis = analyze_trace(trace, slice_ns=MS)
        pages = page_accesses(trace)
    (border,) = analysis.partner_changes
    assert abs(border - 100) <= 2
    early, late = main_times([0, 1], analysis), main_times([0, 4], analysis)
    assert early == f", mostly at 0–{border} ms"
    assert late.startswith(f", mostly at {border}–")
    assert main_times([0, 1, 4, 5], analysis) == ""
    assert main_times([1, 2], analysis) == ""
    assert main_region([0, 1], [], pages) == ""
    assert main_region([0, 1], [], None) == ""
    merged = merge_analyses([analysis, analysis])
    assert main_times([0, 1], merged) == ""
    assert any("among themselves" in one for one in placement_summary(merged, [], (), pages))


def test_threads_of_several_processes_are_named_with_theirs(tmp_path: Path) -> None:
    """Each process of a job has a thread 0."""
    rows = [
        row
        for one, other, lines in ((0, 1, 60), (2, 3, 40))
        for row in exchange(HEAP + (one << 12), 0, one, other, lines)
    ]
    threads = [("r0", "0"), ("r0", "0.1"), ("r1", "0"), ("r1", "0.1")]
    with Trace.open(write(tmp_path / "t.db", rows, threads)) as trace:
        analysis = analyze_trace(trace)
        pages = page_accesses(trace)
        regions = region_uses(trace, pages)
    assert analysis.names == ["r0:0", "r0:0.1", "r1:0", "r1:0.1"]
    said = " ".join(placement_summary(analysis, regions))
    assert "threads r0:0, r0:0.1 exchange 60%" in said and "threads r1:0, r1:0.1 exchange 40%" in said
    assert use_cells(regions[0], analysis)[-2:] == ["r0:0", "r0:0 (30%)"]
