"""Ranks that their launcher has bound to a core: the machine is the one that nlaunch will find."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from numaplan.machine import Machine, own_cpuset
from numaplan.mapper.commands.main import main
from numaplan.profiler import machine_named
from numaplan.profiler.recording.record import RecordOptions, choose
from tests.support.traces import write_trace


@pytest.fixture
def bound() -> Iterator[int]:
    """The cpu that we are bound to, one of several."""
    before = os.sched_getaffinity(0)
    if len(own_cpuset()) < 2:
        pytest.skip("one cpu only")
    os.sched_setaffinity(0, {max(before)})
    yield max(before)
    os.sched_setaffinity(0, before)


def test_a_rank_s_machine_is_what_its_cpuset_allows(bound: int) -> None:
    for environment in ({"OMPI_COMM_WORLD_RANK": "1"}, {"PMI_RANK": "0"}):
        assert set(machine_named("local", environment).cpus) == set(own_cpuset())
    assert os.sched_getaffinity(0) == {bound}
    assert machine_named("local", {}).cpus == (bound,)
    assert machine_named("2x2", {"PMI_RANK": "0"}).fingerprint == Machine.load("2x2").fingerprint


def test_a_trace_names_its_machine(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trace = write_trace(tmp_path / "t.db", {"time_ns": [1]}, [], machine="4x2")
    assert machine_named(str(trace), {}).fingerprint == Machine.load("4x2").fingerprint
    assert main(["machine", str(trace)]) == 0
    assert "4 nodes, 8 cpus" in capfd.readouterr().out
    trace.write_bytes(trace.read_bytes()[:100])
    assert main(["machine", str(trace)]) == 2
    assert f"{trace}: the trace cannot be read" in capfd.readouterr().err


@pytest.mark.usefixtures("bound")
def test_what_a_rank_records_is_of_that_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "0")
    assert set(choose(RecordOptions(backend="emulate"))[0].cpus) == set(own_cpuset())


@pytest.mark.usefixtures("bound")
def test_a_rank_tells_that_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PMI_RANK", "0")
    assert main(["machine", "local", "--json"]) == 0
    assert set(Machine.from_json(capsys.readouterr().out).cpus) == set(own_cpuset())
