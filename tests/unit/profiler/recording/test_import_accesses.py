"""Which samples of a recording become accesses of a trace."""

from pathlib import Path

import pytest

from numaplan.common import UsageError
from numaplan.profiler.perfdata import reader
from numaplan.profiler.perfdata.accesses import decoder
from numaplan.profiler.perfdata.decode import decode_perf
from numaplan.profiler.recording.importing import import_recordings
from numaplan.profiler.trace.reader import Trace
from tests.support.perfdata_builder import Builder, Event
from tests.unit.profiler.perfdata.test_group_reads import GROUP, ID, Reading

FIELDS = ("identifier", "ip", "tid", "time", "addr", "cpu", "data_src")
L1_LOAD, L1_STORE = 0x68100142, 0x4 | 1 << 3 + 5 | 1 << 6
KERNEL, LAST_OF_USER = 1 << 63, (1 << 63) - 8


def imported(builder: Builder, folder: Path) -> list[tuple[int, int, str]]:
    """(thread's id, address, event) of each sample of the trace, in the order of time."""
    (folder / "perf.data").write_bytes(builder.file())
    import_recordings([str(folder / "perf.data")], folder / "trace.db")
    with Trace.open(folder / "trace.db") as trace:
        return trace.rows(
            "SELECT tid, addr, event::VARCHAR FROM samples JOIN threads USING (thread) ORDER BY time_ns, addr"
        )


@pytest.mark.parametrize("fixed_places", [True, False])
def test_memory_of_the_kernel_and_the_idle_task_are_no_part_of_a_trace(
    tmp_path: Path, fixed_places: bool
) -> None:
    fields = FIELDS if fixed_places else (*FIELDS, "callchain")
    builder = Builder([Event(fields, ids=(1,), name="cpu/mem-loads,ldlat=30/P")])
    rows = ((50, 0x1000), (50, KERNEL), (51, 2**64 - 64), (0, 2**64 - 128), (0, 0x2000), (51, LAST_OF_USER))
    for time, (tid, addr) in enumerate(rows, 1000):
        values = {"id": 1, "pid": tid and 50, "tid": tid, "time": time, "addr": addr, "data_src": L1_LOAD}
        builder.sample(0, values)
    assert imported(builder, tmp_path) == [(50, 0x1000, "load"), (51, LAST_OF_USER, "load")]
    assert len(decode_perf(tmp_path / "perf.data").samples["time"]) == len(rows)  # which leaves nothing out


def test_a_recording_of_nothing_but_kernel_memory_says_so(tmp_path: Path) -> None:
    builder = Builder([Event(FIELDS, ids=(1,), name="cpu/mem-loads,ldlat=30/P")])
    for addr in (0, KERNEL, KERNEL + 64):
        builder.sample(0, {"id": 1, "pid": 50, "tid": 50, "time": 1000, "addr": addr, "data_src": L1_LOAD})
    with pytest.raises(UsageError, match=r"among 3 samples .*; 2 of them are of kernel memory or the idle"):
        imported(builder, tmp_path)


@pytest.mark.parametrize(
    ("names", "sampled"),
    [
        (("cpu/mem-loads-aux/", "cpu/mem-loads,ldlat=30/pp"), 1),
        (("cpu/mem-loads,ldlat=30/", "instructions"), 0),
        (("page-faults", "minor-faults"), 0),
    ],
)
def test_what_others_of_a_group_counted_is_no_access(
    tmp_path: Path, names: tuple[str, str], sampled: int
) -> None:
    fields = (*FIELDS, "period", "read")
    events = [Event(fields, ids=(n,), name=name, read_format=ID | GROUP) for n, name in enumerate(names, 1)]
    builder = Reading(events)
    for step in range(1, 6):
        values = {"id": sampled + 1, "pid": 50, "tid": 50, "time": step, "addr": 64 * step, "period": 1000}
        reading = [(1000 * step, 1), (500 * step, 2)]
        builder.sample(sampled, {**values, "data_src": L1_LOAD * ("mem" in names[sampled]), "read": reading})
    kind = "load" if "mem" in names[sampled] else "fault"
    assert imported(builder, tmp_path) == [(50, 64 * step, kind) for step in range(1, 6)]


def test_events_that_are_no_accesses_stay_so_whatever_their_data_source_says(tmp_path: Path) -> None:
    names = ("cpu/mem-loads-aux/", "dummy:u", "cycles:pp")  # of the last it is believed
    builder = Builder([Event(FIELDS, ids=(n,), name=name) for n, name in enumerate(names, 1)])
    for event in range(3):
        values = {"id": event + 1, "pid": 50, "tid": 50, "time": event, "addr": 64 + event}
        builder.sample(event, {**values, "data_src": L1_LOAD})
    assert imported(builder, tmp_path) == [(50, 66, "load")]


SPE = ("l1d-miss", "l1d-access", "llc-miss", "tlb-access", "remote-access", "branch-miss", "instructions")


@pytest.mark.parametrize("block", [1, 1 << 16])
@pytest.mark.parametrize("memory", [True, False])
def test_one_operation_of_spe_is_one_access(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: bool, block: int
) -> None:
    """perf inject makes a sample of each event of an operation, if it is not told otherwise."""
    monkeypatch.setattr(decoder, "_BLOCK", block)
    monkeypatch.setattr(reader, "_BLOCK", block)
    names = (*SPE, "memory") if memory else SPE
    builder = Builder([Event(FIELDS, ids=(n,), name=name) for n, name in enumerate(names, 1)])
    operations = ((1000, 50, 0x1000), (1000, 51, 0x1000), (1000, 51, 0x1040), (1001, 51, 0x1040))
    for time, tid, addr in operations:
        for event in range(len(names)):
            values = {"id": event + 1, "pid": 50, "tid": tid, "time": time, "addr": addr}
            builder.sample(event, {**values, "data_src": L1_STORE})
    assert imported(builder, tmp_path) == [(tid, addr, "store") for _, tid, addr in operations]


def test_equal_samples_of_one_event_are_so_many_accesses(tmp_path: Path) -> None:
    builder = Builder([Event(FIELDS, ids=(1,), name="memory"), Event(FIELDS, ids=(2,), name="cycles")])
    for _ in range(3):
        builder.sample(0, {"id": 1, "pid": 50, "tid": 50, "time": 7, "addr": 64, "data_src": L1_LOAD})
    assert imported(builder, tmp_path) == [(50, 64, "load")] * 3
