"""Traces, analyses and plans in a notebook: what they show, their frames, and the example that is run."""

import ast
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

from numaplan.analyzer import analyze_trace
from numaplan.common import UsageError
from numaplan.mapper import Plan, PlanOptions, make_plan
from numaplan.mapper.workload.from_trace import workload_of_trace
from numaplan.profiler import Machine, Trace
from tests.unit.analyzer.samples.test_trace_analysis import HEAP, exchange, write

NOTEBOOK = Path(__file__).parents[4] / "examples" / "notebook.ipynb"
EVIL = "<script>alert(1)</script>"
HTML = re.compile(r"(<(?:/?(?:div|strong|table|tr|th|td|ul|li)|svg|/svg|rect)\b[^<>]*>|[^<>]*)*")


def a_trace(folder: Path, argv: str = "app") -> Path:
    rows = exchange(HEAP, 0, lines=40) + exchange(HEAP + 65536, 0, 1, 2, lines=30)
    return write(folder / "trace.db", sorted(rows), meta={"argv": f'["{argv}"]', "duration_ns": 1000})


class Cell(msgspec.Struct):
    cell_type: str
    source: list[str]
    id: str
    outputs: list[Any] = []


class Notebook(msgspec.Struct):
    nbformat: int
    nbformat_minor: int
    cells: list[Cell]


def test_the_example_runs_cell_by_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = msgspec.json.decode(NOTEBOOK.read_bytes(), type=Notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    assert not any(cell.outputs for cell in notebook.cells), "no outputs are stored"
    a_trace(tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    shown: list[str] = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            value = run_cell("".join(cell.source), names)
            if hasattr(value, "_repr_html_"):
                shown.append(type(value).__name__)
                assert value._repr_html_()
    assert shown == ["Trace", "DataFrame", "DataFrame", "Analysis", "DataFrame", "Plan", "DataFrame"]
    assert Plan.load(tmp_path / "plan.json").threads


def run_cell(text: str, names: dict[str, Any]) -> object:
    """What a cell shows: the value of its last expression."""
    tree = ast.parse(text)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None  # type: ignore[attr-defined]


def test_what_they_show_is_small_and_escaped(tmp_path: Path) -> None:
    path = a_trace(tmp_path, EVIL)
    with Trace.open(path) as trace:
        shown = [trace._repr_html_(), analyze_trace(trace)._repr_html_()]
    plan = make_plan(workload_of_trace(path), Machine.load("2x2"), PlanOptions(objective="remote")).plan
    shown.append(plan._repr_html_())
    for text in shown:
        assert HTML.fullmatch(text) and EVIL not in text and len(text) < 65536
    assert "&lt;script&gt;" in shown[0] and "&lt;script&gt;" in shown[2] and "<svg" in shown[1]


def test_frames_hold_what_the_objects_do(tmp_path: Path) -> None:
    path = a_trace(tmp_path)
    with Trace.open(path) as trace:
        analysis = analyze_trace(trace)
        assert len(trace.frame("samples")) == trace.sample_count == analysis.samples
        pd.testing.assert_frame_equal(trace.frame("threads"), trace.threads())
        with pytest.raises(UsageError, match="no table 'x; DROP'"):
            trace.frame("x; DROP")
    comm = analysis.frame("comm")
    assert (comm.to_numpy() == analysis.comm).all() and list(comm.columns) == ["0", "0.1", "0.2"]
    assert analysis.frame("threads")["load"].tolist() == analysis.loads.tolist()
    assert analysis.frame("timeline").sum().sum() == pytest.approx(analysis.timeline.per_thread.sum())
    phases = analysis.frame("phases")
    assert len(phases) == len(analysis.phases) and (phases["end_ns"] > phases["start_ns"]).all()
    assert np.array_equal(phases[["0", "0.1", "0.2"]], [phase.loads for phase in analysis.phases])
    plan = make_plan(workload_of_trace(path), Machine.load("2x2"), PlanOptions(objective="remote")).plan
    threads, memory = plan.frame("threads"), plan.frame("memory")
    assert threads["node"].tolist() == [thread.node for thread in plan.threads]
    assert memory["bytes"].sum() == sum(run.bytes for region in plan.memory for run in region.runs)
    for thing in (analysis, plan):
        with pytest.raises(UsageError, match="no frame 'other'"):
            thing.frame("other")
