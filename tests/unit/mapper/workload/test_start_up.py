"""Load of a thread that is alone is no load to balance."""

from pathlib import Path

import numpy as np
import pytest

from numaplan.mapper import PlanOptions, make_plan
from numaplan.mapper.workload.from_trace import crowded_time
from numaplan.mapper.workload.pages import team_starts
from numaplan.mapper.workload.runs import workload_of_traces
from numaplan.profiler import EVENT_CODE, Machine, Trace
from tests.support.traces import write_trace

THREADS = 5
START, END = 400_000_000, 900_000_000  # in between the others live, in a run of 1 s
SAMPLES = 50_000


def record(path: Path, *, ends: bool = True, processes: int = 1) -> Path:
    """Main works at any time, the others while they live; no two share memory."""
    rng = np.random.default_rng(1)
    time = np.sort(rng.integers(0, 10**9, SAMPLES))
    living = (time >= START) & (time < END)
    thread = np.where(living, rng.integers(0, THREADS, SAMPLES), 0)
    threads = [(0, "p0", "0", 1, 1, "t", 0, -1)]
    threads += [
        (i, f"p{i % processes}", f"0.{i}", 1, 1, "t", START, END if ends else -1) for i in range(1, THREADS)
    ]
    addr = (thread + 1) * (1 << 24) + rng.integers(0, 1 << 12, SAMPLES) * 8
    samples = {
        "time_ns": time,
        "thread": thread,
        "addr": addr,
        "event": EVENT_CODE["store"],
        "is_write": True,
    }
    return write_trace(path, samples, threads, meta={"period": 100})


def test_threads_share_the_nodes_whatever_main_did_before(tmp_path: Path) -> None:
    workload = workload_of_traces([record(tmp_path / "t.db")])
    assert np.allclose(workload.loads / workload.loads.mean(), 1, atol=0.15)
    assert any("alone" in note for note in workload.not_balanced)
    plan = make_plan(workload, Machine.load("2x2"), PlanOptions()).plan
    others = [thread.node for thread in plan.threads[1:]]
    # By all that it accessed, main had more than half of the load and a node of its own.
    assert sorted(np.bincount(others).tolist()) in ([1, 3], [2, 2])
    loads = np.array(plan.predicted.node_loads)
    assert loads.max() < 0.65 * loads.sum()


def test_of_unknown_ends_only_the_beginning_is_left_out(tmp_path: Path) -> None:
    known = workload_of_traces([record(tmp_path / "a.db")]).loads
    unknown = workload_of_traces([record(tmp_path / "b.db", ends=False)]).loads
    # Main made 10 % of all samples after the others ended, and a fifth of those in between.
    assert unknown[0] / known[0] == pytest.approx((0.1 + 0.5 / 5) / (0.5 / 5), rel=0.1)


def test_runs_together_are_cut_alike(tmp_path: Path) -> None:
    paths = [record(tmp_path / f"{name}.db") for name in "ab"]
    assert np.allclose(workload_of_traces(paths).loads, workload_of_traces(paths[:1]).loads, rtol=0.1)


def test_processes_side_by_side_keep_their_loads(tmp_path: Path) -> None:
    path = record(tmp_path / "t.db", processes=2)
    with Trace.open(path) as trace:
        assert crowded_time(trace) == (-1, -1)
    workload = workload_of_traces([path])
    assert workload.loads[0] > 2 * workload.loads[1:].max()


def test_memory_is_marked_when_a_program_that_was_alone_makes_a_thread(tmp_path: Path) -> None:
    lives = [(0, -1), (10, 30), (20, 40), (40, 50), (60, -1), (70, 80), (90, -1)]
    threads = [(i, "p0", f"0.{i}" if i else "0", 1, 1, "t", *life) for i, life in enumerate(lives)]
    write_trace(tmp_path / "t.db", {"time_ns": []}, threads)
    with Trace.open(tmp_path / "t.db") as trace:
        assert team_starts(trace) == [10, 40, 60]  # from 60 on one lives to the end
