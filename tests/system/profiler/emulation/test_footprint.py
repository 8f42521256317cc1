"""A recording that stands for a larger input: what it says, and what then reaches memory."""

import json
from pathlib import Path

import pytest

from numaplan.analyzer import cache_sizes
from numaplan.profiler import Trace
from tests.support.commands import one_line_error, run, succeed
from tests.support.emulating import BASE, MARKS
from tests.support.programs import OPTIMISED, PROGRAMS, compiled

pytestmark = MARKS
LINES = 40_000  # 2.4 MiB, accessed at random, five times each


def record(folder: Path, *options: str) -> Path:
    program = compiled(PROGRAMS / "recording/random_lines.c", flags=(*OPTIMISED, "-D_GNU_SOURCE"))
    trace = folder / "t.db"
    words = ("--period", "10", "--machine", "1x2", "--backend", "emulate", *options)
    succeed("nprof", "record", *words, "-o", trace, program, "7", str(LINES), str(5 * LINES))
    return trace


def memory_share(trace: Trace) -> float:
    """Of the accesses to these lines, those that reach memory."""
    hits = "avg((level IN ('local_dram', 'remote_dram'))::INT)"
    rows = trace.rows(f"SELECT {hits} FROM samples WHERE addr >= {BASE} AND addr < {BASE + (LINES << 6)}")
    return float(rows[0][0])


@pytest.mark.slow
def test_caches_shrink_as_the_memory_did(tmp_path: Path) -> None:
    path = record(tmp_path, "--for-footprint", "40M")
    facts = json.loads(succeed("nprof", "info", "--json", path))
    assert LINES << 6 <= facts["footprint"] < (LINES << 6) + (4 << 20)
    assert facts["for_footprint"] == 40 << 20 and facts["for_llc"] in (2 << 20, 4 << 20)
    assert "for an input of 40M" in " ".join(succeed("nprof", "info", path).decode().split())
    planned = run("nmap", "plan", path, "--machine", "1x2", "-o", tmp_path / "p.json")
    assert b"for an input of 40M" in planned.stderr
    with Trace.open(path) as trace:
        found = cache_sizes(trace)
        counted = trace.rows(
            "SELECT sum(value) FROM counters WHERE event IN ('llc_misses_local', 'llc_misses_remote')"
        )
    assert found is not None and found.sizes[found.levels] == facts["for_llc"]
    assert counted == [(found.misses(found.ratio_for(40 << 20)).sum(),)]


@pytest.mark.slow
def test_what_is_evicted_and_used_again_reaches_memory(tmp_path: Path) -> None:
    with Trace.open(record(tmp_path)) as trace:
        assert "for_llc" not in trace.meta
        whole, found = memory_share(trace), cache_sizes(trace)
    assert found is not None and found.levels == len(found.sizes) - 1
    total = found.missed.sum(axis=0)
    assert (total[:-1] >= total[1:]).all()
    assert whole == pytest.approx(0.2, abs=0.03)  # first touches: the last level holds all lines
    with Trace.open(record(tmp_path, "--for-footprint", "640M")) as trace:
        small = memory_share(trace)
    # Of 40,000 lines a cache of 128 or 256 KiB holds the last 2,048 or 4,096.
    assert 0.85 < small < 0.97


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--backend", "faults"), "its caches are real"),
        (("--no-cache",), "without a model of caches"),
        (("--set", "reach=off"), "without a model of caches"),
    ],
)
def test_it_takes_a_model_of_caches(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    result = run("nprof", "record", "--for-footprint", "1G", *words, "-o", tmp_path / "t.db", "true")
    assert said in one_line_error(result, "nprof", 2)


@pytest.mark.slow
def test_what_is_only_reserved_takes_little_memory(tmp_path: Path) -> None:
    """QEMU 7.2 would keep 6 GiB of notes of 1 TiB; it does so anew at each place where 16 GiB are."""
    words = ("--machine", "1x2", "--backend", "emulate", "--no-cache", "-o", tmp_path / "t.db")
    most_mib = int(succeed("nprof", "record", *words, compiled(PROGRAMS / "recording/reserved.c")))
    assert most_mib < 2048
    facts = json.loads(succeed("nprof", "info", "--json", tmp_path / "t.db"))
    assert facts["footprint"] < 64 << 20
