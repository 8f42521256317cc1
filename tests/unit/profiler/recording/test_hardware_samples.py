"""What hardware samplers wrote becomes samples: files in perf's format, which no PMU is needed to read."""

import csv
import signal
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from numaplan.common import MachineLacksError
from numaplan.machine import Machine
from numaplan.profiler.backends.base import EndedBySignalError, PerfChoices, Recording, RecordRequest
from numaplan.profiler.backends.perf import session
from numaplan.profiler.backends.perf.event_plan import EventPlan
from numaplan.profiler.backends.perf.hardware import HardwareBackend
from numaplan.profiler.backends.perf.process import INTERRUPTED
from numaplan.profiler.backends.perf.running import PerfRun
from numaplan.profiler.identity.records import Identity
from numaplan.profiler.recording.assemble import write_trace
from numaplan.profiler.recording.importing import import_recordings
from numaplan.profiler.recording.outcome import summarise
from numaplan.profiler.sample_block import SampleBlock
from numaplan.profiler.trace.reader import Trace
from numaplan.profiler.trace.schema import EVENTS, LEVELS
from tests.support.commands import needs
from tests.support.perfdata_builder import Builder, Event, many_samples

FIELDS = ("ip", "tid", "time", "addr", "id", "cpu", "weight", "data_src", "phys_addr")
L1_LOAD, L1_STORE, REMOTE_LOAD = 0x68100142, 0x4 | 1 << 3 + 5 | 1 << 6, 0x2 | 0xD << 33 | 1 << 37
PID, CHILD, STRANGER = 50, 60, 90
KERNEL = 0xFFFF_8000_0000_1000


def recorded(
    backend: HardwareBackend,
    folder: Path,
    content: bytes,
    *,
    wide: bool = False,
    code: int = 0,
    pid: int = PID,
) -> Recording:
    output = folder / f"{backend.name}.data"
    output.write_bytes(content)
    machine = Machine.load("2x2")
    request = RecordRequest(argv=["app"], workdir=folder, machine=machine, environment={})
    plan = EventPlan(backend.name, (), (), 992, machine_wide=wide, notes=("a note",))
    return backend.read(request, plan, PerfRun(code, pid, 5000, ""), output)


def rows(recording: Recording) -> list[tuple[object, ...]]:
    """(time, pid, cpu, node, address, event, write, level, latency, physical address), in order of time."""
    found = [
        (
            int(block.time_ns[i]),
            int(block.pid[i]),
            int(block.cpu[i]),
            int(block.node[i]),
            int(block.addr[i]),
            EVENTS[block.event[i]],
            bool(block.is_write[i]),
            LEVELS[block.level[i]],
            int(block.latency[i]),
            int(block.phys_addr[i]),
        )
        for block in recording.blocks
        for i in range(len(block))
    ]
    return sorted(found)


def pebs_file() -> Builder:
    names = ("cpu/mem-loads,ldlat=3/uP", "cpu/mem-stores/uP", "mem_load_l3_miss_retired.remote_dram")
    builder = Builder([Event(FIELDS, ids=(i + 1,), name=name) for i, name in enumerate(names)])
    builder.comm(PID, PID, "nprof", 900)
    builder.comm(PID, PID, "app", 1000, by_exec=True)
    builder.fork(CHILD, CHILD, PID, 1500)
    for event, pid, time, cpu, addr, source, weight, phys in (
        (0, PID, 950, 0, 0x10, L1_LOAD, 4, 0x1000),  # ours, before it became the program
        (0, PID, 2000, 0, 0x10008, L1_LOAD, 4, 0x1008),
        (1, PID, 2001, 1, 0x10010, L1_STORE, 0, 0x1010),
        (2, CHILD, 2002, 2, 0x10018, REMOTE_LOAD, 300, 0x1018),
        (0, PID, 2003, 3, KERNEL, L1_LOAD, 5, 0),
        (0, STRANGER, 2004, 3, 0x10020, L1_LOAD, 6, 0),
    ):
        values = {"pid": pid, "tid": pid, "time": time, "cpu": cpu, "addr": addr, "data_src": source}
        builder.sample(event, {**values, "weight": weight, "phys_addr": phys, "id": event + 1})
    builder.lost(7, 2002)
    builder.record(5, builder.pack("3Q", 2002, 1, 1))  # the kernel throttled the sampler
    return builder


