"""What reaches memory under caches of several sizes: by thread, by sample, and as analyses take it."""

from pathlib import Path

import numpy as np
import pytest

from numaplan.analyzer import TraceSamples, analyze_trace, cache_sizes, levels_at, modelled_sizes
from numaplan.analyzer.samples import trace_samples
from numaplan.profiler import LEVEL_CODE, Machine, Trace, TraceWriter
from tests.support.traces import PLAIN

META = {"llc_sizes": "1048576:2097152:4194304", "footprint": str(64 << 20), "period": 1000}
REACH = [0, 1, 2, 3, 3, -1, -1]
LEVEL = ["l1", "l3", "l2", "remote_dram", "l3", "l2", "local_dram"]


def write(path: Path, repeat: int = 1, **meta: object) -> Path:
    rows = len(REACH) * repeat
    columns = {name: np.full(rows, value, kind) for name, (kind, value) in PLAIN.items()}
    columns["time_ns"] = np.arange(rows)
    columns["thread"] = np.arange(rows, dtype=np.int32) % 2
    columns["reach"] = np.array(REACH * repeat, np.int8)
    columns["level"] = np.array([LEVEL_CODE[name] for name in LEVEL] * repeat, np.uint8)
    with TraceWriter(path) as writer:
        writer.add_rows("machine", [(Machine.load("2x2").to_json().decode(),)])
        writer.add_rows("threads", [(t, "p0", f"0.{t}", t, 1, "x", 0, -1) for t in range(2)])
        counts = {"loads": (70, 60), "stores": (30, 40)}
        counts |= {
            f"llc_misses_at_{size}M": (number, number + 1)
            for size, number in ((1, 30), (2, 20), (4, 5), (8, 2))
        }
        writer.add_rows(
            "counters", [(9, t, name, values[t]) for name, values in counts.items() for t in range(2)]
        )
        writer.add_samples(columns)
        writer.set_meta({**META, **meta})
    return path


def test_misses_by_thread_and_ratio(tmp_path: Path) -> None:
    with Trace.open(write(tmp_path / "t.db")) as trace:
        found = cache_sizes(trace)
    assert found is not None
    assert found.sizes == (1 << 20, 2 << 20, 4 << 20) and found.levels == 2
    assert found.ratios.tolist() == [0.25, 0.5, 1.0]
    assert found.missed.tolist() == [[30, 20, 5], [31, 21, 6]]
    assert found.accesses.tolist() == [100, 100]
    for ratio, misses in ((1, [5, 6]), (7, [5, 6]), (0.6, [20, 21]), (0.3, [30, 31]), (0.0, [30, 31])):
        assert found.misses(ratio).tolist() == misses
    assert found.ratio_for(128 << 20) == 0.5 and found.ratio_for(1) == 1


def test_larger_caches_than_the_machine_s_stand_apart(tmp_path: Path) -> None:
    with Trace.open(write(tmp_path / "t.db", llc_larger="8388608")) as trace:
        found = cache_sizes(trace)
    assert found is not None and found.sizes[-1] == 4 << 20 and found.ratios[-1] == 1
    assert found.larger == (8 << 20,) and found.missed_larger.tolist() == [[2], [3]]
    with Trace.open(tmp_path / "t.db") as trace, trace.between(0, 7) as part:
        found = cache_sizes(part)
    assert found is not None and found.larger == () and found.missed.shape == (2, 3)


def test_a_part_of_a_recording_has_what_its_samples_say(tmp_path: Path) -> None:
    with Trace.open(write(tmp_path / "t.db", 2)) as trace, trace.between(0, 7) as part:
        found = cache_sizes(part)
    assert found is not None
    assert found.accesses.tolist() == [3000, 2000]
    assert found.missed.tolist() == [[2000, 2000, 1000], [2000, 1000, 1000]]


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        (1 << 20, "64.0M of memory, more than the 1M of --for-footprint: it stands for its own input"),
        (72 << 20, "for an input of 72M, which is near enough that the last-level cache stays as it is"),
    ],
)
def test_an_input_that_no_smaller_cache_stands_for(tmp_path: Path, stated: int, said: str) -> None:
    with Trace.open(write(tmp_path / "t.db", 40, for_footprint=stated, for_llc=4 << 20)) as trace:
        (note,) = (note for note in analyze_trace(trace).notes if "recorded with" in note)
    assert note.endswith(said)


def test_the_size_that_levels_are_of(tmp_path: Path) -> None:
    meta = {"for_footprint": 128 << 20, "for_llc": 2 << 20}
    with Trace.open(write(tmp_path / "t.db", 40, **meta)) as trace:
        found, notes = cache_sizes(trace), analyze_trace(trace).notes
    assert found is not None and found.levels == 1
    (note,) = (note for note in notes if "for an input of" in note)
    assert "64.0M of memory for an input of 128M" in note and "of 2M instead of 4M" in note
    assert "smallest" not in note
    with Trace.open(write(tmp_path / "t.db", 40, for_footprint=1 << 40, for_llc=1 << 20)) as trace:
        assert any(
            "of 1M instead of 4M" in note and "smallest" in note for note in analyze_trace(trace).notes
        )


@pytest.mark.parametrize("words", ["", "1:a", "3:2", "2:2", "0:1", "-1", "²"])
def test_sizes_that_cannot_be_are_none(tmp_path: Path, words: str) -> None:
    with Trace.open(write(tmp_path / "t.db", 40, llc_sizes=words)) as trace:
        assert modelled_sizes(trace) == () and cache_sizes(trace) is None
        with pytest.raises(ValueError, match="one size"):
            TraceSamples(trace, 0.5)
        assert not any("input" in note for note in analyze_trace(trace).notes)


def names(codes: np.ndarray) -> list[str]:
    words = {code: name for name, code in LEVEL_CODE.items()}
    return [words[code] for code in codes.tolist()]


def test_levels_follow_the_size() -> None:
    level, reach = np.array([LEVEL_CODE[name] for name in LEVEL], np.uint8), np.array(REACH, np.int8)
    unknown = ["l2", "local_dram"]
    assert names(levels_at(level, reach, 2)) == ["l1", "l3", "l2", "remote_dram", "local_dram", *unknown]
    memory = ["local_dram", "local_dram", "remote_dram", "local_dram"]
    assert names(levels_at(level, reach, 0)) == ["l1", *memory, *unknown]


@pytest.mark.parametrize("piece", [1 << 20, 50])
def test_analyses_take_the_levels_of_a_ratio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    """Held at once or read in pieces."""
    monkeypatch.setattr(trace_samples, "PIECE", piece)
    with Trace.open(write(tmp_path / "t.db", 40)) as trace:
        for ratio, memory in ((None, 2), (1.0, 3), (0.5, 4), (0.25, 5), (0.01, 5)):
            samples = TraceSamples(trace, ratio)
            assert samples.dram_count == 40 * memory == sum(int(one.dram.sum()) for one in samples.pieces())
            assert analyze_trace(trace, samples=samples).misses.sum() == pytest.approx(40 * memory)
