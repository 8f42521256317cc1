"""The decoder against files that the tests write themselves: every layout, both byte orders, pipes, zstd."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.profiler.perfdata.decode import decode_perf
from tests.support.perfdata_builder import COMPRESSED2, SAMPLE_ORDER, VERSION, Builder, Event
from tests.support.properties import examples

COLUMNS = ("time", "pid", "tid", "cpu", "ip", "addr", "phys_addr", "period", "data_src")
BASIC = ("ip", "tid", "time", "addr", "id", "cpu", "period")
NOT_TOGETHER = ("weight", "weight_struct")

values = st.fixed_dictionaries(
    {
        **{
            name: st.integers(0, 2**63 - 1)
            for name in ("time", "ip", "addr", "phys_addr", "period", "data_src")
        },
        **{name: st.integers(0, 2**31 - 1) for name in ("pid", "tid", "cpu", "weight")},
        "callchain": st.lists(st.integers(0, 2**64 - 1), max_size=4),
        "raw": st.binary(max_size=20),
        "branch_stack": st.sampled_from([(), (1, 2, 3), (1, 2, 3, 4, 5, 6)]),
        "regs_user": st.integers(0, 1),
        "regs_intr": st.integers(0, 1),
        "stack_user": st.sampled_from([b"", b"\xff" * 16, b"x" * 64]),
        "read": st.integers(0, 3),
        "aux": st.sampled_from([b"", b"packets!" * 3]),
    }
)
kinds = st.lists(st.sampled_from([name for name, _bit in SAMPLE_ORDER]), unique=True).filter(
    lambda names: not all(name in names for name in NOT_TOGETHER)
)
events = st.builds(
    Event,
    fields=kinds,
    size=st.sampled_from([96, 104, 112, 120, 128, 136, 144]),
    read_format=st.integers(0, 31),
    regs_user=st.sampled_from([0, 0b1011, 2**40 - 1]),
    branch_type=st.sampled_from([0, 1 << 17, 1 << 19, 1 << 17 | 1 << 19]),
)


def write(folder: Path, data: bytes) -> Path:
    path = folder / "perf.data"
    path.write_bytes(data)
    return path


def check(decoded: Any, event: Event, expected: list[dict[str, Any]]) -> None:
    samples = decoded.samples
    assert not decoded.warnings
    assert len(samples["time"]) == len(expected)
    for name in COLUMNS:
        present = ("tid" if name == "pid" else name) in event.fields
        assert samples[name].tolist() == [one[name] if present else 0 for one in expected], name
    weighed = set(NOT_TOGETHER) & set(event.fields)
    assert samples["weight"].tolist() == [one["weight"] if weighed else 0 for one in expected]


@examples(150)
@given(event=events, samples=st.lists(values, min_size=1, max_size=6), data=st.data())
def test_every_layout_reads_back(
    tmp_path: Path, event: Event, samples: list[dict[str, Any]], data: st.DataObject
) -> None:
    if "regs_intr" in event.fields and event.size < 104:
        event.size = 104
    event.regs_intr = 0b111
    builder = Builder([event], order=data.draw(st.sampled_from("<>")))
    for one in samples:
        builder.sample(0, one)
    form = data.draw(st.sampled_from(["file", "pipe", "zstd", "zstd pipe"]))
    if "zstd" in form:
        builder.compress(cut=data.draw(st.integers(1, 60)))
    content = builder.pipe() if "pipe" in form else builder.file()
    check(decode_perf(write(tmp_path, content)), event, samples)


@pytest.mark.parametrize("field", ["id", "identifier"])
def test_events_of_different_layout_are_told_apart_by_id(tmp_path: Path, field: str) -> None:
    loads = Event((*BASIC, "weight", "data_src"), ids=(10, 11), name="loads")
    stores = Event((*BASIC, "callchain", "phys_addr"), ids=(20, 21), name="stores")
    for event in (loads, stores):
        event.fields = [field if name == "id" else name for name in event.fields]
    builder = Builder([loads, stores])
    for index in range(40):
        event = index % 3 == 0
        builder.sample(
            event,
            {
                "id": 20 + index % 2 if event else 10,
                "tid": index,
                "addr": index,
                "callchain": [1] * (index % 5),
                "weight": 7,
                "phys_addr": 9,
            },
        )
    decoded = decode_perf(write(tmp_path, builder.file()))
    assert decoded.events == ("loads", "stores")
    assert decoded.samples["event"].tolist() == [int(index % 3 == 0) for index in range(40)]
    assert decoded.samples["tid"].tolist() == list(range(40))
    assert decoded.samples["weight"].tolist() == [0 if index % 3 == 0 else 7 for index in range(40)]
    assert decoded.samples["phys_addr"].tolist() == [9 if index % 3 == 0 else 0 for index in range(40)]


def test_samples_of_unknown_events_are_left_out_and_counted(tmp_path: Path) -> None:
    builder = Builder([Event(BASIC, ids=(1,)), Event(BASIC, ids=(2,))])
    for number in (1, 2, 99, 1, 0):  # what perf makes up itself has the id 0
        builder.sample(0, {"id": number, "addr": number})
    decoded = decode_perf(write(tmp_path, builder.file()))
    assert decoded.samples["addr"].tolist() == [1, 2, 1, 0]
    assert decoded.warnings == ("1 samples belong to no known event: left out",)


def test_threads_maps_losses_and_names(tmp_path: Path) -> None:
    builder = Builder([Event(BASIC, name="mem-loads,ldlat=30")])
    builder.features[VERSION] = builder.text_feature("6.1.5")
    builder.comm(5, 5, "perf", 90)
    builder.comm(5, 5, "app", 100, by_exec=True)
    builder.fork(5, 6, 5, 110)
    builder.comm(5, 6, "worker", 111)
    builder.mmap2(5, 0x400000, 0x1000, "/bin/app", 105, build_id="ab" * 20)
    builder.sample(0, {"pid": 5, "tid": 9, "time": 112})
    builder.lost(17, 113)
    builder.end(5, 6, 5, 120)
    builder.fork(7, 6, 5, 130)  # the tid comes back in another process
    builder.record(13, builder.pack("Q", 17) + builder.tail({"time": 140}))
    decoded = decode_perf(write(tmp_path, builder.file()))
    lives = [(t.pid, t.tid, t.name, t.start, t.end) for t in decoded.threads]
    assert lives == [
        (5, 5, "app", -1, -1),
        (5, 6, "worker", 110, 120),
        (7, 6, "app", 130, -1),
        (5, 9, "", -1, -1),
    ]
    assert decoded.execs == ((100, 5),)
    assert [(m.pid, m.addr, m.length, m.filename, m.build_id, m.time) for m in decoded.maps] == [
        (5, 0x400000, 0x1000, "/bin/app", "ab" * 20, 105)
    ]
    assert decoded.losses == ((113, 17),)
    assert decoded.lost == 17  # since 6.0 LOST_SAMPLES repeats LOST
    assert decoded.events == ("mem-loads,ldlat=30",)
    assert decoded.header["version"] == "6.1.5"


def test_old_recordings_lose_samples_twice(tmp_path: Path) -> None:
    builder = Builder([Event(BASIC)])
    builder.features[VERSION] = builder.text_feature("4.4.1")
    builder.lost(3, 10)
    builder.record(13, builder.pack("Q", 4) + builder.tail({}))
    assert decode_perf(write(tmp_path, builder.file())).lost == 7


def test_unknown_records_are_skipped_and_trailing_data_passed_over(tmp_path: Path) -> None:
    builder = Builder([Event(BASIC)])
    builder.sample(0, {"addr": 1})
    builder.record(200, b"x" * 24)
    builder.record(1 << 20, b"")
    builder.records.append(builder.record(71, builder.pack("Q", 13) + b"\0" * 32) + b"?" * 13)
    builder.records.pop(-2)
    builder.sample(0, {"addr": 2})
    assert decode_perf(write(tmp_path, builder.pipe())).samples["addr"].tolist() == [1, 2]


def test_compressed2_and_plain_records_between(tmp_path: Path) -> None:
    builder = Builder([Event(BASIC)])
    for index in range(300):
        builder.sample(0, {"addr": index})
    builder.compress(cut=100, kind=COMPRESSED2)
    builder.record(68, b"")
    decoded = decode_perf(write(tmp_path, builder.file()))
    assert decoded.samples["addr"].tolist() == list(range(300))
    assert not decoded.warnings


def test_a_directory_of_several_files(tmp_path: Path) -> None:
    builder = Builder([Event(BASIC)])
    builder.sample(0, {"addr": 1})
    write(tmp_path, b"").unlink()
    (tmp_path / "data").write_bytes(builder.file())
    for index in (10, 2, 0):
        part = Builder(builder.events)
        part.sample(0, {"addr": 100 + index})
        (tmp_path / f"data.{index}").write_bytes(part.records[0])
    assert decode_perf(tmp_path).samples["addr"].tolist() == [1, 100, 102, 110]


def test_more_samples_than_a_block(tmp_path: Path) -> None:
    builder = Builder([Event(("identifier", "addr"), ids=(1,)), Event(("identifier", "addr"), ids=(2,))])
    one = np.zeros(
        70000, dtype=[("type", "<u4"), ("misc", "<u2"), ("size", "<u2"), ("id", "<u8"), ("addr", "<u8")]
    )
    one["type"], one["size"], one["id"], one["addr"] = 9, 24, 1 + np.arange(70000) % 2, np.arange(70000)
    builder.records.append(one.tobytes())
    decoded = decode_perf(write(tmp_path, builder.file()))
    np.testing.assert_array_equal(decoded.samples["addr"], np.arange(70000))
    np.testing.assert_array_equal(decoded.samples["event"], np.arange(70000) % 2)


def test_stream_ids_tell_events_apart(tmp_path: Path) -> None:
    fields = ("tid", "addr", "stream_id")
    builder = Builder([Event(fields, ids=(1,)), Event(fields, ids=(2,))])
    for event in (0, 1, 1):
        builder.sample(event, {"stream_id": event + 1})
    assert decode_perf(write(tmp_path, builder.file())).samples["event"].tolist() == [0, 1, 1]


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_first_magic(tmp_path: Path, order: str) -> None:
    builder = Builder([Event(BASIC)], order=order)
    builder.sample(0, {"addr": 77})
    decoded = decode_perf(write(tmp_path, b"PERFFILE" + builder.file()[8:]))
    assert decoded.samples["addr"].tolist() == [77]


def test_guests_are_marked(tmp_path: Path) -> None:
    builder = Builder([Event(BASIC)])
    for mode in (2, 5, 1):
        builder.sample(0, {})
        kind, _misc, size = 9, 0, 64
        builder.records[-1] = builder.pack("IHH", kind, mode | 1 << 14, size) + builder.records[-1][8:]
    assert decode_perf(write(tmp_path, builder.file())).samples["cpumode"].tolist() == [2, 5, 1]


@pytest.mark.parametrize("pipe", [False, True])
def test_build_ids_of_files_that_mappings_do_not_tell(tmp_path: Path, pipe: bool) -> None:
    builder = Builder([Event(BASIC)])
    builder.mmap2(5, 0x1000, 0x1000, "/bin/app", 1)
    builder.mmap2(5, 0x3000, 0x1000, "/bin/other", 1)
    ids = Builder(builder.events)
    body = (
        builder.pack("i", -1)
        + bytes.fromhex("ab" * 16).ljust(20, b"\0")
        + b"\x10\0\0\0"
        + b"/bin/app".ljust(64, b"\0")
    )
    record = ids.record(67, body, misc=1 << 15)
    if pipe:
        builder.records.append(record)
    else:
        builder.features[2] = record
    decoded = decode_perf(write(tmp_path, builder.pipe() if pipe else builder.file()))
    assert [one.build_id for one in decoded.maps] == ["ab" * 16, ""]


def test_the_feature_bits_of_a_32_bit_big_endian_writer(tmp_path: Path) -> None:
    builder = Builder([Event(BASIC, name="my-event")], order=">")
    builder.features[3] = builder.text_feature("box")
    builder.sample(0, {"addr": 1})
    content = bytearray(builder.file())
    content[72:76], content[76:80] = content[76:80], content[72:76]
    decoded = decode_perf(write(tmp_path, bytes(content)))
    assert (decoded.header["hostname"], decoded.events) == ("box", ("my-event",))
