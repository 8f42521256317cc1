"""What to do first, of real programs that have one fault each: it is named, with its cure."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

from numaplan.mapper.commands.main import main
from tests.support.commands import needs
from tests.support.emulating import MARKS, record
from tests.support.programs import PROGRAMS, compiled

pytestmark = [*MARKS]

SMALL = ("--set", "l1=4K:4", "--set", "l2=64K:2", "--set", "l3=128K:2", "--machine", "4x2", "--period", "20")
PLAIN = {"plan", "bind", "interleave", "initialise", "interleave-region"}


@pytest.fixture(scope="module")
def program() -> Path:
    return compiled(PROGRAMS / "mapper/advised.c", flags=("-O1", "-g", "-pthread"), compiler="gcc")


Advice = Callable[..., dict[str, Any]]


@pytest.fixture
def advice(capsys: pytest.CaptureFixture[str]) -> Advice:
    """Of traces, by kind, the first of each; machine: other than that recorded."""

    def ask(*traces: Path, machine: str = "4x2") -> dict[str, Any]:
        assert main(["analyze", *map(str, traces), "--machine", machine, "--json"]) == 0
        return first_of_kind(capsys.readouterr().out)

    return ask


def first_of_kind(said: str) -> dict[str, Any]:
    """What is gained for sure comes first."""
    document = msgspec.json.decode(said)
    gains = [one["gain_ns"] for one in document["advice"]]
    known = [gain for gain in gains if gain is not None]
    assert gains == sorted(known, reverse=True) + [None] * (len(gains) - len(known))
    return {one["kind"]: one for one in reversed(document["advice"])}


@pytest.mark.parametrize(
    ("fault", "name", "change"),
    [
        ("items", "`counters`", "_Alignas(64) before the first member of the struct that `counters` has"),
        ("fields", "`state`", "_Alignas(64) before `state.tail`, and before what follows"),
    ],
)
def test_false_sharing_is_cured_by_field(
    program: Path, tmp_path: Path, advice: Advice, fault: str, name: str, change: str
) -> None:
    trace = record(program, tmp_path / "t.db", f"{fault} 4", *SMALL, "--set", "turn=10")
    found = advice(trace)
    users = 2 if fault == "fields" else 4
    assert found["pad"]["action"] == f"separate what {users} threads use of {name}"
    assert found["pad"]["change"].startswith(change)
    assert found["pad"]["gain"] > 0.9, "the program does nothing else"
    assert not found.keys() - PLAIN - {"pad"}


def test_what_one_thread_fills_is_filled_in_parallel_in_words_of_its_language(
    tmp_path: Path, advice: Advice, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("gfortran")
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    source = PROGRAMS / "names/filled.f90"
    program = compiled(source, flags=("-O2", "-g", "-fopenmp"), compiler="gfortran")
    found = advice(record(program, tmp_path / "t.db", "", *SMALL))["initialise"]
    filled = [at for at, line in enumerate(source.read_text().splitlines(), 1) if "! line:" in line]
    lines = " and ".join(f"filled.f90:{line}" for line in filled)
    assert found["action"] == f"initialise `grid`, `next` in parallel at {lines}"
    assert found["change"].startswith("!$omp parallel do schedule(static) on the loop")
    assert "of their pages" in found["evidence"]


@pytest.mark.slow
def test_a_pool_goes_to_few_nodes_or_its_tasks_to_their_memory(
    program: Path, tmp_path: Path, advice: Advice
) -> None:
    trace = record(program, tmp_path / "t.db", "pool 4", *SMALL)
    few, many = advice(trace)["pool"], advice(trace, machine="2x2")["pool"]
    assert few["action"] == "keep its pool of threads on 2 nodes" and few["gain"] > 0.1
    assert few["change"].startswith("numactl --cpunodebind=0-1 ") and few["change"].endswith("advised pool 4")
    assert many["action"] == "let tasks of the pool of 4 threads go to where their memory is"
    assert many["gain"] is None and "At most" in many["evidence"] and "queue for each node" in many["change"]


@pytest.mark.slow
def test_what_all_read_and_nobody_writes_is_copied_and_nothing_for_tasks(
    program: Path, tmp_path: Path, advice: Advice
) -> None:
    found = advice(record(program, tmp_path / "t.db", "table 8", *SMALL))
    assert found["replicate"]["action"] == "give each node a copy of `block`"
    assert "4 copies take 4 MiB" in found["replicate"]["evidence"]
    assert found["replicate"]["gain"] > 0
    assert "interleave" not in found  # as much is local, and the memory is not busy enough for a queue
    assert "pool" not in found


@pytest.mark.slow
def test_more_threads_than_cpus(program: Path, tmp_path: Path, advice: Advice) -> None:
    trace = record(program, tmp_path / "t.db", "own 16", *SMALL)
    found = advice(trace)["threads"]
    assert found["action"].startswith("start 8 threads") and found["gain"] is None
    assert "threads" not in advice(trace, machine="4x4")


@pytest.mark.slow
def test_a_healthy_program_has_no_such_fault_until_huge_pages_make_one(
    program: Path, tmp_path: Path, advice: Advice
) -> None:
    trace = record(program, tmp_path / "t.db", "own 8", *SMALL)
    assert not advice(trace).keys() - PLAIN
    huge = tmp_path / "huge.db"
    shutil.copy(trace, huge)
    with duckdb.connect(str(huge)) as opened:
        opened.execute("DELETE FROM meta WHERE key = 'huge_pages'")
        opened.execute("INSERT INTO meta VALUES ('huge_pages', 'always')")
    found = advice(huge)
    assert set(found) - PLAIN == {"huge-pages"}
    assert found["huge-pages"]["action"] == "keep each huge page of `block` to one node's threads"
    assert found["huge-pages"]["evidence"].startswith(
        "1 of 1 stretches of 2 MiB are touched first by threads"
    )
    together = advice(trace, huge)
    assert together["huge-pages"]["gain"] == pytest.approx(found["huge-pages"]["gain"] / 2, abs=1e-4)
    assert together["huge-pages"]["evidence"].endswith("(so in 1 of 2 traces)")
    assert together["plan"]["evidence"].endswith("(so in all 2 traces)")
    assert f"nmap plan {trace} {huge} --machine 4x2 -o plan.json" in together["plan"]["change"]
