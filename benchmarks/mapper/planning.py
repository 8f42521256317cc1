"""`nmap plan` on traces of 8 threads against starting Python with numpy and DuckDB, as a user waits for it.

Both take turns in one run, as processes of their own; the least processor time of each counts, and the least
wall time is given beside it. Where cpus are idle, the processor time of importing numpy alone includes its
BLAS threads, which spin for a while; 'nmap plan' starts none. The traces are of examples/stencil.c, as
`nprof record` makes them by default and as `make demo` does.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from numaplan.common import MachineLacksError

SOURCE = ROOT / "examples" / "stencil.c"
PERIODS = (1000, 100)
TURNS = 9
BIN = Path(sys.executable).parent


def run() -> dict[str, Any]:
    """By period: samples, processor and wall seconds, and both over those of the imports."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        traces = {period: _record(folder, period) for period in PERIODS}
        commands = {0: [sys.executable, "-c", "import numpy, duckdb"]}
        for period, trace in traces.items():
            commands[period] = [BIN / "nmap", "plan", trace, "--machine", "4x2", "-o", folder / "plan.json"]
        times: dict[int, list[tuple[float, float]]] = {key: [] for key in commands}
        for _ in range(TURNS):
            for key, words in commands.items():
                times[key].append(_times(words))
        processor, wall = ({key: min(t[i] for t in found) for key, found in times.items()} for i in (0, 1))
        return {
            "imports": {"processor_s": processor[0], "wall_s": wall[0]},
            **{
                f"period {period}": {
                    "samples": _samples(trace),
                    "processor_s": processor[period],
                    "processor_ratio": processor[period] / processor[0],
                    "wall_s": wall[period],
                    "wall_ratio": wall[period] / wall[0],
                }
                for period, trace in traces.items()
            },
        }


def _record(folder: Path, period: int) -> Path:
    program, trace = folder / "stencil", folder / f"{period}.db"
    for words in (
        ["gcc", "-O2", "-pthread", SOURCE, "-o", program],
        [BIN / "nprof", "record", "--backend", "emulate", "--period", str(period), "-o", trace, program],
    ):
        done = subprocess.run(words, capture_output=True, check=False)
        if done.returncode:
            raise MachineLacksError(done.stderr.decode().strip()[-200:], "see 'nprof doctor'")
    return trace


def _samples(trace: Path) -> int:
    from numaplan.profiler import Trace

    with Trace.open(trace) as opened:
        return opened.sample_count


def _times(words: list[Any]) -> tuple[float, float]:
    """Processor and wall seconds of a command, its children included."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, check=True, capture_output=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall
