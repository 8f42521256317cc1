"""A recording becomes a trace: threads, regions and times where they belong, `nprof info` counts them."""

import os
from pathlib import Path

import numpy as np
import pytest

from numaplan.common import UsageError
from numaplan.profiler import EVENT_CODE, LEVEL_CODE, Machine, Trace
from numaplan.profiler.backends.base import Recording
from numaplan.profiler.export.formats import export_trace
from numaplan.profiler.identity.records import Identity, ProcessRecord, RegionRecord, ThreadRecord
from numaplan.profiler.page_use_block import PageUseBlock
from numaplan.profiler.recording.assemble import write_trace
from numaplan.profiler.sample_block import SampleBlock
from numaplan.profiler.trace.description import describe
from numaplan.profiler.transfer_block import TransferBlock

START = 1_000_000


def block(rows: list[tuple[int, int, int, int, bool]]) -> SampleBlock:
    """Rows of (time since start, pid, tid, addr, is_write)."""
    time, pid, tid, addr, write = (list(column) for column in zip(*rows, strict=True)) if rows else ([],) * 5
    count = len(rows)
    event = np.where(np.array(write, bool), EVENT_CODE["store"], EVENT_CODE["load"]).astype(np.uint8)
    return SampleBlock(
        time_ns=np.array(time, np.int64) + START,
        pid=np.array(pid, np.int32),
        tid=np.array(tid, np.int32),
        cpu=np.zeros(count, np.int32),
        node=np.zeros(count, np.int32),
        addr=np.array(addr, np.uint64),
        phys_addr=np.zeros(count, np.uint64),
        ip=np.zeros(count, np.uint64),
        event=event,
        is_write=np.array(write, bool),
        level=np.full(count, LEVEL_CODE["l1"], np.uint8),
        latency=np.full(count, -1, np.int32),
        reach=np.full(count, -1, np.int8),
        call=np.full(count, -1, np.int32),
    )


IDENTITY = Identity(
    processes=[
        ProcessRecord("p0", 10, "", ("app", "x"), "/bin/app", "abcd", START, -1),
        ProcessRecord("p0.1", 20, "p0", ("app", "x"), "/bin/app", "abcd", START + 5, -1),
    ],
    threads=[
        ThreadRecord("p0", "0.1", 10, 11, "w", START + 3, START + 90),
        ThreadRecord("p0", "0", 10, 10, "app", START, -1),
        ThreadRecord("p0.1", "0", 20, 20, "app", START + 5, -1),
    ],
    regions=[
        RegionRecord("p0", 10, "heap", "app+0x10", "", 0x1000, 0x1000, "0", 1, START, START + 50),
        RegionRecord("p0", 10, "heap", "app+0x20", "", 0x1000, 0x800, "0.1", 1, START + 60, -1),
        RegionRecord("p0.1", 20, "heap", "app+0x10", "", 0x1000, 0x1000, "0", 1, START, -1),
    ],
    modules=[],
)


def test_a_stack_is_first_touched_by_who_accesses_it(tmp_path: Path) -> None:
    """And not by the main thread, though that may be said of all memory from before a part."""
    stack = RegionRecord("p0", 10, "stack", "0.1", "", 0x8000, 0x1000, "0.1", 0, START, -1)
    identity = Identity(IDENTITY.processes, IDENTITY.threads, [*IDENTITY.regions, stack], [])
    begin, number = np.full(3, START + 10), np.array([0, 0, 4])
    addr, tid = np.array([0x1000, 0x8000, 0x8000], np.uint64), np.array([10, 10, 11], np.int32)
    used = PageUseBlock(10, begin, begin + 9, begin, addr, tid, begin, number, number, number)
    recording = Recording(0, START, [block([(5, 10, 10, 0x1000, True)])], page_use=[used])
    write_trace(tmp_path / "t.db", Machine.load("1x2"), recording, identity, {}, lambda _what, _share: None)
    with Trace.open(tmp_path / "t.db") as trace:
        paths = {row.thread: row.path for row in trace.thread_rows}
        rows = trace.rows("SELECT addr, thread, loads FROM page_use ORDER BY addr")
    assert [(addr, paths[thread], loads) for addr, thread, loads in rows] == [
        (0x1000, "0", 0),
        (0x8000, "0.1", 4),
    ]


def test_lines_of_a_block_whose_birth_is_told_late_are_its_own(tmp_path: Path) -> None:
    """As page use has it: a later time is asked where no region was there, and only there."""

    def taken(addr: int, end: int, *late: int) -> TransferBlock:
        one, alive = np.array([10], np.int32), np.array([START + 10])
        where = np.array([addr], np.uint64)
        late_ns = tuple(START + at for at in late)
        return TransferBlock(
            10, START, START + end, where, one, alive, one + 1, alive, alive * 0 + end, late_ns
        )

    born = RegionRecord("p0", 10, "heap", "app+0x30", "", 0x8000, 0x1000, "0", 2, START + 60, -1)
    identity = Identity(IDENTITY.processes, IDENTITY.threads, [*IDENTITY.regions, born], [])
    transfers = [taken(0x8000, 50), taken(0x8000, 40, 59), taken(0x8000, 30, 59, 61), taken(0x1000, 20, 61)]
    recording = Recording(0, START, [block([(5, 10, 10, 0x1000, True)])], transfers=transfers)
    write_trace(tmp_path / "t.db", Machine.load("1x2"), recording, identity, {}, lambda _what, _share: None)
    with Trace.open(tmp_path / "t.db") as trace:
        found = trace.rows("SELECT end_ns, region FROM transfers ORDER BY end_ns DESC")
    assert found == [(50, -1), (40, -1), (30, 3), (20, 0)]


