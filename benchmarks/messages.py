"""What recording messages between ranks costs a rank, whatever else is recorded: processor time.

A rank of a stencil sends its borders (four messages of 1 KiB a step) to itself, so that nobody's waiting is
measured; each program runs in turn with and without, NUMAPLAN_REPEAT times (9), and the medians are compared.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from numaplan.profiler.messages.building import build
from numaplan.profiler.messages.implementation import MPICH, OPEN_MPI
from numaplan.profiler.messages.library import Library
from numaplan.profiler.messages.message import Way
from numaplan.profiler.messages.monitoring import Monitoring

SOURCE = Path(__file__).resolve().parent / "messages_cost.c"
SIDES = (0, 128, 256)  # doubles; 0: messages alone
MESSAGES = 4  # a step
SUFFIXES = {OPEN_MPI: "openmpi", MPICH: "mpich"}
_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run() -> dict[str, Any]:
    """By MPI, way and grid: ns added to a message, and % added to a step."""
    results: dict[str, Any] = {}
    for mpi, suffix in SUFFIXES.items():
        if not (shutil.which(f"mpicc.{suffix}") and shutil.which(f"mpirun.{suffix}")):
            continue
        ways: list[Way] = [Library(build(mpi))]
        ways += [Monitoring()] if mpi == OPEN_MPI else []
        with tempfile.TemporaryDirectory() as name:
            program = Path(name) / "messages_cost"
            subprocess.run([f"mpicc.{suffix}", "-O2", SOURCE, "-o", program], check=True)
            for way in ways:
                for side in SIDES:
                    words = [f"mpirun.{suffix}", "-n", "1", str(program), str(side)]
                    without, with_it = _compared(words, way, Path(name))
                    added = with_it - without
                    what = f"{mpi}, {way.name}, grid {side}"
                    results[f"{what}: ns a message"] = added / MESSAGES
                    results[f"{what}: % of a step of {without / 1000:.1f} µs"] = 100 * added / without
    return results


def _compared(words: list[str], way: Way, folder: Path) -> tuple[float, float]:
    plain, watched = [], []
    for _ in range(int(os.environ.get("NUMAPLAN_REPEAT", "9"))):
        plain.append(_ns(words, {**os.environ, **_ROOT}))
        with tempfile.TemporaryDirectory(dir=folder) as place:
            watched.append(_ns(words, way.environment(Path(place), {**os.environ, **_ROOT})))
    return median(plain), median(watched)


def _ns(words: list[str], environment: dict[str, str]) -> float:
    return float(subprocess.run(words, env=environment, check=True, capture_output=True).stdout)
