"""What recording messages between ranks costs a rank, whatever else is recorded: processor time.

A rank of a stencil sends its borders (four messages of 1 KiB a step) to itself, so that nobody's waiting is
measured. It runs twice at once, recorded and not, so that whatever else slows this machine slows both; which
of them starts first takes turns. NUMAPLAN_REPEAT: twins (25), of whose differences the median is told.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.medians import median_interval
from numaplan.profiler.messages.building import build
from numaplan.profiler.messages.implementation import MPICH, OPEN_MPI
from numaplan.profiler.messages.library import Library
from numaplan.profiler.messages.message import Way
from numaplan.profiler.messages.monitoring import Monitoring

SOURCE = Path(__file__).with_name("messages_cost.c")
SIDES = (0, 128, 256)  # doubles; 0: messages alone
MESSAGES = 4  # a step
SUFFIXES = {OPEN_MPI: "openmpi", MPICH: "mpich"}
_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run() -> dict[str, Any]:
    """By MPI, way and grid: ns added to a message and % added to a step, with their 95 % intervals."""
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
                    words = [f"mpirun.{suffix}", "-bind-to", "none", "-n", "1", str(program), str(side)]
                    twins = _twins(words, way, Path(name))
                    step = median(plain for plain, _ in twins)
                    added = sorted(watched - plain for plain, watched in twins)
                    what = f"{mpi}, {way.name}, grid {side}"
                    results[f"{what}: ns a message"] = _told(added, MESSAGES)
                    results[f"{what}: % of a step of {step / 1000:.1f} µs"] = _told(added, step / 100)
    return results


def _told(added: list[float], unit: float) -> str:
    """The median in some unit, and its interval."""
    low, high = median_interval(len(added))
    return f"{median(added) / unit:.2f} ({added[low] / unit:.2f} to {added[high] / unit:.2f})"


def _twins(words: list[str], way: Way, folder: Path) -> list[tuple[float, float]]:
    """ns a step of each of two that run at the same time, not recorded and recorded."""
    found = []
    plain = {**os.environ, **_ROOT}
    for turn in range(int(os.environ.get("NUMAPLAN_REPEAT", "25"))):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            environments = [plain, way.environment(Path(place), plain)]
            order = (1, 0) if turn % 2 else (0, 1)
            running = {at: _started(words, environments[at]) for at in order}
            found.append((_finished(running[0]), _finished(running[1])))
    return found


def _started(words: list[str], environment: dict[str, str]) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    return subprocess.Popen(words, env=environment, stdout=pipe, stderr=pipe, text=True)


def _finished(process: "subprocess.Popen[str]") -> float:
    """What it measured; raises CalledProcessError where it failed."""
    said, errors = process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args, said, errors)
    return float(said)