def write(path: Path, blocks: list[SampleBlock]) -> None:
    recording = Recording(
        exit_code=3,
        start_ns=START,
        blocks=blocks,
        losses=[(START + 40, 7)],
        counters=[(START + 95, 10, 11, "loads", 5.0)],
    )
    meta = {"argv": '["app", "x"]', "backend": "test", "exit_code": 3, "period": 1}
    write_trace(path, Machine.load("2x2"), recording, IDENTITY, meta, lambda _what, _share: None)


def test_samples_get_thread_region_and_time(tmp_path: Path) -> None:
    rows = [
        (10, 10, 10, 0x1000, False),  # first heap block
        (70, 10, 11, 0x17FF, True),  # second one at the same address
        (70, 10, 11, 0x1800, True),  # behind its end
        (70, 20, 20, 0x1800, False),  # another process has other memory there
        (70, 10, 99, 0x1000, False),  # a thread that nobody announced
    ]
    write(tmp_path / "t.db", [block(rows[:2]), block([]), block(rows[2:])])
    with Trace.open(tmp_path / "t.db") as trace:
        found = trace.arrays("SELECT time_ns, thread, region FROM samples")
        assert found["time_ns"].tolist() == [10, 70, 70, 70, 70]
        assert found["thread"].tolist() == [0, 1, 1, 2, -1]
        assert found["region"].tolist() == [0, 1, -1, 2, 1]
        threads = trace.threads()
        assert list(threads["path"]) == ["0", "0.1", "0"]
        assert list(threads["end_ns"]) == [-1, 90, -1]
        assert list(trace.regions()["thread"]) == [0, 1, 2]
        assert trace.counters().to_dict("records") == [
            {"time_ns": 95, "thread": 1, "event": "loads", "value": 5.0}
        ]
        facts = describe(trace)
    assert facts["threads"] == 3
    assert facts["samples"] == {"load": 3, "store": 2}
    assert facts["losses"] == 7
    assert facts["unattributed"] == 1
    assert facts["duration_ns"] == 95
    assert facts["app"] == {"argv": ["app", "x"], "build_id": "abcd"}
    assert [row["samples"] for row in facts["per_thread"]] == [1, 2, 1]


def test_a_program_has_the_name_it_was_called_by(tmp_path: Path) -> None:
    """Of a file with several names; a word that leads elsewhere, or nowhere, is none of them."""
    file, link = tmp_path / "check-rdb", tmp_path / "server"
    file.write_bytes(b"")
    file.chmod(0o755)
    link.symlink_to(file)
    recording = Recording(exit_code=0, start_ns=START, blocks=[block([(10, 10, 10, 0x1000, False)])])
    for argv, name in (
        ((str(link), "x"), "server"),
        ((str(file),), "check-rdb"),
        (("sh",), "check-rdb"),
        (("no such program",), "check-rdb"),
        ((), "check-rdb"),
    ):
        process = ProcessRecord("p0", 10, "", argv, os.path.realpath(file), "abcd", START, -1)
        thread = ThreadRecord("p0", "0", 10, 10, "qemu-x86_64", START, -1)
        path = tmp_path / "t.db"
        identity = Identity(processes=[process], threads=[thread], regions=[], modules=[])
        write_trace(path, Machine.load("2x2"), recording, identity, {}, lambda _what, _share: None)
        with Trace.open(path) as trace:
            assert (trace.meta["executable"], trace.thread_rows[0].name) == (name, name)


def test_no_sample_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no sample"):
        write(tmp_path / "t.db", [block([])])
    assert list(tmp_path.iterdir()) == []


def test_a_recording_of_what_ran_already_says_why_it_saw_nothing(tmp_path: Path) -> None:
    """A warm server is no short program."""
    for backend, said in (("faults", "touched no page for the first time"), ("pebs", "idle")):
        recording = Recording(exit_code=0, start_ns=START, blocks=[], identity=IDENTITY)
        meta = {"backend": backend}
        with pytest.raises(UsageError, match=said):
            write_trace(
                tmp_path / "t.db", Machine.load("2x2"), recording, IDENTITY, meta, lambda _what, _share: None
            )


def test_export_writes_every_table(tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    write(tmp_path / "t.db", [block([(1, 10, 10, 0x1000, False)])])
    folder = tmp_path / "it's here"
    with Trace.open(tmp_path / "t.db", exporting_to=folder) as trace:
        files = export_trace(trace, folder, "parquet")
    sizes = {path.stem: parquet.read_table(path).num_rows for path in files}
    assert sizes == {
        "meta": sizes["meta"],
        "machine": 1,
        "threads": 3,
        "regions": 3,
        "samples": 1,
        "counters": 1,
        "losses": 1,
        "transfers": 0,
        "page_use": 0,
        "messages": 0,
        "names": 0,
        "fields": 0,
        "chains": 0,
        "code": 0,
        "calls": 0,
        "running": 0,
    }
