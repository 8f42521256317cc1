"""What stands at different places in events of one file; blocks; zstd without the library."""

from pathlib import Path

import numpy as np
import pytest

from numaplan.profiler.perfdata.accesses import decoder
from numaplan.profiler.perfdata.accesses.blocks import AccessBlocks
from numaplan.profiler.perfdata.accesses.event_kinds import event_codes
from numaplan.profiler.perfdata.decode import decode_perf
from numaplan.profiler.perfdata.file import zstd
from tests.support.perfdata_builder import COMPRESSED2, Builder, Event

LOADS = Event(("identifier", "ip", "tid", "time", "addr", "cpu", "weight"), ids=(11, 12), name="loads")
STORES = Event(("ip", "tid", "time", "callchain", "addr", "id", "data_src"), ids=(21,), name="stores")
PLAIN = Event(("tid", "time", "id"), ids=(31,), name="plain")


def write(folder: Path, data: bytes) -> Path:
    path = folder / "perf.data"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("order", ["<", ">"])
def test_ids_at_different_places(tmp_path: Path, order: str) -> None:
    builder = Builder([LOADS, STORES, PLAIN], order=order)
    wanted = []
    for index in range(60):
        event, number = ((0, 11), (0, 12), (1, 21), (2, 31))[index % 4]
        # What stands where another event has its id must not be taken for one that is not there.
        values = {
            "id": number,
            "pid": 500,
            "tid": index,
            "time": index + 1,
            "addr": 1000 + index,
            "ip": 21,
            "weight": index,
        }
        builder.sample(event, {**values, "callchain": [31] * (index % 3)})
        wanted.append((event, index, 0 if event == 2 else 1000 + index))
    decoded = decode_perf(write(tmp_path, builder.file()))
    columns = [decoded.samples[name].tolist() for name in ("event", "tid", "addr")]
    assert list(zip(*columns, strict=True)) == wanted
    assert not decoded.warnings


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_record_has_the_tail_of_the_event_that_its_id_names(tmp_path: Path, order: str) -> None:
    first = Event(("identifier", "tid", "time", "addr"), ids=(1,))
    tracking = Event(("identifier", "tid", "time", "addr", "cpu"), ids=(2,), name="dummy")
    builder = Builder([first, tracking], order=order)
    body = builder.pack("2i3Q", 5, 5, 0x1000, 0x1000, 0) + b"/bin/app".ljust(16, b"\0")
    builder.record(1, body + builder.pack("2iQ", 5, 5, 777) + builder.pack("2IQ", 3, 0, 2))
    builder.record(1, body + builder.pack("2iQ", 5, 5, 888) + builder.pack("Q", 1))
    builder.sample(0, {"id": 1})
    assert [one.time for one in decode_perf(write(tmp_path, builder.file())).maps] == [777, 888]


def large() -> Builder:
    builder = Builder([LOADS, STORES])
    for index in range(30):
        builder.comm(9, 9 + index, f"worker-{index}", 1)
        for number in (11, 21, 12):
            event = int(number == 21)
            for step in range(20):
                builder.sample(
                    event, {"id": number, "pid": 9, "tid": 9 + step, "time": step, "addr": 1 + index + step}
                )
        builder.lost(1, index)
    return builder


