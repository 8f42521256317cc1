"""Inputs of online policies from a trace: latency by node, misses, 3DyRM, exclusivity."""

from pathlib import Path

import numpy as np
import pytest

from numaplan.analyzer import (
    counter_totals,
    dino_classes,
    dynamic_roofline,
    exclusivity,
    misses_per_kilo_instructions,
    node_use,
    process_exclusivity,
    trace_roofline,
)
from numaplan.analyzer.report.document import policy_document
from numaplan.common import UsageError
from numaplan.profiler import EVENT_CODE, LEVEL_CODE, Machine, Trace, TraceWriter

Row = tuple[int, int, int, str]  # thread, node, latency, level


def write(
    path: Path,
    rows: list[Row],
    counters: list[tuple[int, int, str, float]] | None = None,
    processes: tuple[str, ...] = ("p0", "p0", "p0"),
    meta: dict[str, str] | None = None,
) -> Path:
    thread, node, latency, level = zip(*rows, strict=True)
    count = len(rows)
    with TraceWriter(path) as writer:
        writer.add_rows("machine", [(Machine.load("2x2").to_json().decode(),)])
        writer.add_rows("threads", [(i, p, f"0.{i}", i, 1, "t", 0, -1) for i, p in enumerate(processes)])
        writer.add_rows("counters", counters or [])
        writer.add_samples(
            {
                "time_ns": np.arange(count),
                "thread": np.array(thread, np.int32),
                "cpu": np.full(count, -1, np.int32),
                "node": np.array(node, np.int32),
                "addr": np.full(count, 64, np.uint64),
                "phys_addr": np.zeros(count, np.uint64),
                "ip": np.zeros(count, np.uint64),
                "event": np.full(count, EVENT_CODE["load"], np.uint8),
                "is_write": np.zeros(count, bool),
                "level": np.array([LEVEL_CODE[name] for name in level], np.uint8),
                "latency": np.array(latency, np.int32),
                "region": np.full(count, -1, np.int32),
            }
        )
        writer.set_meta({"backend": "test", "period": 100, **(meta or {})})
    return path


ROWS: list[Row] = [
    (0, 1, 100, "local_dram"),
    (0, 1, 300, "remote_dram"),
    (0, 3, 50, "l2"),
    (1, 3, 70, "l3"),
    (1, 3, -1, "l1"),
    (2, -1, 10, "l1"),
]


def test_latency_of_threads_on_nodes(tmp_path: Path) -> None:
    with Trace.open(write(tmp_path / "t.db", ROWS)) as trace:
        use = node_use(trace)
    assert use.nodes == [1, 3]
    assert use.samples.tolist() == [[2, 1], [0, 2], [0, 0]]
    assert use.latency.tolist() == [[200, 50], [-1, 70], [-1, -1]]
    assert use.node_latency.tolist() == [200, 60]
    assert use.home.tolist() == [0, 1, -1]


def test_a_trace_that_knows_no_node(tmp_path: Path) -> None:
    with Trace.open(write(tmp_path / "t.db", [(0, -1, -1, "l1")])) as trace:
        use = node_use(trace)
        assert process_exclusivity(trace) == {"p0": -1}
    assert use.nodes == [] and use.node_latency.tolist() == [] and use.home.tolist() == [-1, -1, -1]


