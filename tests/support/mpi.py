"""MPI jobs for tests: the launchers that are here, and programs built for them."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.commands import clean_environment, needs
from tests.support.programs import compiled

LAUNCHERS = {"openmpi": ["--oversubscribe"], "mpich": []}
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    # More ranks than cpus: one that waits lets the others run.
    "OMPI_MCA_mpi_yield_when_idle": "1",
    # MPICH by UCX: where its ranks talk by TCP, one that is emulated may wait for ever as the job ends.
    "UCX_TLS": "self,sm",
}


def launcher(kind: str, ranks: int) -> list[str]:
    """The words that start so many ranks; skips the test where this MPI is not installed."""
    needs(f"mpirun.{kind}")
    return [shutil.which(f"mpirun.{kind}") or "", *LAUNCHERS[kind], "-n", str(ranks)]


def built(source: Path, kind: str) -> Path:
    """A program of this MPI; skips the test where nothing can be built for it."""
    compiler = f"mpicc.{kind}"
    needs(compiler)
    headers = subprocess.run(
        [compiler, "-E", "-include", "mpi.h", "-x", "c", os.devnull], capture_output=True, check=False
    )
    if headers.returncode:
        pytest.skip(f"{compiler} finds no mpi.h")
    return compiled(source, flags=("-O1", "-lpthread"), compiler=compiler)


def run_job(
    words: Sequence[str | Path], cwd: Path, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in which a job is started; more: of its environment."""
    environment = {**clean_environment(), **ENVIRONMENT, **(more or {})}
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, timeout=240, check=False)
