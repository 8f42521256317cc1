"""Groups that are read by their leader: one sample for each member that counted anything."""

from pathlib import Path

import pytest

from numaplan.profiler.perfdata import reader
from numaplan.profiler.perfdata.decode import decode_perf
from tests.support.perfdata_builder import SAMPLE_ID_ALL, Builder, Event

INHERIT = 1  # of the attr's flags
ENABLED, RUNNING, ID, GROUP, LOST = 1, 2, 4, 8, 16
FIELDS = ("identifier", "ip", "tid", "time", "addr", "period", "read", "callchain")


class Reading(Builder):
    """Writes readings that were asked for, not made-up ones."""

    def _read(self, event: Event, count: object) -> bytes:
        assert isinstance(count, list)
        form = event.read_format
        lost = [0] if form & LOST else []
        words = [word for value, number in count for word in (value, number, *lost)]
        times = [7] * ((form & ENABLED > 0) + (form & RUNNING > 0))
        head = [len(count), *times] if form & GROUP else times
        body = words if form & GROUP else [count[0][0], count[0][1], *lost]
        if not form & GROUP:
            return self.pack(f"{len(times) + len(body)}Q", body[0], *times, *body[1:])
        return self.pack(f"{len(head) + len(body)}Q", *head, *body)


def decode(builder: Builder, folder: Path) -> list[tuple[str, int, int]]:
    (folder / "perf.data").write_bytes(builder.file())
    decoded = decode_perf(folder / "perf.data")
    assert not decoded.warnings
    columns = [decoded.samples[name].tolist() for name in ("event", "period", "addr")]
    return [(decoded.events[event], period, addr) for event, period, addr in zip(*columns, strict=True)]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("times", [0, ENABLED, ENABLED | RUNNING])
@pytest.mark.parametrize("lost", [0, LOST])
def test_members_of_a_group(tmp_path: Path, order: str, times: int, lost: int) -> None:
    form = ID | GROUP | times | lost
    leader = Event(FIELDS, ids=(1, 2), name="faults", read_format=form)
    member = Event(FIELDS, ids=(11, 12), name="clock", read_format=form)
    other = Event(("identifier", "addr"), ids=(5,), name="other")
    builder = Reading([leader, member, other], order=order)
    builder.sample(0, {"id": 1, "addr": 100, "period": 1, "read": [(3, 1), (50, 11)], "callchain": [9]})
    builder.sample(2, {"id": 5, "addr": 200})
    builder.sample(0, {"id": 2, "addr": 300, "read": [(1, 2), (70, 12)]})
    builder.sample(0, {"id": 1, "addr": 400, "read": [(4, 1), (50, 11)], "callchain": [1, 2]})
    builder.sample(0, {"id": 1, "addr": 500, "read": [(6, 1), (90, 11)]})
    assert decode(builder, tmp_path) == [
        ("faults", 3, 100),
        ("clock", 50, 100),
        ("other", 0, 200),
        ("faults", 1, 300),
        ("clock", 70, 300),
        ("faults", 1, 400),  # the clock stood still
        ("faults", 2, 500),
        ("clock", 40, 500),
    ]


@pytest.mark.parametrize("times", [0, ENABLED | RUNNING])
def test_a_reading_of_one(tmp_path: Path, times: int) -> None:
    builder = Reading([Event(FIELDS, ids=(1,), name="faults", read_format=ID | times)])
    for value in (10, 10, 25):
        builder.sample(0, {"id": 1, "addr": value, "read": [(value, 1)]})
    assert decode(builder, tmp_path) == [("faults", 10, 10), ("faults", 15, 25)]


def test_readings_of_unknown_counters_change_nothing(tmp_path: Path) -> None:
    builder = Reading([Event(FIELDS, ids=(1,), name="faults", read_format=ID | GROUP)])
    builder.sample(0, {"id": 1, "addr": 5, "period": 3, "read": [(8, 1), (9, 77)]})
    assert decode(builder, tmp_path) == [("faults", 3, 5)]


@pytest.mark.parametrize("order", ["<", ">"])
def test_groups_of_different_layout(tmp_path: Path, order: str) -> None:
    form = ID | GROUP
    faults = Event(FIELDS, ids=(1,), name="faults", read_format=form)
    minor = Event(FIELDS, ids=(11,), name="minor", read_format=form)
    clock = Event((*FIELDS, "weight"), ids=(2,), name="clock", read_format=form | ENABLED)
    switches = Event((*FIELDS, "weight"), ids=(12,), name="switches", read_format=form | ENABLED)
    other = Event(("identifier", "addr"), ids=(5,), name="other")
    builder = Reading([faults, clock, minor, switches, other], order=order)
    builder.sample(1, {"id": 2, "addr": 100, "read": [(30, 2), (1, 12)]})
    builder.sample(0, {"id": 1, "addr": 200, "read": [(3, 1), (2, 11)], "callchain": [9]})
    builder.sample(4, {"id": 5, "addr": 300})
    builder.sample(0, {"id": 1, "addr": 400, "read": [(4, 1), (2, 11)]})
    builder.sample(1, {"id": 2, "addr": 500, "read": [(40, 2), (3, 12)], "callchain": [1, 2]})
    builder.sample(4, {"id": 5, "addr": 600})
    assert decode(builder, tmp_path) == [
        ("clock", 30, 100),
        ("switches", 1, 100),
        ("faults", 3, 200),
        ("minor", 2, 200),
        ("other", 0, 300),
        ("faults", 1, 400),
        ("clock", 10, 500),
        ("switches", 2, 500),
        ("other", 0, 600),
    ]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("inherited", [True, False])
def test_counters_of_each_thread(tmp_path: Path, order: str, inherited: bool) -> None:
    flags = (INHERIT, SAMPLE_ID_ALL) if inherited else (SAMPLE_ID_ALL,)
    form = ID | GROUP
    events = [
        Event(FIELDS, ids=(n,), name=name, read_format=form, flag_bits=flags)
        for n, name in ((1, "loads"), (2, "clock"))
    ]
    builder = Reading(events, order=order)
    readings = ((5, 1000, 500), (6, 1000, 400), (5, 2000, 900), (6, 1500, 800), (5, 300, 1000))
    for addr, (tid, loads, clock) in enumerate(readings):
        builder.sample(0, {"id": 1, "tid": tid, "addr": addr, "read": [(loads, 1), (clock, 2)]})
    by_thread = [(1000, 500), (1000, 400), (1000, 400), (500, 400), (300, 100)]
    by_id = [(1000, 500), (0, 400), (1000, 500), (1500, 800), (300, 200)]  # one that falls is another
    wanted = [
        (name, period, addr)
        for addr, periods in enumerate(by_thread if inherited else by_id)
        for name, period in zip(("loads", "clock"), periods, strict=True)
        if period
    ]
    assert decode(builder, tmp_path) == wanted


def test_counters_of_each_thread_over_several_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_BLOCK", 3)
    event = Event(FIELDS, ids=(1,), name="loads", read_format=ID | GROUP, flag_bits=(INHERIT, SAMPLE_ID_ALL))
    builder = Reading([event])
    for step in range(20):
        tid, value = step % 2, 10 * (step // 2) + 10
        builder.sample(0, {"id": 1, "tid": tid, "addr": step, "read": [(value + tid, 1)]})
    first = [("loads", 10, 0), ("loads", 11, 1)]
    assert decode(builder, tmp_path) == [*first, *(("loads", 10, step) for step in range(2, 20))]
