"""Files beyond 4 GiB, with holes: places are not cut to 32 bits anywhere."""

import struct
from pathlib import Path

import numpy as np
import pytest

from numaplan.profiler import Trace
from numaplan.profiler.perfdata.decode import decode_perf
from numaplan.profiler.recording.importing import import_recordings
from tests.support.perfdata_builder import Builder, Event

FAR = (5 << 30) + 4096
LOADS = Event(("ip", "tid", "time", "addr", "cpu", "weight"), name="cpu/mem-loads/P")
AUXTRACE, OFFSETS = 71, (40, 48)  # of data and of their size, in the file's header


def samples(builder: Builder, first: int, count: int) -> None:
    for number in range(first, first + count):
        one = {"pid": 7, "tid": 7, "ip": 0x400000, "time": 1000 + number, "addr": 0x7F0000000000 + 8 * number}
        builder.sample(0, {**one, "cpu": number % 3, "weight": number})


def write_at_far_offset(path: Path) -> None:
    """A file whose header says that the data begin far behind it."""
    builder = Builder([LOADS], features={})
    builder.comm(7, 7, "app", 1)
    samples(builder, 0, 60)
    content = builder.file()
    at, size = (struct.unpack_from("<Q", content, offset)[0] for offset in OFFSETS)
    head, data, features = content[:at], content[at : at + size], content[at + size :]
    # The sections of the features follow the data: their places move along.
    count = len([None for _ in range(0, struct.unpack_from("<Q", features)[0] - at - size, 16)])
    table = [struct.unpack_from("<2Q", features, 16 * index) for index in range(count)]
    moved = b"".join(struct.pack("<2Q", start + FAR - at, length) for start, length in table)
    with path.open("wb") as file:
        file.write(head[: OFFSETS[0]] + struct.pack("<Q", FAR) + head[OFFSETS[0] + 8 :])
        file.seek(FAR)
        file.write(data + moved + features[len(moved) :])


def write_across_a_hole(path: Path) -> None:
    """Samples before and behind a hardware trace of 5 GiB, whose bytes stand outside of its record."""
    builder = Builder([LOADS])
    builder.comm(7, 7, "app", 1)
    samples(builder, 0, 20)
    builder.record(AUXTRACE, struct.pack("<4Q2I", FAR, 0, 0, 0, 0, 0))
    behind = Builder([LOADS])
    samples(behind, 20, 40)
    with path.open("wb") as file:
        file.write(builder.pipe())
        file.seek(FAR, 1)
        file.write(b"".join(behind.records))


@pytest.mark.parametrize("write", [write_at_far_offset, write_across_a_hole])
def test_samples_beyond_four_gigabytes(write: object, tmp_path: Path) -> None:
    assert callable(write)
    path = tmp_path / "perf.data"
    write(path)
    if path.stat().st_blocks * 512 > 1 << 30:
        pytest.skip("no files with holes here")
    decoded = decode_perf(path)
    assert not decoded.warnings and decoded.events == ("cpu/mem-loads/P",)
    assert np.array_equal(decoded.samples["time"], 1000 + np.arange(60))
    assert np.array_equal(decoded.samples["addr"], 0x7F0000000000 + 8 * np.arange(60, dtype=np.uint64))
    import_recordings([str(path)], tmp_path / "t.db")
    with Trace.open(tmp_path / "t.db") as trace:
        assert trace.rows("SELECT count(*), min(time_ns), max(time_ns), sum(addr) FROM samples") == [
            (60, 0, 59, 60 * 0x7F0000000000 + 8 * sum(range(60)))
        ]


def test_a_cut_behind_four_gigabytes_is_named(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    write_across_a_hole(path)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 3)
    decoded = decode_perf(path)
    assert len(decoded.samples["time"]) == 59
    (warning,) = decoded.warnings
    assert int(warning.split("offset ")[1].split()[0]) > FAR
