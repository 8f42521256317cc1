"""Merging a job's ranks takes memory for what they are, and not for every pair of the job's threads."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.commands import clean_environment
from tests.support.traces import write_trace

pytestmark = [pytest.mark.system, pytest.mark.slow]
THREADS, RANKS, SAMPLES = 16, 4_000, 20_000
PAIRS = (THREADS * RANKS) ** 2
SPARE = 512 << 20
# The limit is set when all libraries and their threads are there, as the merging of two ranks brings them.
MERGE = """
import resource, sys
from pathlib import Path
from msgspec.structs import replace
from numaplan.analyzer import analyze_trace, merge_analyses, placement_summary, show_analysis
from numaplan.profiler import Trace

with Trace.open(Path(sys.argv[1])) as trace:
    one = analyze_trace(trace, slice_ns=1_000_000)

def shown(ranks):
    threads = [[replace(thread, process=f"r{rank}") for thread in one.threads] for rank in range(ranks)]
    merged = merge_analyses([replace(one, threads=own) for own in threads])
    show_analysis(merged, [], placement_summary(merged, []))

shown(2)
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + int(sys.argv[3]),) * 2)
shown(int(sys.argv[2]))
"""


def neighbours(path: Path) -> Path:
    """A rank whose threads write their own page and read the next thread's."""
    rng = np.random.default_rng(0)
    thread, reads = rng.integers(0, THREADS, SAMPLES), rng.random(SAMPLES) < 0.5
    samples = {
        "time_ns": np.arange(SAMPLES) * 1000,
        "thread": thread,
        "addr": (1 << 24) + (thread + reads) % THREADS * 4096 + rng.integers(0, 4096, SAMPLES),
        "is_write": ~reads,
    }
    rows = [(i, "r0", f"0.{i}" if i else "0", i, 1, "t", 0, -1) for i in range(THREADS)]
    return write_trace(path, samples, rows)


def test_ranks_recorded_apart_take_no_memory_for_pairs_that_never_met(tmp_path: Path) -> None:
    assert PAIRS > 4 * SPARE  # a byte a pair would be too much
    trace = neighbours(tmp_path / "r0.db")
    done = subprocess.run(
        [sys.executable, "-c", MERGE, str(trace), str(RANKS), str(SPARE)],
        env=clean_environment(),
        capture_output=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr.decode()
    said = done.stdout.decode()
    assert f"{THREADS * RANKS:,} threads" in said
    assert "r0:0, r0:0.1" in said and "cannot be seen" in said
