"""Our own kernels under emulation: the sampled communication matrix against that of every access.

Each kernel of tests/programs/mapper/communication_kernels.c is recorded twice: shortly at period 1, which
gives the exact matrix, and longer at period 1000, which gives at least 100,000 samples.
NUMAPLAN_BENCH_KERNELS: names of kernels, separated by commas (default: all).
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import ROOT
from benchmarks.analyzer.communication import correlation, plan_cost
from numaplan.analyzer import Analysis, analyze_trace
from numaplan.common import MachineLacksError, NotSoError
from numaplan.profiler import Trace

KERNELS = (
    "ring",
    "far",
    "grid-rows",
    "grid-columns",
    "tree",
    "all-to-all",
    "pipeline",
    "master-worker",
    "sparse",
    "phases",
    "false-sharing",
    "false-pairs",
)
SOURCE = ROOT / "tests" / "programs" / "mapper" / "communication_kernels.c"
THREADS = 16
EXACT = 20  # iterations at period 1
SAMPLED = 1500  # iterations at period 1000
PERIOD = 1000


def run() -> dict[str, Any]:
    """Correlation, plan cost and confidence of each kernel, and their medians."""
    names = os.environ.get("NUMAPLAN_BENCH_KERNELS", ",".join(KERNELS)).split(",")
    with TemporaryDirectory() as folder:
        program = build(Path(folder))
        rows = {name: measure_kernel(program, name) for name in names}
    medians = {key: float(np.median([row[key] for row in rows.values()])) for key in ("r", "plan cost")}
    return {"kernels": rows, "median": medians}


def build(folder: Path) -> Path:
    """The kernels, compiled into a folder; raises MachineLacksError without a compiler."""
    program = folder / "communication_kernels"
    try:
        subprocess.run(["cc", "-O2", "-g", "-pthread", str(SOURCE), "-o", str(program)], check=True)
    except FileNotFoundError:
        raise MachineLacksError("no C compiler", "install gcc") from None
    return program


def measure_kernel(
    program: Path, name: str, *, sampled: int = SAMPLED, period: int = PERIOD
) -> dict[str, float]:
    """What one kernel's sampled matrix is worth; sampled: iterations of the sampled run."""
    exact = _record(program, name, EXACT, 1)
    found = _record(program, name, sampled, period)
    return {
        "r": correlation(found.comm, exact.comm),
        "plan cost": plan_cost(found.comm, exact.comm),
        "confidence": found.confidence,
        "samples": found.samples,
        "spread": _spread(exact.comm),
    }


def _spread(comm: NDArray[np.float64]) -> float:
    """Deviation of the pairs over their mean: near 0 where all communicate alike and r says little."""
    pairs = comm[np.triu_indices(len(comm), 1)]
    return float(pairs.std() / pairs.mean())


def _record(program: Path, name: str, iterations: int, period: int) -> Analysis:
    trace = program.parent / f"{name}-{period}.db"
    command = [str(Path(sys.executable).parent / "nprof"), "record", "--backend", "emulate"]
    command += ["--period", str(period), "-o", str(trace), "--", str(program), name, str(THREADS)]
    done = subprocess.run([*command, str(iterations)], capture_output=True, check=False)
    if done.returncode:
        raise NotSoError(f"{name} was not recorded: {done.stderr.decode().strip()}", "see 'nprof doctor'")
    with Trace.open(trace) as opened:
        analysis = analyze_trace(opened)
    trace.unlink()
    return analysis
