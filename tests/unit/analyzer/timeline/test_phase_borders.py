"""Phases of a program with known borders: in loads, in who communicates with whom, and matrices of each."""

import csv
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

from numaplan.analyzer import (
    Analysis,
    analyze_trace,
    communication_by_phase,
    communication_matrix,
    share_changes,
)
from numaplan.analyzer.report.figures.timeline import timeline_figure
from numaplan.analyzer.samples.trace_samples import SharingSamples
from numaplan.analyzer.timeline.partners import PartnerCounter
from numaplan.analyzer.timeline.timeline import Timeline
from numaplan.common import UsageError
from numaplan.mapper.commands.main import main as nmap
from numaplan.profiler import EVENT_CODE, Trace
from tests.support.traces import write_trace

THREADS = 8
SLICES, SLICE_NS = 400, 1_000_000
BORDER = 150  # slice from which pairs are i and i + 4, not i and i ^ 1
SAMPLES = 60_000


def pairs(neighbour: int) -> np.ndarray:
    """(N, N) who exchanges when thread i reads what `i ^ neighbour` wrote."""
    answer = np.zeros((THREADS, THREADS))
    answer[np.arange(THREADS), np.arange(THREADS) ^ neighbour] = 1
    return answer


def write(path: Path, weights: Sequence[float], border: int = BORDER, period: int = 1000) -> Path:
    """Threads write their own memory and read a partner's, which changes at the border.

    weights: accesses of each slice (any unit); all threads take part equally throughout.
    """
    rng = np.random.default_rng(3)
    share = np.asarray(weights, np.float64)
    time = np.sort(rng.choice(SLICES, SAMPLES, p=share / share.sum()) * SLICE_NS)
    time[0], time[-1] = 0, SLICES * SLICE_NS - 1
    thread = rng.integers(0, THREADS, SAMPLES)
    reads = rng.random(SAMPLES) < 0.5
    partner = np.where(time < border * SLICE_NS, thread ^ 1, thread ^ 4)
    addr = (1 << 24) + np.where(reads, partner, thread) * (1 << 16) + rng.integers(0, 16384, SAMPLES)
    samples = {
        "time_ns": time,
        "thread": thread,
        "addr": addr,
        "event": np.where(reads, EVENT_CODE["load"], EVENT_CODE["store"]),
        "is_write": ~reads,
    }
    paths = ["0", *(f"0.{number}" for number in range(1, THREADS))]
    threads = [(i, "p0", name, i, 1, "t", 0, -1) for i, name in enumerate(paths)]
    return write_trace(path, samples, threads, meta={"period": period}, machine="2x4")


def analyze(path: Path) -> Analysis:
    with Trace.open(path) as trace:
        return analyze_trace(trace, slice_ns=SLICE_NS)


def test_a_change_of_partners_is_found_where_no_rate_changes(tmp_path: Path) -> None:
    analysis = analyze(write(tmp_path / "t.db", [1.0] * SLICES))
    assert analysis.changes == []
    (found,) = analysis.partner_changes
    assert abs(found - BORDER) <= 2


def test_a_change_of_rate_is_no_change_of_partners(tmp_path: Path) -> None:
    path = write(tmp_path / "t.db", [1.0] * 250 + [4.0] * (SLICES - 250), border=SLICES)
    analysis = analyze(path)
    (found,) = analysis.changes
    assert abs(found - 250) <= 2
    assert analysis.partner_changes == []


def test_algorithm_1_and_change_points_agree_on_borders_with_a_pause(tmp_path: Path) -> None:
    weights = np.full(SLICES, 10.0)
    weights[140:160] = 0.2  # the pause between two phases; the lowest 5 % of slices
    analysis = analyze(write(tmp_path / "t.db", weights.tolist(), border=150))
    borders = [phase.end for phase in analysis.phases[:-1]]
    assert any(138 <= border <= 162 for border in borders)
    assert all(min(abs(change - 140), abs(change - 160)) <= 2 for change in analysis.changes)
    assert len(analysis.changes) == 2
    (found,) = analysis.partner_changes
    assert 138 <= found <= 162  # in the pause hardly anything is exchanged


