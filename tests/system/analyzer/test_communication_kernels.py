"""Kernels recorded under emulation: a sample shows the communication that all accesses show.

`python -m benchmarks kernels` measures all of them at period 1000; here are a few, at a shorter period.
"""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.analyzer.communication import correlation
from benchmarks.analyzer.kernels import KERNELS, SOURCE, THREADS, measure_kernel
from numaplan.analyzer import analyze_trace
from numaplan.profiler import Trace
from tests.support.commands import needs, run, succeed
from tests.support.programs import compiled

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def program() -> Path:
    needs("qemu-x86_64")
    return compiled(SOURCE)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["grid-columns", "tree", "false-sharing", "false-pairs"])
def test_a_sample_shows_what_all_accesses_show(program: Path, name: str) -> None:
    row = measure_kernel(program, name, sampled=300, period=250)
    assert row["r"] > 0.95
    assert row["plan cost"] < 1.1
    assert row["confidence"] > 0.8


@pytest.mark.slow
def test_every_access_shows_the_pattern_of_the_source_and_its_phases(program: Path, tmp_path: Path) -> None:
    """Roles r and r ^ 1 exchange in the first half of the run, r and r + 8 in the second."""
    trace = tmp_path / "t.db"
    command = ("nprof", "record", "--backend", "emulate", "--period", "20", "-o", trace)
    succeed(*command, "--", program, "phases", str(THREADS), "80")
    with Trace.open(trace) as opened:
        analysis = analyze_trace(opened)
    roles = (np.arange(THREADS) * 5 + 3) % THREADS
    known = (roles[:, None] == roles[None, :] ^ 1) | (roles[:, None] == (roles[None, :] + 8) % 16)
    assert correlation(analysis.comm, known.astype(float)) > 0.95
    done = np.cumsum(analysis.timeline.amount)
    half = int(np.searchsorted(done, done[-1] / 2))  # by accesses, as the speed of a recording varies
    (change,) = analysis.partner_changes
    assert abs(change - half) <= 3


def test_an_unknown_kernel_is_refused(program: Path, tmp_path: Path) -> None:
    result = run("nprof", "record", "--backend", "emulate", "-o", tmp_path / "n.db", "--", program, "x")
    assert b"usage: communication_kernels" in result.stderr
    assert result.returncode == 2


def test_every_kernel_is_in_the_program() -> None:
    text = SOURCE.read_text()
    assert all(f'"{name}"' in text for name in KERNELS)
