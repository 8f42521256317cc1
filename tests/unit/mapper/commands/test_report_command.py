"""`nmap report` of several traces."""

from pathlib import Path

import pytest

from numaplan.mapper.commands.main import main
from numaplan.profiler import EVENT_CODE
from tests.support.traces import write_trace


def trace(path: Path, build: str, process: str = "p0") -> str:
    samples = {"time_ns": [10, 20], "thread": [0, 1], "addr": [4096, 8192], "event": EVENT_CODE["load"]}
    threads = [(0, process, "0", 1, 1, "x", 0, -1), (1, process, "0.1", 2, 1, "x", 0, -1)]
    meta = {"argv": '["./app"]', "build_id": build, "period": 1, "duration_ns": 30}
    return str(write_trace(path, samples, threads, meta=meta))


def test_traces_of_different_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = trace(tmp_path / "one.db", "c0ffee11"), trace(tmp_path / "other.db", "c0ffee22")
    page = tmp_path / "page.html"
    assert main(["report", one, other, "-o", str(page)]) == 2
    assert f"{other}: of another program" in capsys.readouterr().err
    assert not page.exists()
    assert main(["analyze", one, other]) == 2


def test_runs_of_one_program_and_ranks_of_several(tmp_path: Path) -> None:
    one, again = trace(tmp_path / "one.db", "c0ffee11"), trace(tmp_path / "again.db", "c0ffee11")
    rank = trace(tmp_path / "rank.db", "c0ffee22", "r1")
    page = tmp_path / "page.html"
    assert main(["report", one, again, rank, "-o", str(page)]) == 0
    assert page.exists()
