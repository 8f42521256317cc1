"""Times of recordings that damage made: what is possible is imported, and no unreadable trace is written."""

from pathlib import Path

import pytest

from numaplan.common import UsageError
from numaplan.profiler.perfdata.accesses import blocks
from numaplan.profiler.recording.importing import import_recordings
from numaplan.profiler.trace.reader import Trace
from numaplan.profiler.trace.writer import TraceWriter
from tests.support.perfdata_builder import Builder, Event

UPTIME, WALL_CLOCK = 1_573_963_445_383, 1_790_000_000_000_000_000


def recording(first: int, flipped: dict[int, int]) -> Builder:
    """100 accesses and records of two threads; flipped: bits in the times of some accesses."""
    builder = Builder([Event(("tid", "time", "addr"), name="mem-loads")])
    builder.comm(5, 5, "app", first, by_exec=True)
    builder.mmap2(5, 0x400000, 0x1000, "/bin/app", first)
    builder.fork(5, 6, 5, first)
    for step in range(100):
        time = first + 10 + step ^ flipped.get(step, 0)
        builder.sample(0, {"pid": 5, "tid": 5 + step % 2, "time": time, "addr": 64 * step + 64})
    builder.lost(3, first + 50)
    return builder


def content(path: Path) -> tuple[int, int, int, str]:
    with Trace.open(path) as trace:
        ((count, last),) = trace.rows("SELECT count(*), max(time_ns) FROM samples")
        return count, last, trace.duration_ns, trace.meta.get("warnings", "")


@pytest.mark.parametrize("kept", [blocks.KEPT, 0])
@pytest.mark.parametrize("first", [UPTIME, WALL_CLOCK])
@pytest.mark.parametrize("bit", [62, 60, 58])
def test_accesses_at_impossible_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int, bit: int, kept: int
) -> None:
    monkeypatch.setattr("numaplan.profiler.recording.importing.KEPT", kept)
    builder = recording(first, {0: 1 << bit, 50: 1 << bit})
    (tmp_path / "perf.data").write_bytes(builder.file())
    assert import_recordings([str(tmp_path / "perf.data")], tmp_path / "t.db").samples == 98
    warning = "2 samples and records have impossible times: left out"
    assert content(tmp_path / "t.db") == (98, 98, 98, warning)


def test_records_at_impossible_times(tmp_path: Path) -> None:
    builder = recording(UPTIME, {})
    far = UPTIME | 1 << 61
    builder.end(5, 6, 5, far)
    builder.mmap2(5, 0x800000, 0x1000, "/lib/far", far)
    builder.comm(5, 5, "app", far, by_exec=True)
    builder.lost(4, far)
    (tmp_path / "perf.data").write_bytes(builder.file())
    summary = import_recordings([str(tmp_path / "perf.data")], tmp_path / "t.db")
    assert (summary.samples, summary.threads, summary.losses) == (100, 2, 7)
    count, last, duration, warning = content(tmp_path / "t.db")
    assert (count, last, duration) == (100, 99, 99)
    assert warning == "4 samples and records have impossible times: left out"


def test_an_honest_recording_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "perf.data").write_bytes(recording(WALL_CLOCK, {}).file())
    import_recordings([str(tmp_path / "perf.data")], tmp_path / "t.db")
    assert content(tmp_path / "t.db") == (100, 99, 99, "")


@pytest.mark.parametrize("facts", [{"duration_ns": 1 << 62}, {"rank": -1}, {"period": "many"}])
def test_what_no_reader_takes_replaces_no_trace(tmp_path: Path, facts: dict[str, object]) -> None:
    path = tmp_path / "t.db"
    path.write_bytes(b"an earlier one")
    with pytest.raises(UsageError, match="impossible"), TraceWriter(path) as writer:
        writer.set_meta(facts)
    assert path.read_bytes() == b"an earlier one"
    assert list(tmp_path.iterdir()) == [path]
