"""The drawing of the machine with its threads: who is where, by a plan or as recorded."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from numaplan.analyzer import analyze_trace
from numaplan.analyzer.report.machine_view import machine_section
from numaplan.analyzer.report.plan_view import PlanView
from numaplan.profiler import EVENT_CODE, Trace
from tests.support.traces import write_trace

EVIL = "<b>0.2"


def a_trace(path: Path, backend: str = "pebs") -> Path:
    count = 600
    thread = np.arange(count) % 3
    samples = {"time_ns": np.arange(count), "thread": thread, "cpu": 3 - thread, "addr": 4096 * thread}
    names = ["0", "0.1", EVIL]
    rows = [(one, "p0", name, 10 + one, 10, "app", 0, -1) for one, name in enumerate(names)]
    return write_trace(
        path, samples | {"event": EVENT_CODE["load"]}, rows, meta={"backend": backend, "period": 1}
    )


def view_of(*cpus: list[int]) -> PlanView:
    """A plan that gives these cpus to the threads of the trace."""
    names = ["0", "0.1", EVIL]
    content: dict[str, Any] = {
        "machine": {"nodes": [{"id": 0, "cpus": [0, 1]}, {"id": 4, "cpus": [2, 3]}, {"id": 7, "cpus": []}]},
        "threads": [{"path": name, "node": 0, "cpus": own} for name, own in zip(names, cpus, strict=True)],
        "memory": [{"runs": [{"offset": 0, "bytes": 8192, "node": 7}]}],
    }
    nothing = np.zeros(3, np.int64)
    return PlanView([0, 4], nothing, nothing, {}, content)


def boxes(path: Path, view: PlanView | None) -> list[str]:
    with Trace.open(path) as trace:
        text = machine_section(analyze_trace(trace), trace, view)
    assert EVIL not in text and text.count("<div") == text.count("</div>")
    return [re.sub("<[^<]*>", " ", box) for box in text.split('<div class="node">')[1:]]


def test_threads_stand_on_the_cpus_of_the_plan(tmp_path: Path) -> None:
    first, second, third = boxes(a_trace(tmp_path / "t.db"), view_of([1], [1], [2]))
    assert "2 threads, 67% of the load" in first and "0, 0.1" in first
    assert "node 4" in second and "1 thread, 33% of the load" in second and "&lt;b&gt;0.2" in second
    assert "node 7 (memory only)" in third and "8 KiB placed" in third


def test_threads_of_several_cpus_stand_in_their_node(tmp_path: Path) -> None:
    first, second, _ = boxes(a_trace(tmp_path / "t.db"), view_of([0, 1], [0, 1, 2, 3], [2, 3]))
    assert "1 thread, 33% of the load, 1 more that may run here" in first
    assert "1 thread, 33% of the load, 1 more that may run here" in second


def test_cells_tell_which_cpus_a_thread_may_have(tmp_path: Path) -> None:
    """A cache's, of a node that has several."""
    content: dict[str, Any] = {
        "machine": {"nodes": [{"id": 0, "cpus": list(range(8))}]},
        "threads": [
            {"path": name, "node": 0, "cpus": own}
            for name, own in (("0", [0, 1, 2, 3]), ("0.1", [5]), (EVIL, list(range(8))))
        ],
    }
    view = PlanView([0], np.zeros(3, np.int64), np.zeros(3, np.int64), {}, content)
    with Trace.open(a_trace(tmp_path / "t.db")) as trace:
        text = machine_section(analyze_trace(trace), trace, view)
    assert re.findall('title="([^:]*):', text) == ["cpus 0-3", "cpu 5", "any cpu"]


def test_without_a_plan_they_stand_where_they_were_recorded(tmp_path: Path) -> None:
    first, second = boxes(a_trace(tmp_path / "t.db"), None)
    assert "1 thread," in first and "2 threads," in second
    assert boxes(a_trace(tmp_path / "e.db", "emulate"), None) == [], "an emulator's choice says nothing"
