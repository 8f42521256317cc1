"""What `nprof` says that a trace holds."""

import json
from pathlib import Path

import pytest

from numaplan.profiler.commands.main import main
from tests.support.traces import write_trace


@pytest.mark.parametrize(("count", "said"), [(1, "1 thread,"), (2, "2 threads,")])
def test_one_is_one_thread(tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int, said: str) -> None:
    threads = [(number, "p0", f"0.{number}", 1, 1, "x", 0, -1) for number in range(count)]
    samples = {"time_ns": range(count), "thread": range(count)}
    path = write_trace(tmp_path / "t.db", samples, threads, meta={"period": 1})
    assert main(["info", str(path)]) == 0
    assert f"of {said}" in capsys.readouterr().out


def test_a_long_command_line_is_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    meta = {"period": 1, "argv": json.dumps(["./app", "x" * 100_000])}
    path = write_trace(tmp_path / "t.db", {"time_ns": [0]}, [(0, "p0", "0", 1, 1, "x", 0, -1)], meta=meta)
    assert main(["info", str(path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("./app") and "…" in said and len(said) < 5000
