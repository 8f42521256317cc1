"""`nmap analyze` on small traces: its document, its drawing, its errors."""

import csv
import io
from pathlib import Path
from typing import Any

import msgspec
import networkx as nx
import numpy as np
import pytest

from numaplan.analyzer import analyze_trace, page_accesses, placement_summary, region_uses
from numaplan.analyzer.communication.side_by_side import one_part
from numaplan.analyzer.report.document import analysis_document
from numaplan.analyzer.report.terminal import heat_map
from numaplan.mapper.commands.main import main
from numaplan.profiler import Trace
from tests.support.traces import write_trace
from tests.unit.analyzer.samples.test_trace_analysis import HEAP, exchange, write
from tests.unit.profiler.test_export import read_perfetto


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
    lines = heat_map(one_part(comm), 80, True)
    assert 1 < len(lines) <= 38 and all(len(line) <= 80 for line in lines)
    assert len(heat_map(one_part(comm[:5, :5]), 80, True)) == 5


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


@pytest.mark.slow
def test_two_programs_are_not_merged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = [
        {"build_id": "b1"},
        {"build_id": "b2"},
        {"executable": "heat"},
        {"executable": "ring"},
        {"build_id": "b3", "argv": '["python3", "heat.py"]'},
        {"build_id": "b3", "argv": '["python3", "ring.py"]'},
    ]
    one, two, three, four, heat, ring = (
        str(write(tmp_path / f"{number}.db", exchange(HEAP, 0), meta=dict(meta)))
        for number, meta in enumerate(facts)
    )
    for other, first in ((two, one), (four, three), (ring, heat)):
        assert nmap("analyze", first, other) == 2
        said = capsys.readouterr()
        assert said.out == "" and len(said.err.strip().splitlines()) == 1
        assert f"{other}: of another program, or another build of it" in said.err
    again = write(tmp_path / "again.db", exchange(HEAP, 0), meta=dict(facts[0]))
    assert nmap("analyze", one, str(again), "--json") == 0
    assert nmap("analyze", one, three, "--json") == 0, "nothing tells that they differ"
    rank = write(tmp_path / "r1.db", exchange(HEAP, 0), [("r1", "0"), ("r1", "0.1")], meta={"build_id": "b2"})
    assert nmap("analyze", one, str(rank), "--json") == 0, "a job may be of several programs"


def test_a_report_with_another_programs_plan_is_not_a_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def trace(build: str, program: str) -> str:
        meta = {"build_id": build, "argv": f'["./{program}"]'}
        return str(write(tmp_path / f"{build}.db", exchange(HEAP, 0), meta=dict(meta)))

    plan, page = tmp_path / "plan.json", tmp_path / "r.html"
    heat, rebuilt, ring = trace("b1", "heat"), trace("b2", "heat"), trace("b3", "ring")
    assert nmap("plan", heat, "--machine", "2x2", "-o", str(plan)) == 0
    for path, code, said in (
        (heat, 0, ""),
        (rebuilt, 0, "warning: the plan is for another build of heat"),
        (ring, 1, "error: the plan is for another program (heat) than the trace (ring)"),
    ):
        page.unlink(missing_ok=True)
        capsys.readouterr()
        assert nmap("report", path, "--plan", str(plan), "-o", str(page)) == code
        told = capsys.readouterr().err
        assert said in told and page.exists()
        assert bool(said) == ("the plan is for" in told)


def test_graphs_say_where_threads_were(tmp_path: Path) -> None:
    samples = {"time_ns": np.arange(9), "thread": np.arange(9) % 3, "node": [0, 1, -1] * 3, "addr": 4096}
    threads = [(one, "p0", f"0.{one}" if one else "0", 10 + one, 10, "app", 0, -1) for one in range(3)]
    path = write_trace(tmp_path / "t.db", samples | {"is_write": True}, threads, meta={"period": 1})
    assert nmap("analyze", str(path), "--to", str(tmp_path / "g"), "--format", "graphml") == 0
    graph = nx.read_graphml(tmp_path / "g" / "comm.graphml", node_type=int)
    assert dict(graph.nodes(data="node")) == {0: 0, 1: 1, 2: None}
    assert {load for _, load in graph.nodes(data="load")} == {3.0}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--format", "graphml"), "--format graphml without --to"),
        (("--format", "perfetto", "--to", "out", "t.db"), "--format perfetto with several traces"),
        (("--format", "speedscope", "--to", "out"), "--format speedscope"),
    ],
)
def test_a_format_that_nothing_can_be_written_in_is_an_error(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nmap("analyze", "t.db", *words) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_phases_are_tracks_for_perfetto(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "t.db", exchange(HEAP, 0))
    assert nmap("analyze", str(path), "--to", str(tmp_path / "out"), "--format", "perfetto", "--json") == 0
    document: dict[str, Any] = msgspec.json.decode(capsys.readouterr().out)
    _, spans, _ = read_perfetto((tmp_path / "out" / "trace.pftrace").read_bytes())
    found = {name: (start, end) for start, end, name, _ in spans}
    phase = document["phases"][0]
    assert found["phase 1"] == (phase["start_ns"], phase["end_ns"])
    assert "stretch 1" in found


def test_another_script_of_one_interpreter_is_another_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heat, ring = (
        str(write(tmp_path / f"{name}.db", exchange(HEAP, 0), meta={"build_id": "b", "argv": argv}))
        for name, argv in (("heat", '["python3", "heat.py", "3"]'), ("ring", '["python3", "ring.py", "3"]'))
    )
    plan, page = str(tmp_path / "plan.json"), str(tmp_path / "r.html")
    assert nmap("plan", heat, "--machine", "2x2", "-o", plan) == 0
    assert nmap("report", heat, "--plan", plan, "-o", page) == 0
    capsys.readouterr()
    assert nmap("report", ring, "--plan", plan, "-o", page) == 1
    assert (
        "is for another program (python3 heat.py) than the trace (python3 ring.py)" in capsys.readouterr().err
    )
    nmap("check", ring, "--baseline", plan)
    assert "was made for another program (python3 heat.py, not python3 ring.py)" in capsys.readouterr().err
