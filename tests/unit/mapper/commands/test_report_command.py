"""`nmap report`: of several traces, and the units of what was counted and of what was sampled."""

import base64
import gzip
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
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


HEAP, PAGE = 0x10000, 4096


def charts(path: Path, **counted: list[tuple[int, ...]]) -> dict[str, Any]:
    """The page's charts of two threads that use one block alike, with a plan for them."""
    time = np.arange(400) * 10
    samples = {
        "time_ns": time,
        "thread": np.arange(400) // 2 % 2,
        "addr": HEAP + np.arange(400) % 4 * PAGE,
        "event": np.where(np.arange(400) % 4 < 2, EVENT_CODE["store"], EVENT_CODE["load"]),
        "is_write": np.arange(400) % 4 < 2,
        "region": 0,
    }
    threads = [(i, "p0", ("0", "0.1")[i], 10 + i, 10, "t", 0, -1) for i in range(2)]
    regions = [(0, "p0", "heap", "app+0x10", "b", HEAP, 4 * PAGE, 0, 0, 0, -1)]
    meta = {"argv": '["./app"]', "build_id": "c0ffee", "period": 100, "clock": "accesses"}
    trace = str(write_trace(path / "t.db", samples, threads, regions, meta, **counted))  # type: ignore[arg-type]
    plan, page = str(path / "plan.json"), path / "page.html"
    assert main(["plan", trace, "--machine", "2x1", "--objective", "remote", "-o", plan]) == 0
    assert main(["report", trace, "--plan", plan, "-o", str(page)]) == 0
    packed = re.search(r'id="figure-data">([^<]*)', page.read_text())
    assert packed is not None
    figures = msgspec.json.decode(gzip.decompress(base64.b64decode(packed[1])))
    return {figure["id"]: figure for figure in figures}


def test_what_was_counted_is_no_samples(tmp_path: Path) -> None:
    used = [(0, 4000, 5, i, 0, HEAP + PAGE * page, 5000, 5000, 10) for i in range(2) for page in range(4)]
    found = charts(tmp_path, transfers=[(0, 4000, 0, 1, 0, 700), (0, 4000, 1, 0, 0, 700)], page_use=used)
    memory = found["memory-traffic"]["data"]
    assert {part["_unit"] for part in memory} == {"accesses"}
    assert sum(map(sum, memory[0]["z"])) == 80_000
    matrix = found["communication"]
    assert "counted" in matrix["about"] and "samples" not in matrix["about"]
    assert "standard error" not in matrix["about"] and "_errors" not in matrix["data"][0]


def test_what_was_sampled_is_samples(tmp_path: Path) -> None:
    found = charts(tmp_path)
    assert {part["_unit"] for part in found["memory-traffic"]["data"]} == {"samples"}
    assert "seen in the samples" in found["communication"]["about"]
    assert (
        "standard error" in found["communication"]["about"] and "_errors" in found["communication"]["data"][0]
    )