def test_pebs_loads_stores_and_misses(tmp_path: Path) -> None:
    recording = recorded(HardwareBackend("pebs"), tmp_path, pebs_file().file())
    found = rows(recording)
    assert found[:3] == [
        (2000, PID, 0, 0, 0x10008, "load", False, "l1", 4, 0x1008),
        (2001, PID, 1, 0, 0x10010, "store", True, "l1", -1, 0x1010),
        (2002, CHILD, 2, 1, 0x10018, "llc_miss_remote", False, "remote_dram", 300, 0x1018),
    ]
    assert [row[1] for row in found[3:]] == [STRANGER]
    assert sum(events for _, events in recording.losses) == 7
    assert recording.notes["period"] == "992"
    assert "a note" in recording.notes["warnings"] and "slowed" in recording.notes["warnings"]


def test_a_large_recording_is_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond what may be kept, no more than a few blocks are held, however many samples there are."""
    count = 600_000
    event, records = many_samples(count)
    builder = Builder([event])
    builder.records.append(records.tobytes())
    content = builder.file()
    pid = int(records["pid"][0])
    del records
    monkeypatch.setattr(session, "KEPT", count // 10)
    tracemalloc.start()
    recording = recorded(HardwareBackend("pebs"), tmp_path, content, pid=pid)
    held, _peak = tracemalloc.get_traced_memory()
    assert sum(len(block) for block in recording.blocks) == count
    _held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 10 * count
    assert peak < 40 * count  # of samples that take 88 bytes, and 51 as accesses


def test_the_summary_says_what_was_seen_and_what_went_wrong(tmp_path: Path) -> None:
    recording = recorded(HardwareBackend("pebs"), tmp_path, pebs_file().file())
    meta = {"backend": "pebs", "period": 1000, **recording.notes}
    write_trace(tmp_path / "t.db", Machine.load("2x2"), recording, Identity(), meta, lambda *_: None)
    assert summarise(tmp_path / "t.db") == [
        "events: load 50.0%, store 25.0%, llc_miss_remote 25.0%",
        "levels: l1 75.0%, remote_dram 25.0%",
        "threads: p0:0 50.0%, p1:0 25.0%, p2:0 25.0%",
        "warning: a note; the kernel slowed the sampler down 1 times",
        "warning: 4 samples are few for 3 threads (100,000 wanted): record a longer run with --period 1",
    ]


def test_a_machine_wide_recording_keeps_the_programs_own_processes(tmp_path: Path) -> None:
    recording = recorded(HardwareBackend("ibs"), tmp_path, pebs_file().file(), wide=True)
    assert {row[1] for row in rows(recording)} == {PID, CHILD}
    assert {thread.pid for thread in recording.threads} == {PID, CHILD}


def test_ctrl_c_before_the_programs_start_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        recorded(HardwareBackend("pebs"), tmp_path, pebs_file().file(), code=INTERRUPTED, pid=77)


def spe_packets(pc: int, addr: int, store: bool, latency: int, stamp: int) -> bytes:
    """One sampled operation as the SPE specification lays it out."""
    return b"".join(
        (
            b"\xb0" + struct.pack("<Q", pc),
            b"\x52" + struct.pack("<H", 0b110),  # retired, first-level access
            bytes([0x49, int(store)]),
            b"\x99" + struct.pack("<H", 4),
            b"\x98" + struct.pack("<H", latency),
            b"\xb2" + struct.pack("<Q", addr),
            b"\x43\x00",
            b"\x71" + struct.pack("<Q", stamp),
        )
    )


def spe_file(packets: bytes) -> bytes:
    fields = ("ip", "tid", "time", "addr", "cpu", "data_src", "identifier")
    spe = Event(fields, ids=(1,), name="arm_spe_0//", type=8, config=0x700000001)
    side = Event(fields, ids=(2,), name="dummy:u", type=1, config=9)
    builder = Builder([spe, side])
    builder.record(79, builder.pack("3Q", 0, 1, 0))  # the time stamps are ns
    builder.record(70, builder.pack("2I2Q", 4, 0, 8, 0))
    builder.comm(PID, PID, "app", 1000, by_exec=True)
    builder.mmap2(PID, 0x400000, 0x1000, "/usr/bin/app", 1000)
    builder.mmap2(PID, 0x10000, 0x1000, "//anon", 1000)
    data = packets + b"\0" * (-len(packets) % 8)
    head = builder.pack("IHHQ", 71, 0, 48, len(data)) + builder.pack("QQIIII", 0, 0, 0, PID, 2**32 - 1, 0)
    builder.records.append(head + data)
    return builder.file()


def five_accesses() -> bytes:
    return b"".join(
        spe_packets(0x400010 + 4 * i, 0x10000 + 8 * i, i % 2 == 1, 10 + i, 2000 + i) for i in range(5)
    )


@pytest.mark.system
def test_what_cannot_be_read_of_a_program_that_a_signal_ended_is_its_end(tmp_path: Path) -> None:
    for backend in ("pebs", "spe"):
        with pytest.raises(EndedBySignalError, match="app: SIGTERM ended it"):
            recorded(HardwareBackend(backend), tmp_path, b"", code=128 + signal.SIGTERM)
        with pytest.raises(MachineLacksError):
            recorded(HardwareBackend(backend), tmp_path, b"", code=1)


def test_spe_packets_are_decoded_by_perf_and_put_on_our_clock(tmp_path: Path) -> None:
    needs("perf")
    recording = recorded(HardwareBackend("spe"), tmp_path, spe_file(five_accesses()))
    found = rows(recording)
    # The exec, at 1000 of perf's clock, is when we let the program go: 5000 of ours.
    assert [row[0] for row in found] == [6000, 6001, 6002, 6003, 6004]
    assert [row[4] for row in found] == [0x10000 + 8 * i for i in range(5)]
    assert [row[5] for row in found] == ["load", "store", "load", "store", "load"]
    assert {(row[1], row[2], row[7]) for row in found} == {(PID, -1, "l1")}
    assert [row[8] for row in found] == [10, 11, 12, 13, 14]
    (main,) = recording.threads
    assert (main.name, main.start_ns <= 5000) == ("app", True)


@pytest.mark.system
def test_a_hardware_trace_is_imported_without_being_asked(tmp_path: Path) -> None:
    needs("perf")
    (tmp_path / "spe.data").write_bytes(spe_file(five_accesses()))
    summary = import_recordings([str(tmp_path / "spe.data")], tmp_path / "trace.db")
    assert summary.samples == 5
    with Trace.open(tmp_path / "trace.db") as trace:
        assert trace.rows("SELECT event::VARCHAR, count(*) FROM samples GROUP BY 1 ORDER BY 1") == [
            ("load", 3),
            ("store", 2),
        ]
        assert len(trace.machine.cpus) == 1


@pytest.mark.parametrize("name", ["syn-pebs-loads-stores.data", "syn-pebs-phys-lost.data"])
def test_fixtures_through_the_backend(shared_fixtures: Path, tmp_path: Path, name: str) -> None:
    place = shared_fixtures / "perfdata" / name
    recording = recorded(HardwareBackend("pebs"), tmp_path, place.read_bytes(), pid=-1)
    with place.with_suffix(".truth.csv").open(newline="") as file:
        truth = [int(row["addr"], 0) for row in csv.DictReader(file)]
    blocks: list[SampleBlock] = list(recording.blocks)
    found = np.concatenate([block.addr for block in blocks])
    assert sorted(found.tolist()) == sorted(addr for addr in truth if 0 < addr < 1 << 63)
    assert {int(code) for block in blocks for code in np.unique(block.event)} <= {0, 1}


def test_what_perf_was_asked_for_is_named() -> None:
    assert PerfChoices(freq=1, pids=(2,), phys=True).named() == ["--freq", "--pid", "--phys"]
    assert PerfChoices().named() == []
