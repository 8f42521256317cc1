"""Damaged and unfinished recordings: an error that names the place, or a warning and all that can be read."""

from pathlib import Path

import pytest

from numaplan.common import UsageError
from numaplan.profiler.perfdata.decode import decode_perf
from numaplan.profiler.perfdata.file.source import PerfDataError
from tests.support.perfdata_builder import VERSION, Builder, Event

BASIC = ("ip", "tid", "time", "addr", "id", "cpu", "period")


def write(folder: Path, data: bytes) -> Path:
    path = folder / "perf.data"
    path.write_bytes(data)
    return path


def test_an_unfinished_recording_is_read_to_its_end(tmp_path: Path) -> None:
    builder = Builder([Event(BASIC, type=1, config=2)])
    for index in range(10):
        builder.sample(0, {"addr": index})
    whole = builder.file(size_in_header=0)
    cut = whole[: whole.index(b"".join(builder.records)) + 64 * 9 + 20]
    decoded = decode_perf(write(tmp_path, cut))
    assert decoded.samples["addr"].tolist() == list(range(9))
    assert decoded.events == ("page-faults:HG",)  # no EVENT_DESC in it: perf's own name
    assert decoded.header["unfinished"]
    assert len(decoded.warnings) == 2


def test_ids_come_from_event_desc_when_the_table_is_damaged(tmp_path: Path) -> None:
    builder = Builder([Event(BASIC, ids=(1,), name="a"), Event(BASIC, ids=(2,), name="b")])
    for number in (2, 1, 2):
        builder.sample(0, {"id": number})
    content = bytearray(builder.file())
    entry = 104 + 16 + 128  # behind the ids: the first attr's section of ids
    content[entry : entry + 8] = (1 << 40).to_bytes(8, "little")
    decoded = decode_perf(write(tmp_path, bytes(content)))
    assert decoded.samples["event"].tolist() == [1, 0, 1]
    assert "not readable" in decoded.warnings[0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "offset 0: empty"),
        (b"\x1f\x8b\x08" + b"\0" * 100, "offset 0"),
        (b"PERFILE2", "cut short"),
        (b"PERFILE2" + b"\x68" + b"\0" * 40, "cut short"),
        (Builder([Event(BASIC)]).file()[:104], "data section at offset"),
        (b"PERFILE2" + b"\x10" + b"\0" * 7, "no events"),
    ],
)
def test_files_with_nothing_to_read(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(PerfDataError, match=words):
        decode_perf(write(tmp_path, content))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        decode_perf(tmp_path / "nothing")


@pytest.mark.parametrize("size", [0, 7, 60000])
def test_an_impossible_record_size_ends_the_reading(tmp_path: Path, size: int) -> None:
    builder = Builder([Event(BASIC)])
    builder.sample(0, {"addr": 1})
    builder.records.append(builder.pack("IHH", 9, 0, size) + b"\0" * 56)
    decoded = decode_perf(write(tmp_path, builder.file()))
    assert decoded.samples["addr"].tolist() == [1]
    assert "record at offset" in decoded.warnings[0]


def test_a_zstd_bomb_is_refused(tmp_path: Path) -> None:
    builder = Builder([Event(BASIC)])
    builder.sample(0, {"addr": 1})
    empty = builder.pack("IHH", 68, 0, 8)
    builder.records.append(empty * 40_000_000)
    first = builder.records[0]
    builder.records = builder.records[1:]
    builder.compress(cut=60000)
    builder.records.insert(0, first)
    decoded = decode_perf(write(tmp_path, builder.file()))
    assert decoded.samples["addr"].tolist() == [1]
    assert "without bound" in decoded.warnings[0]


def test_ids_that_many_events_share_take_no_more_memory_than_the_file(tmp_path: Path) -> None:
    builder = Builder([Event(BASIC, ids=(1,))] * 3000)
    builder.sample(0, {"id": 1})
    content = bytearray(builder.file())
    attrs_at = int.from_bytes(content[24:32], "little")
    for place in range(attrs_at + 128, attrs_at + 3000 * 144, 144):
        content[place : place + 16] = (0).to_bytes(8, "little") + (len(content) // 8 * 8).to_bytes(
            8, "little"
        )
    decoded = decode_perf(write(tmp_path, bytes(content)))
    assert len(decoded.warnings) == 2999
    assert len(decoded.events) == 3000


def test_a_pipe_of_nothing_but_events(tmp_path: Path) -> None:
    builder = Builder([Event(BASIC, ids=(index,), config=index) for index in range(6000)])
    for _ in range(3):
        builder.sample(0, {"id": 7})
    content = builder.pipe()
    decoded = decode_perf(write(tmp_path, content))
    assert len(decoded.events) == 4096
    assert decoded.samples["event"].tolist() == [7, 7, 7]


@pytest.mark.parametrize("version", ["5.10", "6.1"])
def test_losses_that_cannot_be(tmp_path: Path, version: str) -> None:
    builder = Builder([Event(BASIC)])
    builder.features[VERSION] = builder.text_feature(version)
    builder.sample(0, {"pid": 5, "tid": 5, "time": 100, "addr": 64})
    builder.lost(1 << 63, 110)
    builder.lost(7, 120)
    builder.lost(0, 130)
    builder.record(13, builder.pack("Q", 7 | 1 << 62) + builder.tail({"time": 140}))
    path = write(tmp_path, builder.file())
    decoded = decode_perf(path)
    assert (decoded.losses, decoded.lost) == (((120, 7), (130, 0)), 7)
    assert decoded.warnings == ("2 records count impossible losses: left out",)
