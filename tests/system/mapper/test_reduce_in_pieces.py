"""A trace that is larger than the memory allowed is reduced in pieces, to the part that memory would give."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.commands import BIN, clean_environment
from tests.support.traces import PLAIN, write_trace

pytestmark = pytest.mark.system
THREADS, PAGES, BASE = 8, 4096, 1 << 30
SAMPLES = 5 << 20
IN_MEMORY = SAMPLES * sum(np.dtype(kind).itemsize for kind, _ in PLAIN.values())
SPARE = 250 << 20  # some 150 are used, and glibc may set 64 aside for a thread, by chance
# As it is, one million samples are read at once, eight counted and two asked who comes back: fewer here, so
# that a smaller trace will do. The limit is set after a small trace, when all libraries and their threads are
# there.
REDUCE = """
import resource, sys
from pathlib import Path
from numaplan.analyzer import returns
from numaplan.analyzer.communication import counter
from numaplan.analyzer.samples import trace_samples
from numaplan.mapper.jobs.reducing import reduce_trace

small, large, job, spare = sys.argv[1:]
counter.MOST_SAMPLES, trace_samples.PIECE, returns.MOST = 1 << 18, 1 << 17, 1 << 17
reduce_trace(Path(small), Path(job))
if int(spare):
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + int(spare),) * 2)
reduce_trace(Path(large), Path(job))
"""


def trace_of(path: Path, samples: int) -> Path:
    """A rank whose threads use memory of their own, and the next one's at its border."""
    rng = np.random.default_rng(0)
    thread = rng.integers(0, THREADS, samples)
    page = (thread * (PAGES // THREADS) + rng.integers(0, PAGES // THREADS + 8, samples)) % PAGES
    return write_trace(
        path,
        {
            "time_ns": np.arange(samples) * 100,
            "thread": thread,
            "addr": BASE + page * 4096 + rng.integers(0, 4096, samples),
            "region": 0,
            "is_write": rng.random(samples) < 0.3,
        },
        [(i, "r0", f"0.{i}" if i else "0", 100 + i, 100, "t", 0, -1) for i in range(THREADS)],
        [(0, "r0", "heap", "app+0x1", "", BASE, PAGES * 4096, 0, 1, 0, -1)],
    )


@pytest.mark.slow
def test_a_trace_larger_than_memory_gives_the_same_part(tmp_path: Path) -> None:
    assert IN_MEMORY > 1.1 * SPARE
    small, large = trace_of(tmp_path / "small.db", 100_000), trace_of(tmp_path / "large.db", SAMPLES)
    for job, spare in (("free", 0), ("limited", SPARE)):
        words = [sys.executable, "-c", REDUCE, small, large, tmp_path / job, spare]
        done = subprocess.run(
            [str(word) for word in words], env=clean_environment(), capture_output=True, timeout=240
        )
        assert done.returncode == 0, done.stderr.decode()
    parts = [sorted((tmp_path / job / "rank=0").iterdir()) for job in ("free", "limited")]
    assert [path.name for path in parts[0]] == [path.name for path in parts[1]]
    for one, other in zip(*parts, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


@pytest.mark.parametrize("mib", [1100, 1200])
def test_too_little_memory_is_said_in_one_line(tmp_path: Path, mib: int) -> None:
    """Not that the trace is damaged, and not as an error of numaplan's own. With less than 1 GiB OpenBLAS or
    glibc may end the process themselves, by chance."""
    trace = trace_of(tmp_path / "trace.db", 1_200_000)
    words = f"ulimit -v {mib << 10}; exec {BIN / 'nmap'} reduce {trace} -o {tmp_path / 'job'}"
    done = subprocess.run(["sh", "-c", words], env=clean_environment(), capture_output=True, timeout=240)
    said = done.stderr.decode()
    if done.returncode:  # how much is enough is the machine's and the libraries' business
        assert (done.returncode, said.count("\n")) == (3, 1), said
        assert "not enough memory" in said
        assert not list(tmp_path.glob("job/*"))
