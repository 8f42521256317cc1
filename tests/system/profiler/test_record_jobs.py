"""Jobs of several ranks, and several runs of a program, as a user records them."""

import json
import os
from pathlib import Path

import pytest

from numaplan.profiler.trace.reader import Trace
from tests.support.commands import BIN, needs, run, succeed
from tests.support.mpi import LAUNCHERS, built, launcher, run_job
from tests.support.programs import PROGRAMS

pytestmark = pytest.mark.system
RANKS = PROGRAMS / "jobs/mpi_ranks.c"


@pytest.fixture(autouse=True)
def _qemu() -> None:
    needs("qemu-x86_64")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def processes(trace: Path) -> set[str]:
    with Trace.open(trace) as opened:
        return {name for (name,) in opened.rows("SELECT DISTINCT process FROM threads")}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LAUNCHERS)
@pytest.mark.parametrize("backend", ["emulate", "faults"])
def test_a_launcher_s_ranks_in_one_trace(tmp_path: Path, kind: str, backend: str) -> None:
    if backend == "faults":
        needs("perf")
    words, program = launcher(kind, 3), built(RANKS, kind)
    trace = tmp_path / "t.db"
    command = [str(BIN / "nprof"), "record", "--backend", backend, "-o", str(trace), "--multiprocess"]
    done = run_job([*command, *words, program], tmp_path)
    assert done.returncode == 0, done.stderr
    assert processes(trace) == {"r0", "r1", "r2"}
    with Trace.open(trace) as opened:
        blocks = opened.rows(
            "SELECT r.process, count(*) FROM samples s JOIN regions r USING (region)"
            " WHERE r.kind IN ('heap', 'mmap') AND r.bytes >= 1048576 GROUP BY 1 ORDER BY 1"
        )
        sent = opened.rows("SELECT rank, peer, bytes, count FROM messages WHERE kind = 'sent' ORDER BY rank")
        (ours,) = opened.rows(
            "SELECT count(*) FROM samples JOIN regions USING (region) WHERE name LIKE 'numaplan_messages%'"
        )
        assert opened.meta["messages"] == {"openmpi": "monitoring", "mpich": "pmpi"}[kind]
    assert {name for name, _ in blocks} >= {"r0", "r1", "r2"}
    assert sent == [(rank, (rank + 1) % 3, 4096 * 8, 1) for rank in range(3)]
    assert backend == "faults" or ours == (0,)


@pytest.mark.slow
def test_ranks_that_each_start_the_recorder(tmp_path: Path) -> None:
    for rank in ("0", "11"):
        command = [str(BIN / "nprof"), "record", "--backend", "emulate", "--multiprocess", "--period", "10"]
        words = [*command, "-o", str(tmp_path / "t.db"), "/bin/true"]
        done = run_job(words, tmp_path, {"PMI_RANK": rank})
        assert done.returncode == 0, done.stderr
    assert names(tmp_path) == ["t.r0.db", "t.r11.db"]
    assert processes(tmp_path / "t.r11.db") == {"r11"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LAUNCHERS)
def test_a_rank_s_trace_says_which_of_which_job_it_is(tmp_path: Path, kind: str) -> None:
    command = [
        *launcher(kind, 3),
        str(BIN / "nprof"),
        "record",
        "--backend",
        "emulate",
        "--multiprocess",
        "--period",
        "10",
    ]
    done = run_job([*command, "-o", str(tmp_path / "t.db"), "/bin/true"], tmp_path)
    assert done.returncode == 0, done.stderr
    jobs = set()
    for rank in range(3):
        told = json.loads(run("nprof", "info", "--json", f"t.r{rank}.db", cwd=tmp_path).stdout)["job"]
        assert (told["rank"], told["ranks"], told["host"]) == (str(rank), "3", os.uname().nodename)
        assert told["local_rank"] == str(rank)
        jobs.add(told.get("job"))
    assert len(jobs) == 1
    said = run("nprof", "info", "t.r2.db", cwd=tmp_path).stdout.decode()
    assert "rank 2 of 3" in said


def test_what_is_no_job_is_kept_whole(tmp_path: Path) -> None:
    words = ("nprof", "record", "--backend", "emulate", "--multiprocess", "--period", "10")
    done = run(*words, "-o", "t.db", "/bin/true", cwd=tmp_path)
    assert done.returncode == 0 and b"no process is a rank" in done.stderr
    assert processes(tmp_path / "t.db") == {"p0"}


def test_runs_of_a_program(tmp_path: Path) -> None:
    words = ("nprof", "record", "--backend", "emulate", "--period", "10", "--summary", "sum.json")
    succeed(*words, "--runs", "2", "-o", "t.db", "/bin/true", cwd=tmp_path)
    assert names(tmp_path) == ["sum.json", "t.1.db", "t.2.db"]
    summary = json.loads((tmp_path / "sum.json").read_bytes())
    assert summary["schema"] == "numaplan/record/1"
    assert [(run["trace"], run["exit_code"]) for run in summary["runs"]] == [("t.1.db", 0), ("t.2.db", 0)]
    with Trace.open(tmp_path / "t.1.db") as first, Trace.open(tmp_path / "t.2.db") as second:
        assert (first.meta["emulate.seed"], second.meta["emulate.seed"]) == ("1", "2")


def test_a_run_that_fails_is_the_last(tmp_path: Path) -> None:
    words = ("nprof", "record", "--backend", "emulate", "--period", "10", "--runs", "3", "-o", "t.db")
    done = run(*words, "/bin/sh", "-c", "exit 7", cwd=tmp_path)
    assert done.returncode == 7 and b"run 1 ended with 7" in done.stderr
    assert names(tmp_path) == ["t.1.db"]
