"""The matrix from counted transfers, alone and beside what samples tell of other processes."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from numaplan.analyzer import analyze_trace, communication_by_phase
from numaplan.profiler import EVENT_CODE, Trace
from tests.support.traces import write_trace

HEAP, STACK, FILE = 0x10000, 0x800000, 0xA00000
Row = tuple[int, int, int, int, int, int]  # start, end, writer, reader, region, events


def write(
    path: Path, transfers: Sequence[Row], processes: Sequence[str] = ("p0", "p0", "p0"), first: int = 0
) -> Path:
    """The last two threads exchange a line in samples, in one file; those before use memory of their own.

    first: when the first sample is.
    """
    time = np.arange(400)
    thread = time % len(processes)
    shared = thread >= len(processes) - 2
    samples = {
        "time_ns": first + time * 1000,
        "thread": thread,
        "addr": np.where(shared, FILE, HEAP + 64 * thread),
        "is_write": shared,
        "event": np.where(shared, EVENT_CODE["store"], EVENT_CODE["load"]),
        "region": np.where(shared, 2, 0),
    }
    files = [
        (2 + i, name, "file", "/shared", "", FILE, 1 << 16, -1, 0, 0, -1)
        for i, name in enumerate(set(processes))
    ]
    return write_trace(
        path,
        samples,
        [(i, process, f"0.{i}", 10 + i, 10, "worker", 0, -1) for i, process in enumerate(processes)],
        [
            (0, "p0", "heap", "app+0x10", "b", HEAP, 1 << 16, 0, 1, 0, -1),
            (1, "p0", "stack", "0.1", "b", STACK, 1 << 16, 1, 0, 0, -1),
            *files,
            (9, "p0", "static", "libgomp.so.1:.data", "", HEAP << 2, 1 << 16, -1, 0, 0, -1),
        ],
        {"period": 1000, "clock": "accesses"},
        transfers=transfers,
    )


def test_the_matrix_is_what_was_counted(tmp_path: Path) -> None:
    rows = [(0, 100_000, 0, 1, 0, 30), (0, 100_000, 1, 0, 0, 12), (100_000, 400_000, 2, 0, -1, 5)]
    with Trace.open(write(tmp_path / "t.db", [*rows, (0, 9, 0, 2, 9, 1000)])) as trace:
        found = analyze_trace(trace)
    assert found.comm.tolist() == [[0, 42, 5], [42, 0, 0], [5, 0, 0]]  # runtimes tell nothing
    assert (found.events, found.confidence, found.layers) == (47, 1.0, {"counted": 1.0})
    assert not found.standard_error.any()


def test_a_graph_says_what_it_leaves_out_of_what_was_counted(tmp_path: Path) -> None:
    rows = [(0, 100_000, 0, 1, 0, 30), (100_000, 400_000, 2, 0, -1, 5), (0, 9, 0, 2, 9, 1000)]
    with Trace.open(write(tmp_path / "t.db", rows)) as trace:
        found = analyze_trace(trace)
        ((counted,),) = trace.rows("SELECT sum(events)::BIGINT FROM transfers")
    graph = found.graph()
    assert graph.graph == {"events": 35, "left_out": 1000}
    assert graph.size("weight") + graph.graph["left_out"] == counted
    assert found.graph(found.comm / 2).graph == {}


def test_what_threads_share_on_a_stack_is_communication(tmp_path: Path) -> None:
    """As an array that is local to main, which OpenMP's threads work on."""
    with Trace.open(write(tmp_path / "t.db", [(0, 100_000, 0, 1, 1, 30), (0, 9, 0, 2, 0, 1)])) as trace:
        found = analyze_trace(trace)
    assert found.comm[0].tolist() == [0, 30, 1] and found.left_out == 0


def test_nothing_counted_is_no_communication(tmp_path: Path) -> None:
    with Trace.open(write(tmp_path / "t.db", [])) as trace:
        found = analyze_trace(trace)
    assert not found.comm.any() and any("no communication was seen" in note for note in found.notes)


def test_a_part_has_the_stretches_whose_middle_it_has(tmp_path: Path) -> None:
    rows = [(0, 100_000, 0, 1, 0, 30), (100_000, 400_000, 2, 0, 0, 5)]
    with Trace.open(write(tmp_path / "t.db", rows)) as trace:
        whole = analyze_trace(trace)
        line = whole.timeline
        border = (100_000 - line.start_ns) // line.slice_ns
        parts = communication_by_phase(trace, whole, [(0, border), (border, len(line.per_thread))])
        assert [part.matrix[0].tolist() for part in parts] == [[0, 30, 0], [0, 0, 5]]
        with trace.between(0, 60_000) as part:
            assert analyze_trace(part).comm[0].tolist() == [0, 30, 0]


def test_the_first_and_last_part_have_what_was_counted_beyond_the_samples(tmp_path: Path) -> None:
    """Few samples of a short program leave much before the first and after the last."""
    rows = [(0, 2, 0, 1, 0, 30), (10**9, 10**9 + 2, 2, 0, 0, 5)]
    with Trace.open(write(tmp_path / "t.db", rows, first=1000)) as trace:
        whole = analyze_trace(trace)
        line = whole.timeline
        assert line.start_ns > 1 and line.start_ns + len(line.per_thread) * line.slice_ns < 10**9
        last = len(line.per_thread)
        parts = communication_by_phase(trace, whole, [(0, last), (0, 1), (1, last)])
    assert [part.matrix[0].tolist() for part in parts] == [[0, 30, 5], [0, 30, 0], [0, 0, 5]]


@pytest.mark.parametrize("counted", [0, 700])
def test_between_processes_samples_tell(tmp_path: Path, counted: int) -> None:
    rows = [(0, 100_000, 0, 1, 0, counted)] if counted else []
    with Trace.open(write(tmp_path / "t.db", rows, ("p0", "p0", "p0.1"))) as trace:
        found = analyze_trace(trace)
    assert found.comm[0, 1] == counted and found.comm[1, 2] > 0 and found.comm[0, 2] == 0
    assert found.confidence < 1.0
    assert (0 < found.layers["counted"] < 1.0) == bool(counted)


@pytest.mark.parametrize(
    ("processes", "said"),
    [(("p0", "p1", "p1"), True), (("p0", "p0", "p1"), False), (("p0", "p0", "p0"), False)],
)
def test_it_is_said_where_nothing_shows_what_processes_exchange(
    tmp_path: Path, processes: tuple[str, ...], said: bool
) -> None:
    with Trace.open(write(tmp_path / "t.db", [], processes)) as trace:
        notes = analyze_trace(trace).notes
    assert any("--backend lab" in note for note in notes) == said


def test_rows_that_name_no_thread_or_region_do_no_harm(tmp_path: Path) -> None:
    wrong = [(0, 9, 7, 1, 0, 5), (0, 9, -1, 1, 0, 5), (0, 9, 1, 1, 0, 5), (0, 9, 0, 1, 0, -5)]
    with Trace.open(write(tmp_path / "t.db", [*wrong, (0, 9, 0, 1, 99, 3)])) as trace:
        assert analyze_trace(trace).comm.tolist() == [[0, 3, 0], [3, 0, 0], [0, 0, 0]]
