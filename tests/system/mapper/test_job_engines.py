"""Jobs planned by real workers of Dask and MPI: the same bytes, and what is said when they are killed."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.mapper.job_instances import halo, make_job
from tests.support.commands import clean_environment, one_line_error, succeed
from tests.support.mpi import launcher, run_job

pytestmark = [pytest.mark.system, pytest.mark.slow]
CLUSTER = "2*2x4:4+2*4x2:2"
# A module by which the planner of the first host kills whom the file `victim` names, once: a process, the
# worker that it is in, or the rank of this one.
KILLING = """
import os, pathlib, signal
from numaplan.mapper.jobs import planning

plan = planning.plan_host

def plan_host(task):
    try:
        os.rename("victim", "killed")
    except FileNotFoundError:
        return plan(task)
    victim = pathlib.Path("killed").read_text()
    known = {"worker": os.getpid(), "rank": os.getppid()}
    os.kill(known[victim] if victim in known else int(victim), signal.SIGKILL)

planning.plan_host = plan_host
"""
# `nmap` of its arguments, with it.
CALL = """
import os, sys
import killing
from numaplan.common import engines
from numaplan.mapper.commands.main import main

engines._LOOK_S = float(os.environ.get("LOOK_S", "60"))
engines._CONNECT_S = int(os.environ.get("CONNECT_S", "60"))
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""
PATIENT = {
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "300s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "300s",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With twelve ranks of two threads, their plan as one process makes it, and the script."""
    folder = tmp_path_factory.mktemp("engines")
    make_job(folder / "job", halo((3, 2, 2)), 2, "2x4")
    succeed(*words("local:1"), "-o", "serial.json", cwd=folder)
    (folder / "call.py").write_text(CALL)
    (folder / "killing.py").write_text(KILLING)
    return folder


def words(engine: str) -> list[str]:
    return ["nmap", "plan", "job", "--cluster", CLUSTER, "--engine", engine]


def called(folder: Path, engine: str, **more: str) -> "subprocess.CompletedProcess[bytes]":
    """The command in the script's process; it leaves out.json."""
    return subprocess.run(
        [sys.executable, "call.py", *words(engine)[1:], "-o", "out.json"],
        cwd=folder,
        env={**clean_environment(), **PATIENT, **more},
        capture_output=True,
        timeout=600,
        check=False,
    )


@contextmanager
def started(folder: Path, said: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process of Dask's that has said this; ended afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:], "--no-dashboard"],
        cwd=folder,
        env={**clean_environment(), **PATIENT},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if said in line:
                break
        else:
            raise AssertionError(f"dask {arguments[0]} ended: {process.wait()}")
        yield process
    finally:
        process.kill()
        process.stderr.close()
        process.wait()


def test_dask_with_workers_and_a_scheduler_that_are_killed(folder: Path) -> None:
    pytest.importorskip("distributed")
    where = ("--host", "127.0.0.1", "--port", "0", "--scheduler-file", "scheduler.json")
    worker = ("worker", "--scheduler-file", "scheduler.json", "--nthreads", "1", "--no-nanny")
    engine = "dask:scheduler.json"
    with started(folder, "Scheduler at:", "scheduler", *where) as scheduler:
        nobody = called(folder, engine, LOOK_S="0.2")
        assert "1 of 1 pieces of work are lost" in one_line_error(nobody, "nmap", 1)
        with (
            started(folder, "Registered to:", *worker) as one,
            started(folder, "Registered to:", *worker) as two,
        ):
            (folder / "victim").write_text("worker")
            done = called(folder, engine)
            assert done.returncode == 0, done.stderr.decode()
            assert (folder / "out.json").read_bytes() == (folder / "serial.json").read_bytes()
            assert sorted([one.poll() is None, two.poll() is None]) == [False, True]
            (folder / "out.json").unlink()
            (folder / "victim").write_text(str(scheduler.pid))
            gone = called(folder, engine, CONNECT_S="1")
            assert "no scheduler answers" in one_line_error(gone, "nmap", 3)
            assert not (folder / "out.json").exists()


def test_mpi_with_a_worker_and_a_rank_that_are_killed(folder: Path) -> None:
    """Who works for a rank is replaced; when a rank is killed, MPI ends all, and no plan is written."""
    if find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed here")
    start = [*launcher("openmpi", 3), sys.executable, "-m", "mpi4py.futures"]
    for program in (("-m", "numaplan"), ("call.py",)):
        (folder / "victim").write_text("worker")
        (folder / "mpi.json").unlink(missing_ok=True)
        done = run_job([*start, *program, *words("mpi")[1:], "-o", "mpi.json"], folder)
        assert done.returncode == 0, done.stderr.decode()
        assert (folder / "victim").exists() == (program == ("-m", "numaplan"))
        assert (folder / "mpi.json").read_bytes() == (folder / "serial.json").read_bytes()
    (folder / "victim").write_text("rank")
    lost = run_job([*start, "call.py", *words("mpi")[1:], "-o", "lost.json"], folder)
    assert lost.returncode != 0 and not (folder / "victim").exists()
    assert b"exited on signal 9" in lost.stderr and b"Traceback" not in lost.stderr
    assert lost.stderr.count(b"MPI ends all of its processes, as when one of them dies, and the work") == 1
    assert not [file for file in folder.iterdir() if file.name.startswith(("lost", ".lost"))]
