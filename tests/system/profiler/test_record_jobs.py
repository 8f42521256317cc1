"""Jobs of several ranks, and several runs of a program, as a user records them."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from numaplan.profiler.trace.reader import Trace
from tests.support.commands import BIN, clean_environment, needs, run, succeed
from tests.support.programs import PROGRAMS, compiled

pytestmark = pytest.mark.system
ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
LAUNCHERS = {"openmpi": ["--oversubscribe"], "mpich": []}


@pytest.fixture(autouse=True)
def _qemu() -> None:
    needs("qemu-x86_64")


def with_environment(words: list[str], more: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        words, env={**clean_environment(), **more}, capture_output=True, timeout=240, check=False
    )


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def processes(trace: Path) -> set[str]:
    with Trace.open(trace) as opened:
        return {name for (name,) in opened.rows("SELECT DISTINCT process FROM threads")}


def launcher(kind: str) -> tuple[list[str], str]:
    """The launcher's words for three ranks, and the program built for it."""
    needs(f"mpirun.{kind}")
    program = compiled(PROGRAMS / "mpi_ranks.c", flags=("-O1", "-lpthread"), compiler=f"mpicc.{kind}")
    return [shutil.which(f"mpirun.{kind}") or "", *LAUNCHERS[kind], "-n", "3"], str(program)


@pytest.mark.parametrize("kind", LAUNCHERS)
@pytest.mark.parametrize("backend", ["emulate", "faults"])
def test_a_launcher_s_ranks_in_one_trace(tmp_path: Path, kind: str, backend: str) -> None:
    if backend == "faults":
        needs("perf")
    words, program = launcher(kind)
    trace = tmp_path / "t.db"
    command = [str(BIN / "nprof"), "record", "--backend", backend, "-o", str(trace), "--multiprocess"]
    done = with_environment([*command, *words, program], ROOT_MAY)
    assert done.returncode == 0, done.stderr
    assert processes(trace) == {"r0", "r1", "r2"}
    with Trace.open(trace) as opened:
        blocks = opened.rows(
            "SELECT r.process, count(*) FROM samples s JOIN regions r USING (region)"
            " WHERE r.kind IN ('heap', 'mmap') AND r.bytes >= 1048576 GROUP BY 1 ORDER BY 1"
        )
    assert {name for name, _ in blocks} >= {"r0", "r1", "r2"}


def test_ranks_that_each_start_the_recorder(tmp_path: Path) -> None:
    for rank in ("0", "11"):
        command = [str(BIN / "nprof"), "record", "--backend", "emulate", "--multiprocess", "--period", "10"]
        done = with_environment([*command, "-o", str(tmp_path / "t.db"), "/bin/true"], {"PMI_RANK": rank})
        assert done.returncode == 0, done.stderr
    assert names(tmp_path) == ["t.r0.db", "t.r11.db"]
    assert processes(tmp_path / "t.r11.db") == {"r11"}


@pytest.mark.parametrize("kind", LAUNCHERS)
def test_a_rank_s_trace_says_which_of_which_job_it_is(tmp_path: Path, kind: str) -> None:
    words, _ = launcher(kind)
    command = [
        *words,
        str(BIN / "nprof"),
        "record",
        "--backend",
        "emulate",
        "--multiprocess",
        "--period",
        "10",
    ]
    done = with_environment([*command, "-o", str(tmp_path / "t.db"), "/bin/true"], ROOT_MAY)
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
