"""Facts about events that come between the samples of a pipe: changes are followed, what repeats is free."""

from pathlib import Path

import pytest

from numaplan.profiler import EVENT_CODE
from numaplan.profiler.perfdata.accesses.blocks import AccessBlocks, survey
from numaplan.profiler.perfdata.decode import decode_perf
from numaplan.profiler.perfdata.samples.decoder import SampleDecoder
from tests.support.perfdata_builder import EVENT_DESC, FEATURE, HOSTNAME, Builder, Event

FIELDS = ("identifier", "tid", "time", "addr")
EVENT_UPDATE, NAME = 78, 2


def renamed(builder: Builder, number: int, name: str) -> None:
    builder.record(EVENT_UPDATE, builder.pack("2Q16s", NAME, number, name.encode()))


def sample(builder: Builder, time: int) -> None:
    builder.sample(0, {"id": 1, "pid": 5, "tid": 5, "time": time, "addr": 64 * time})


def pipe(folder: Path, builder: Builder) -> Path:
    (folder / "perf.data").write_bytes(builder.pipe())
    return folder / "perf.data"


def test_what_is_known_already_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    inner = SampleDecoder.set_events
    monkeypatch.setattr(SampleDecoder, "set_events", lambda *args: (told.append(1), inner(*args))[1])
    builder = Builder([Event(FIELDS, ids=(1,), name="mem-loads"), Event(FIELDS, ids=(2,), name="cycles")])
    for time in range(1, 200):
        renamed(builder, 1, "mem-loads")
        for number, content in ((HOSTNAME, builder.text_feature("host")), (EVENT_DESC, builder.event_desc())):
            builder.record(FEATURE, builder.pack("Q", number) + content)
        sample(builder, time)
    (block,) = AccessBlocks(pipe(tmp_path, builder))
    assert block.addr.tolist() == [64 * time for time in range(1, 200)]
    assert len(told) <= 2


def test_blocks_that_end_early_hold_no_more_than_they_tell(tmp_path: Path) -> None:
    builder = Builder([Event(FIELDS, ids=(1,), name="mem-loads")])
    for time in range(1, 60):
        renamed(builder, 1, f"mem-loads-{time % 2}")
        sample(builder, time)
    found = survey(pipe(tmp_path, builder), keep=1000)
    assert found.kept is not None and sum(map(len, found.kept)) == 59
    held = 0
    for block in found.kept:
        columns = [
            getattr(block, name) for name in ("time_ns", "tid", "addr", "ip", "event", "level", "call")
        ]
        held += sum((one if one.base is None else one.base).nbytes for one in columns)
    assert held < 59 * 100


def test_names_and_events_that_change_are_followed(tmp_path: Path) -> None:
    builder = Builder([Event(FIELDS, ids=(1,), name="cycles")])
    for time, name in enumerate(("cycles", "mem-loads", "mem-loads", "mem-stores", "dummy"), 1):
        renamed(builder, 1, name)
        sample(builder, time)
    late = Event(FIELDS, ids=(2,), name="page-faults")
    builder.record(64, builder.attr(late) + builder.pack("Q", 2))
    renamed(builder, 2, "page-faults")
    builder.sample(0, {"id": 2, "pid": 5, "tid": 5, "time": 6, "addr": 64 * 6})
    path = pipe(tmp_path, builder)
    rows = [row for block in AccessBlocks(path) for row in zip(block.time_ns, block.event, strict=True)]
    assert rows == [
        *((time, EVENT_CODE["load"]) for time in (2, 3)),
        (4, EVENT_CODE["store"]),
        (6, EVENT_CODE["fault"]),
    ]
    decoded = decode_perf(path)
    assert decoded.events == ("dummy", "page-faults")
    assert decoded.samples["event"].tolist() == [0, 0, 0, 0, 0, 1]