def test_misses_per_thousand_instructions(tmp_path: Path) -> None:
    instructions = [(5, 0, "instructions", 30_000.0), (9, 0, "instructions", 70_000.0)]
    with Trace.open(write(tmp_path / "a.db", ROWS, instructions)) as trace:
        assert counter_totals(trace)["instructions"].tolist() == [100_000, -1, -1]
        assert misses_per_kilo_instructions(trace).tolist() == [2.0, -1, -1]  # two samples, period 100
    periods = {"periods": '{"load": 400, "store": 50}'}
    with Trace.open(write(tmp_path / "p.db", ROWS, instructions, meta=periods)) as trace:
        assert misses_per_kilo_instructions(trace).tolist() == [8.0, -1, -1]  # both were loads
    other_cache = [(0, 1, 100, "remote_cache")] * 3
    with Trace.open(write(tmp_path / "r.db", [*ROWS, *other_cache], instructions)) as trace:
        assert misses_per_kilo_instructions(trace).tolist() == [5.0, -1, -1]
    counted = [*instructions, (9, 0, "llc_misses_local", 400.0), (9, 0, "llc_misses_remote", 100.0)]
    with Trace.open(write(tmp_path / "b.db", ROWS, counted)) as trace:
        assert misses_per_kilo_instructions(trace).tolist() == [5.0, -1, -1]
    with Trace.open(write(tmp_path / "c.db", ROWS)) as trace:
        assert misses_per_kilo_instructions(trace).tolist() == [-1, -1, -1]
    assert dino_classes([1.9, 2, 100, 101, -1]) == ["turtle", "devil", "devil", "super-devil", "unknown"]


def test_3dyrm_as_in_the_equations() -> None:
    intensity, performance, relative = dynamic_roofline(
        [6400, 12800, 100, 0], [10, 10, 1, 5], [100, 100, 50, 5], [0, 0, 1, 1]
    )
    assert intensity.tolist() == [10, 20, 100 / 64, -1]
    assert performance.tolist() == [640, 2560, 3.125, -1]
    assert relative.tolist() == [0.4, 1.6, 1, -1]
    with pytest.raises(UsageError, match="differ in length"):
        dynamic_roofline([1], [1, 2], [1], [0])


def test_3dyrm_of_a_traces_threads(tmp_path: Path) -> None:
    """Both run 1 s: 10^6 and 2 * 10^6 instructions for 500 lines of 64 bytes; latencies 150 and 70."""
    counters = [(9, 0, "instructions", 1e6), (9, 1, "instructions", 2e6)]
    counters += [(9, thread, "llc_misses_local", 500.0) for thread in (0, 1)]
    meta = {"duration_ns": "1000000000"}
    with Trace.open(write(tmp_path / "t.db", ROWS, counters, meta=meta)) as trace:
        intensity, performance, relative = trace_roofline(trace)
    assert intensity == pytest.approx([1e6 / 32000, 2e6 / 32000, -1])
    expected = np.array([1e6 * 1e6 / 32000 / 150, 2e6 * 2e6 / 32000 / 70])
    assert performance == pytest.approx([*expected, -1])
    assert relative == pytest.approx([*(expected / expected.mean()), -1])


def test_exclusivity_as_in_the_papers_table() -> None:
    # [EXCL], Table 3 (a) and (b): hexagon 4/5, rectangle 2/5, pentagon 3/4.
    found = exclusivity([[4, 1, 0], [2, 2, 1], [3, 1, 0], [0, 0, 0]])
    assert found.tolist() == [0.8, 0.4, 0.75, -1]
    with pytest.raises(UsageError, match="not a table"):
        exclusivity([1, 2])


def test_the_document_holds_them(tmp_path: Path) -> None:
    with Trace.open(write(tmp_path / "t.db", ROWS)) as trace:
        inputs = policy_document(trace)["policy_inputs"]
    assert inputs["nodes"] == [1, 3] and inputs["latency"][0] == [200, 50]
    assert inputs["dino_class"] == ["unknown"] * 3
    assert inputs["exclusivity"] == {"p0": 0.5}
    assert inputs["roofline"]["relative"] == [-1] * 3


def test_exclusivity_of_processes(tmp_path: Path) -> None:
    rows: list[Row] = [(0, 0, 1, "l1"), (1, 0, 1, "l1"), (2, 1, 1, "l1"), (3, 1, 1, "l1")]
    path = write(tmp_path / "t.db", rows, processes=("p0", "p0", "p0", "p0.1"))
    with Trace.open(path) as trace:
        assert process_exclusivity(trace) == pytest.approx({"p0": 2 / 3, "p0.1": 1})