@pytest.mark.parametrize("form", ["file", "zstd", "zstd2 pipe"])
@pytest.mark.parametrize("size", [1, 100, 10**6])
def test_blocks_hold_what_the_whole_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, size: int
) -> None:
    builder = large()
    if "zstd" in form:
        builder.compress(cut=777, kind=COMPRESSED2 if "2" in form else 81)
    path = write(tmp_path, builder.pipe() if "pipe" in form else builder.file())
    whole = decode_perf(path)
    monkeypatch.setattr(decoder, "_BLOCK", size)
    blocks = AccessBlocks(path)
    parts = [vars(part) for part in blocks]
    samples = whole.samples
    tells_cpu = np.array(whole.events)[samples["event"]] == "loads"
    wanted = {
        "time_ns": samples["time"],
        **{name: samples[name] for name in ("pid", "tid", "addr", "phys_addr", "ip")},
        "cpu": np.where(tells_cpu, samples["cpu"], -1),
        "event": event_codes(whole.events)[samples["event"]],
        "latency": np.where(samples["weight"] > 0, samples["weight"].astype(np.int64), -1),
    }
    for name, values in wanted.items():
        assert np.array_equal(np.concatenate([part[name] for part in parts]), values), name
    facts = blocks.facts
    assert (facts.events, facts.lost, facts.maps) == (whole.events, whole.lost, whole.maps)
    assert {(one.pid, one.tid, one.name) for one in facts.threads} == {
        (one.pid, one.tid, one.name) for one in whole.threads
    }
    assert not len(facts.samples["time"])


def test_a_frame_a_record_with_and_without_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import zstandard

    builder = large()
    pieces = [b"".join(builder.records[at : at + 7]) for at in range(0, len(builder.records), 7)]
    builder.records = []
    for piece in pieces:
        builder.record(81, zstandard.ZstdCompressor().compress(piece))
    path = write(tmp_path, builder.file())
    by_library = decode_perf(path)
    monkeypatch.setattr(zstd, "_library", lambda: None)
    assert isinstance(zstd.open_stream(), zstd.PackageStream)
    by_package = decode_perf(path)
    assert len(by_library.samples["time"]) == 1800
    for name, values in by_library.samples.items():
        assert np.array_equal(by_package.samples[name], values), name


def flushed(builder: Builder) -> list[bytes]:
    """COMPRESSED records as perf writes them: one stream, flushed at the end of each."""
    import zstandard

    stream = zstandard.ZstdCompressor().compressobj()
    made = Builder(builder.events)
    for at in range(0, len(builder.records), 20):
        data = stream.compress(b"".join(builder.records[at : at + 20]))
        made.record(81, data + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
    return made.records


@pytest.mark.parametrize("library", [True, False])
@pytest.mark.parametrize("damage", ["zeros", "noise", "event"])
def test_damaged_zstd_keeps_what_came_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: bool, damage: str
) -> None:
    if not library:
        monkeypatch.setattr(zstd, "_library", lambda: None)
    builder = large()
    if damage == "event":
        builder.records[900] = builder.records[900][:-4]  # the records behind it cannot be found
    builder.records = flushed(builder)
    if damage != "event":
        broken = builder.records[45]
        rest = b"\0" * 9000 if damage == "zeros" else bytes(range(9, 209)) * 90
        builder.records[45] = broken[:6] + builder.pack("H", 8 + len(rest)) + rest
    decoded = decode_perf(write(tmp_path, builder.file()))
    assert "what comes before was read" in decoded.warnings[0]
    assert 800 < len(decoded.samples["time"]) < 1700


def test_a_recording_that_ends_within_a_block_is_told(tmp_path: Path) -> None:
    if zstd._library() is None:
        pytest.skip("libzstd is not installed")
    builder = large()
    builder.records = flushed(builder)[:40]
    last = builder.records[-1]
    size = len(last) * 2 // 3
    builder.records[-1] = last[:6] + builder.pack("H", size) + last[8:size]
    decoded = decode_perf(write(tmp_path, builder.file()))
    assert "within" in decoded.warnings[0]
    assert len(decoded.samples["time"]) > 700


def test_each_file_of_a_directory_has_its_own_zstd_stream(tmp_path: Path) -> None:
    whole = large()
    first = Builder(whole.events)
    first.comm(9, 9, "app", 1)
    (tmp_path / "data").write_bytes(first.file())
    for number in range(3):
        part = large()
        part.compress(cut=300)
        (tmp_path / f"data.{number}").write_bytes(b"".join(part.records))
    decoded = decode_perf(tmp_path)
    assert (len(decoded.samples["time"]), decoded.warnings) == (5400, ())