def test_matrices_of_phases(tmp_path: Path) -> None:
    path = write(tmp_path / "t.db", [1.0] * SLICES)
    analysis = analyze(path)
    with Trace.open(path) as trace:
        before, after = communication_by_phase(trace, analysis, [(0, BORDER), (BORDER, SLICES)])
        (whole,) = communication_by_phase(trace, analysis, [(0, SLICES)])
        with pytest.raises(UsageError, match="outside the timeline"):
            communication_by_phase(trace, analysis, [(0, SLICES + 1)])
    upper = np.triu_indices(THREADS, 1)
    assert np.corrcoef(before.matrix[upper], pairs(1)[upper])[0, 1] > 0.98
    assert np.corrcoef(after.matrix[upper], pairs(4)[upper])[0, 1] > 0.98
    assert np.allclose(whole.matrix, analysis.comm)


def test_events_in_bins_add_up_to_those_of_the_whole() -> None:
    rng = np.random.default_rng(2)
    count, threads = 5000, 4
    time = np.sort(rng.integers(0, 1000, count))
    thread, key = rng.integers(0, threads, count).astype(np.uint16), rng.integers(0, 1 << 16, count)
    is_write = (rng.random(count) < 0.4).astype(np.uint8)
    counter = PartnerCounter(Timeline(0, 100, np.zeros((10, threads))))
    for start in range(0, count, 700):
        part = slice(start, start + 700)
        counter.add(SharingSamples(time[part], thread[part], key[part].astype(np.uint64), is_write[part]))
    cells = counter.result()
    assert cells.shape == (10, 6)
    whole = communication_matrix(thread, key, is_write, time, threads=threads, rule="last_writer", block=4096)
    assert np.array_equal(cells.sum(axis=0), whole[np.triu_indices(threads, 1)])


def test_few_cells_or_none_change_nothing() -> None:
    assert share_changes(np.zeros((0, 3))) == []
    assert share_changes(np.ones((100, 1))) == []
    assert share_changes(np.zeros((100, 4))) == []


def test_one_thread_and_a_thousand_have_no_change_of_partners() -> None:
    for threads in (1, 1024):
        counter = PartnerCounter(Timeline(0, 10, np.zeros((400, threads))))
        thread = np.arange(2000, dtype=np.uint16) % threads
        time = np.arange(2000) * 2
        counter.add(SharingSamples(time, thread, np.arange(2000, dtype=np.uint64), np.ones(2000, np.uint8)))
        assert counter.changes() == []


def test_the_command_gives_matrices_of_phases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "t.db", [1.0] * SLICES)
    words = ["analyze", str(path), "--per-phase", "--json", "--slice", "1", "--to", str(tmp_path / "csv")]
    assert nmap(words) == 0
    document = msgspec.json.decode(capsys.readouterr().out)
    assert all(np.shape(phase["comm"]) == (THREADS, THREADS) for phase in document["phases"])
    assert len(document["partner_changes_ns"]) == 1
    rows = list(csv.reader((tmp_path / "csv" / "comm-phase-1.csv").read_text().splitlines()))
    assert np.allclose(np.array(rows, float), document["phases"][0]["comm"], rtol=1e-8)
    parts = document["stretches"]
    (border,) = document["partner_changes_ns"]
    assert [(part["start_ns"], part["end_ns"]) for part in parts] == [
        (document["phases"][0]["start_ns"], border),
        (border, document["phases"][-1]["end_ns"]),
    ]
    upper = np.triu_indices(THREADS, 1)
    for number, (part, step) in enumerate(zip(parts, (1, 4), strict=True), 1):
        assert np.corrcoef(np.array(part["comm"])[upper], pairs(step)[upper])[0, 1] > 0.95
        rows = list(csv.reader((tmp_path / "csv" / f"comm-stretch-{number}.csv").read_text().splitlines()))
        assert np.allclose(np.array(rows, float), part["comm"], rtol=1e-8)
    loads = np.sum([part["loads"] for part in parts], axis=0)
    assert loads.tolist() == document["accesses"]
    assert any("(Algorithm 1) begin at none of these" in said for said in document["summary"])
    assert nmap(["analyze", str(path), str(path), "--per-phase"]) == 2
    assert "name one trace" in capsys.readouterr().err


def test_the_page_marks_the_border(tmp_path: Path) -> None:
    analysis = analyze(write(tmp_path / "t.db", [1.0] * SLICES))
    figure = timeline_figure(analysis, [str(number) for number in range(THREADS)])
    (line,) = figure["layout"]["shapes"]
    assert line["x0"] == pytest.approx(analysis.partner_changes[0])  # slices of 1 ms, from 0
