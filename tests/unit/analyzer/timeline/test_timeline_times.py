"""Times of slices as people read them."""

import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.analyzer import Analysis, analyze_trace, merge_analyses
from numaplan.analyzer.report.figures.timeline import timeline_figure
from numaplan.analyzer.timeline.timeline import Timeline
from numaplan.profiler import Trace
from tests.unit.analyzer.samples.test_trace_analysis import HEAP, Row, write
from tests.unit.mapper.commands.test_analyze_command import nmap

THREADS = (("p0", "0"), ("p0", "0.1"))


@pytest.mark.parametrize(
    "start,width,said",
    [(0, 1_000_000, "3"), (2_000_000, 5_000_000, "17"), (0, 9_927, "0.030"), (7, 1, "0.000010")],
)
def test_neighbouring_slices_are_told_apart(start: int, width: int, said: str) -> None:
    timeline = Timeline(start, width, np.zeros((9, 2)))
    assert timeline.moment(3) == said
    assert len({timeline.moment(place) for place in range(9)}) == 9


def in_halves(path: Path, clock: str) -> Path:
    """Thread 0 for a thousand slices, then thread 1 at five times the rate."""
    slow: list[Row] = [(time * 100_000, 0, HEAP + 64 * (time % 999), False, 0) for time in range(10_000)]
    fast: list[Row] = [(10**9 + time * 20_000, 1, HEAP + 64 * (time % 7), True, 0) for time in range(50_000)]
    return write(path, [*slow, *fast], THREADS, meta={"clock": clock})


def analysis_of(path: Path) -> Analysis:
    with Trace.open(path) as trace:
        return analyze_trace(trace)


@pytest.mark.parametrize(
    "clock,said,bound,axis,told",
    [
        ("accesses", "M accesses", "from access", "emulated accesses since", "accesses"),
        ("host", "ms", "from", "(ms)", "time"),
    ],
)
def test_times_of_emulated_runs_are_accesses(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    clock: str,
    said: str,
    bound: str,
    axis: str,
    told: str,
) -> None:
    path = in_halves(tmp_path / "t.db", clock)
    analysis = analysis_of(path)
    assert len(analysis.phases) > 1
    assert analysis.timeline.unit == said
    figure = timeline_figure(analysis, ["0", "0.1"])
    assert axis in figure["layout"]["xaxis"]["title"]["text"]
    assert all(said in str(line.get("hovertemplate", line.get("_time_unit"))) for line in figure["data"])
    assert nmap("analyze", str(path)) == 0
    shown = capsys.readouterr().out
    heads = next(line.split("  ") for line in shown.splitlines() if "accesses a slice" in line)
    assert bound in [head.strip() for head in heads]
    assert re.search(rf"rates of access change at [\d,.]+ {said}\n", shown)
    assert nmap("analyze", str(path), "--json") == 0
    assert msgspec.json.decode(capsys.readouterr().out)["clock"] == told


def test_a_mean_of_runs_is_on_their_clock(tmp_path: Path) -> None:
    emulated, other = (analysis_of(in_halves(tmp_path / f"{clock}.db", clock)) for clock in ("accesses", ""))
    for analyses, answer in ((emulated, emulated), True), ((emulated, other), False):
        assert merge_analyses(analyses).timeline.in_accesses is answer


@pytest.mark.parametrize(
    "width, words", [(1, "1 access,"), (20, "20 accesses,"), (2_500_000, "2.5 M accesses,")]
)
def test_how_wide_slices_of_accesses_are(tmp_path: Path, width: int, words: str) -> None:
    analysis = analysis_of(in_halves(tmp_path / "t.db", "accesses"))
    analysis = replace(analysis, timeline=replace(analysis.timeline, slice_ns=width))
    assert f"in slices of {words}" in timeline_figure(analysis, ["0", "0.1"])["about"]
