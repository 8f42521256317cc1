"""`nmap analyze` on small traces: its document, its drawing, its errors."""

import csv
import io
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from numaplan.analyzer import analyze_trace, page_accesses, placement_summary, region_uses
from numaplan.analyzer.report.document import analysis_document
from numaplan.analyzer.report.terminal import heat_map
from numaplan.mapper.commands.main import main
from numaplan.profiler import Trace
from tests.unit.analyzer.test_trace_analysis import HEAP, exchange, write


def nmap(*words: str) -> int:
    return main(words)


def test_analyze_prints_one_json_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "t.db", exchange(HEAP, 0))
    assert nmap("analyze", str(path), "--json", "--to", str(tmp_path / "csv")) == 0
    document: dict[str, Any] = msgspec.json.decode(capsys.readouterr().out)
    assert document["schema"] == "numaplan/analysis/1"
    assert document["threads"] == ["0", "0.1", "0.2"]
    assert document["comm"] == [[0, 10, 0], [10, 0, 0], [0, 0, 0]]
    assert document["loads"] == pytest.approx([10, 10, 0])
    assert document["confidence"] == 1
    for phase in document["phases"]:
        assert {"start_ns", "end_ns", "weight", "loads"} <= phase.keys()
    files = {
        file.name: list(csv.reader(io.StringIO(file.read_text()))) for file in (tmp_path / "csv").iterdir()
    }
    assert files["comm.csv"] == [["0", "10", "0"], ["10", "0", "0"], ["0", "0", "0"]]
    assert [row[0] for row in files["loads.csv"]] == ["10", "10", "0"]
    assert files["timeline.csv"][0] == ["start_ns", "accesses 0", "accesses 0.1", "accesses 0.2"]
    assert sum(float(row[1]) for row in files["timeline.csv"][1:]) == 10
    assert files["phases.csv"][0][:3] == ["start_ns", "end_ns", "weight"]


def test_analyze_draws_on_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "t.db", exchange(HEAP, 0))
    assert nmap("analyze", str(path)) == 0
    text = capsys.readouterr().out
    assert "3 threads" in text and "heap app+0x10" in text and "20 samples" in text


def test_the_heat_map_fits_its_width() -> None:
    comm = np.roll(np.eye(300), 1, axis=1) + np.roll(np.eye(300), -1, axis=1)
    lines = heat_map(comm, 80, True)
    assert 1 < len(lines) <= 38 and all(len(line) <= 80 for line in lines)
    assert len(heat_map(comm[:5, :5], 80, True)) == 5


def test_errors_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert nmap("analyze", str(tmp_path / "none.db")) == 2
    path = write(tmp_path / "t.db", exchange(HEAP, 0))
    assert nmap("report", str(path), "-o", str(tmp_path / "no" / "r.html")) == 2
    (tmp_path / "plan.json").write_text("[]")
    assert nmap("report", str(path), "--plan", str(tmp_path / "plan.json")) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 3 and all(line.startswith("nmap: error: ") for line in lines)
    assert not list(tmp_path.glob("*.html"))


def test_the_summary_names_who_belongs_together(tmp_path: Path) -> None:
    rows = []
    threads = [("p0", "0" if i == 0 else f"0.{i}") for i in range(6)]
    for one in (0, 2, 4):
        rows += exchange(HEAP + one * 65536, 0, one, one + 1, 50)
    with Trace.open(write(tmp_path / "t.db", rows, threads)) as trace:
        analysis = analyze_trace(trace)
        regions = region_uses(trace, page_accesses(trace))
    said = placement_summary(analysis, regions)
    assert any("threads 0.2, 0.3 exchange 33% of all communication" in sentence for sentence in said)
    assert any("heap app+0x10" in sentence for sentence in said)
    assert analysis_document(analysis, regions, [], said)["summary"] == said
