"""Ranks that were recorded apart, side by side in a plan, with and without the messages between them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from numaplan.analyzer import RECORDED_APART
from numaplan.common import UsageError
from numaplan.mapper import PlanOptions, Workload, make_plan, workload_of_traces
from numaplan.profiler import Machine
from tests.support.traces import write_trace

RANKS, SAMPLES, SIZE = 4, 2000, 1 << 20


def traced(
    folder: Path, *, messages: bool, silent: int = -1, told: Sequence[dict[str, object]] = ({},) * RANKS
) -> Workload:
    """Each rank uses memory of its own and talks to the rank after next; silent: a rank of which nothing is
    known; told: of the job, by each of the traces, which are of the ranks in turn."""
    paths = []
    for number, meta in enumerate(told):
        rank = number % RANKS
        process = f"r{rank}"
        sent = [(rank, (rank + 2) % RANKS, "sent", SIZE, 16, -1)]
        paths.append(
            write_trace(
                folder / f"t{number}.db",
                {
                    "time_ns": np.arange(SAMPLES) * 1000,
                    "addr": (1 << 30) + np.arange(SAMPLES) % 64 * 4096,
                    "is_write": np.arange(SAMPLES) % 2 == 0,
                    "region": 0,
                },
                [(0, process, "0", 100, 100, "app", 0, -1)],
                [(0, process, "heap", "app+0x1", "", 1 << 30, 64 * 4096, 0, 0, 0, -1)],
                {"period": 1000, "ranks": RANKS, "duration_ns": SAMPLES * 1000, **meta},
                messages=sent if messages and rank != silent else None,
            )
        )
    return workload_of_traces(paths)


def test_ranks_that_send_each_other_messages_sit_together(tmp_path: Path) -> None:
    found = traced(tmp_path, messages=True)
    assert not found.apart and RECORDED_APART not in found.notes
    assert found.use is not None
    assert found.use.lines[0, 2] == found.use.lines[2, 0] == pytest.approx(SIZE / 64)  # half of both ways
    assert not found.use.lines[0, [1, 3]].any()
    plan = make_plan(found, Machine.load("2x2"), PlanOptions()).plan
    nodes = {thread.process: thread.node for thread in plan.threads}
    assert nodes["r0"] == nodes["r2"] != nodes["r1"] == nodes["r3"]
    assert plan.predicted.remote_share == 0.0 and not plan.predicted.apart


@pytest.mark.parametrize("silent", [-1, 3])
def test_what_a_rank_sends_may_not_be_known(silent: int, tmp_path: Path) -> None:
    found = traced(tmp_path, messages=silent >= 0, silent=silent)
    assert found.apart and RECORDED_APART in found.notes
    assert found.use is not None and not found.use.lines.any()


@pytest.mark.parametrize(
    ("odd", "says"),
    [
        ({"ranks": 5}, r"t3\.db is of a job of 5 ranks, .*t0\.db of one of 4"),
        ({"job": "8"}, r"t3\.db is of job 8, .*t0\.db of job 7"),
    ],
)
def test_ranks_of_two_jobs_are_refused(odd: dict[str, object], says: str, tmp_path: Path) -> None:
    told = [{"job": "7"}, {"job": "7"}, {"ranks": 0}, {"job": "7", **odd}]
    with pytest.raises(UsageError, match=says):
        traced(tmp_path, messages=True, told=told)


@pytest.mark.slow
def test_runs_of_a_job_may_each_have_a_name(tmp_path: Path) -> None:
    told = [{"job": "7"}] * RANKS + [{"job": "8"}] * RANKS
    assert len(traced(tmp_path, messages=True, told=told).threads) == RANKS
