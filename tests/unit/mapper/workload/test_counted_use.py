"""What counters and counted transfers say of threads: of a whole recording, a part of one, and several."""

from pathlib import Path

import numpy as np
import pytest

from numaplan.mapper.workload.from_trace import workload_of_trace
from numaplan.mapper.workload.part import WHOLE, Part
from numaplan.mapper.workload.runs import workload_of_traces
from numaplan.mapper.workload.use import ThreadUse
from numaplan.profiler import EVENT_CODE, LEVEL_CODE
from tests.support.traces import write_trace

HEAP, LIBC, PERIOD = 1 << 24, 1 << 28, 1000
ACCESSES = 400_000
MADE_OF_LINES = 1.5  # lines that were taken, over transfers


def record(path: Path) -> Path:
    """Each of two threads makes 200 samples; most transfers are in the second half."""
    time = np.arange(400)
    samples = {
        "time_ns": time * PERIOD,
        "thread": time % 2,
        "addr": HEAP + time * 64,
        "event": EVENT_CODE["load"],
        "region": 0,
        "reach": np.where(time % 4 < 2, 2, 0),  # half of them miss all caches but the larger one
    }
    threads = [(i, "p0", f"0.{i}" if i else "0", i + 1, 1, "x", 0, -1) for i in range(2)]
    regions = [
        (0, "p0", "heap", "x+1", "", HEAP, 1 << 16, 0, 0, 0, -1),
        (1, "p0", "static", "libc.so.6:.data", "", LIBC, 1 << 12, -1, 0, 0, -1),
    ]
    half = ACCESSES // 2
    transfers = [(0, half, 0, 1, 0, 100), (half, ACCESSES, 1, 0, 0, 800), (half, ACCESSES, 0, 1, 1, 100)]
    counted = {
        "loads": ACCESSES / 2,
        "coherence": 500 * MADE_OF_LINES,
        "sleeps": 8.0,
        "l1_misses": 9000.0,
        "llc_misses_at_1M": 120_000.0,
        "llc_misses_at_2M": 100_000.0,
        "llc_misses_at_4M": 20_000.0,
    }
    counters = [(ACCESSES, i, name, value) for i in range(2) for name, value in counted.items()]
    sizes = {"llc_sizes": f"{1 << 20}:{2 << 20}", "llc_larger": 4 << 20, "for_llc": 2 << 20}
    meta = {"period": PERIOD, "transfers": "all", "clock": "accesses", "duration_ns": ACCESSES, **sizes}
    return write_trace(path, samples, threads, regions, meta, "2x2", transfers, counters=counters)


def use_of(path: Path, part: Part = WHOLE) -> ThreadUse:
    use = workload_of_trace(path, part=part).use
    assert use is not None
    return use


def test_lines_are_those_of_the_pairs_that_took_them(tmp_path: Path) -> None:
    """Those in a library's variables, too, which the matrix leaves out: they move all the same."""
    workload = workload_of_trace(record(tmp_path / "t.db"))
    assert workload.use is not None
    assert np.asarray(workload.comm)[0, 1] == 900
    assert workload.use.lines.sum() == pytest.approx(1000 * MADE_OF_LINES)


@pytest.mark.parametrize(
    ("part", "lines", "accesses"),
    [
        (Part(end="50%"), 100, 0.5),
        (Part(start="50%"), 900, 0.5),
        (Part(start="25%"), 1000, 0.75),
    ],
)
def test_a_part_has_its_share_of_what_was_counted(
    part: Part, lines: int, accesses: float, tmp_path: Path
) -> None:
    whole, use = use_of(record(tmp_path / "t.db")), use_of(tmp_path / "t.db", part)
    assert use.exact and use.lines.sum() == pytest.approx(lines * MADE_OF_LINES)
    assert use.accesses == pytest.approx(whole.accesses * accesses)
    for own, of_all in ((use.sleeps, whole.sleeps), (use.beyond, whole.beyond)):
        assert own is not None and of_all is not None and own == pytest.approx(of_all * accesses)
    assert use.caches is not None and whole.caches is not None
    assert use.caches.sizes == whole.caches.sizes == (1 << 20, 2 << 20, 4 << 20)
    assert use.caches.missed == pytest.approx(np.array([[100, 100, 20]] * 2) * 1000 * accesses)


def test_a_recording_given_twice_says_what_it_says_once(tmp_path: Path) -> None:
    once = use_of(record(tmp_path / "t.db"))
    twice = workload_of_traces([tmp_path / "t.db"] * 2).use
    assert twice is not None and twice.caches is not None and once.caches is not None
    assert twice.beyond is not None and once.beyond is not None
    assert twice.beyond == pytest.approx(once.beyond)
    assert twice.caches.sizes == once.caches.sizes and twice.caches.own == once.caches.own
    assert twice.caches.missed == pytest.approx(once.caches.missed)
    assert twice.caches.domain.tolist() == once.caches.domain.tolist()


@pytest.mark.parametrize(
    ("level", "share"), [("unknown", 1.0), ("l3", 1.0), ("local_dram", 0.0), ("l2", 1.0)]
)
def test_of_samples_no_more_lines_than_may_have_come_from_another_cache(
    level: str, share: float, tmp_path: Path
) -> None:
    """Main writes all, and another thread reads it later: out of memory, if the levels say so. Where none
    tells of more than the first caches, they say nothing."""
    number = np.arange(2000)
    samples = {
        "time_ns": number * PERIOD,
        "thread": number // 1000,
        "addr": HEAP + number % 1000 * 64,
        "event": np.where(number < 1000, EVENT_CODE["store"], EVENT_CODE["load"]),
        "is_write": number < 1000,
        "level": np.where(number < 1000, LEVEL_CODE["l1"], LEVEL_CODE[level]),
        "region": 0,
    }
    threads = [(i, "p0", f"0.{i}" if i else "0", i + 1, 1, "x", 0, -1) for i in range(2)]
    regions = [(0, "p0", "heap", "x+1", "", HEAP, 1 << 16, 0, 0, 0, -1)]
    meta = {"period": PERIOD, "duration_ns": 2000 * PERIOD}
    write_trace(tmp_path / "t.db", samples, threads, regions, meta, "2x2")
    workload = workload_of_trace(tmp_path / "t.db")
    assert workload.use is not None
    events = float(np.asarray(workload.comm).sum()) / 2
    assert 0 < events < 1000
    assert workload.use.lines.sum() == pytest.approx(events * PERIOD * share)
