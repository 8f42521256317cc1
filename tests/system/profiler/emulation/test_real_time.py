"""Threads that run in real time are told, and nothing is placed for them."""

import subprocess
from pathlib import Path

import pytest

from numaplan.analyzer import counter_totals
from numaplan.mapper.workload.from_trace import workload_of_trace
from numaplan.mapper.workload.part import WHOLE, Part
from numaplan.mapper.workload.real_time import MOST
from numaplan.profiler import Trace
from tests.support.emulating import MARKS, record
from tests.support.programs import PROGRAMS, compiled

pytestmark = MARKS


def test_who_runs_in_real_time_is_told_by_thread(tmp_path: Path) -> None:
    program = compiled(PROGRAMS / "recording/real_time.c")
    if subprocess.run([program], check=False).returncode == 2:
        pytest.skip("threads may not run in real time here")
    path = record(program, tmp_path / "t.db", "")
    with Trace.open(path) as trace:
        assert counter_totals(trace)["real_time"].tolist() == [-1, 1, 1, -1]  # nobody counted
    for part in (WHOLE, Part(end="50%")):
        assert MOST < workload_of_trace(path, part=part).real_time < 0.7


def test_where_none_does_nothing_is_said(tmp_path: Path) -> None:
    path = record(compiled(PROGRAMS / "recording/sleepers.c"), tmp_path / "t.db", "10")
    with Trace.open(path) as trace:
        assert "real_time" not in counter_totals(trace)
    assert workload_of_trace(path).real_time == 0
