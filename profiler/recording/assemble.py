"""Make a trace from a recording: give every sample its thread and region, times from the start of the run."""

import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numaplan.common import UsageError
from numaplan.machine import Machine

from ..backends.base import Progress, Recording, check_not_killed
from ..call_block import CallBlock
from ..identity.records import Identity, ProcessRecord, RegionRecord, ThreadRecord
from ..messages.message import Messages
from ..page_use_block import PageUseBlock
from ..running_block import RunningBlock
from ..sample_block import SampleBlock
from ..trace.writer import TraceWriter
from ..transfer_block import TransferBlock
from .attribution import RegionFinder
from .names import add_names
from .page_regions import PAGE, PageRegions
from .threads import ThreadTable, merge_threads


def write_trace(
    output: Path,
    machine: Machine,
    recording: Recording,
    identity: Identity,
    meta: Mapping[str, object],
    progress: Progress,
    ranks_only: bool = False,
    *,
    ask_server: bool = False,
) -> tuple[int, int]:
    """Write a recording as a trace; returns (samples, threads). Raises UsageError if there is no sample.

    ranks_only: leave out the processes of a job that are neither a rank nor descend from one, if any is;
    ask_server: for debug information that is not on this machine.
    """
    records = merge_threads(identity, recording.threads)
    if ranks_only:
        ranks = [record for record in records if record.process.startswith("r")]
        if not ranks:  # rather all than nothing of a run that took its time
            warnings = [str(meta["warnings"])] if "warnings" in meta else []
            meta = {**meta, "warnings": "; ".join([*warnings, "no process is a rank of a job: all are kept"])}
        ranks_only, records = bool(ranks), ranks or records
    table = ThreadTable(records)
    finder = RegionFinder(identity.regions)
    start = recording.start_ns
    last = start
    with TraceWriter(output) as writer:
        for block in recording.blocks:
            if not len(block):
                continue
            last = max(last, int(block.time_ns.max()))
            thread = table.find(block.tid, block.time_ns)
            if ranks_only:
                kept = thread >= 0
                block = block.chosen(kept)
                thread = thread[kept]
            region = finder.find(block.pid, block.addr, block.time_ns)
            writer.add_samples(_columns(block, thread, region, start))
        if writer.sample_count == 0:
            check_not_killed("the program", recording.exit_code)
            raise _nothing(meta, ran_already=recording.identity is not None)
        progress("writing the trace", -1)
        ends = [record.end_ns for record in table.records]
        last = max([last, *ends, *(time for time, *_ in recording.counters)])
        writer.add_rows("machine", [(machine.to_json().decode(),)])
        writer.add_rows("threads", _thread_rows(table, _images(identity), start))
        writer.add_rows("regions", _region_rows(identity.regions, table, start))
        for calls in recording.calls:
            writer.add_columns("calls", _call_columns(calls, table))
        progress("looking up names", -1)
        add_names(writer, identity, progress, ask_server=ask_server)
        writer.add_rows("counters", _counter_rows(recording, table, start))
        for transfers in recording.transfers or ():
            writer.add_columns("transfers", _transfer_columns(transfers, table, finder, start))
        pages = PageRegions(identity.regions, finder)
        for uses in recording.page_use or ():
            writer.add_columns("page_use", _page_use_columns(uses, table, pages, start))
        for running in recording.running:
            writer.add_columns("running", _running_columns(running, table, start))
        writer.add_rows("messages", _message_rows(recording.messages, table))
        writer.add_rows("losses", [(time - start, events) for time, events in recording.losses])
        named = {record.process for record in table.records}
        tables = {"transfers": recording.transfers, "page_use": recording.page_use}
        counted = {name: "all" for name, blocks in tables.items() if blocks is not None}
        facts = {**meta, **_build_facts(identity, named), **counted, "duration_ns": last - start}
        writer.set_meta(facts)
        return writer.sample_count, len(table.records)


def _columns(
    block: SampleBlock, thread: NDArray[np.int32], region: NDArray[np.int32], start: int
) -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {
        name: getattr(block, name)
        for name in (
            "cpu",
            "node",
            "addr",
            "phys_addr",
            "ip",
            "event",
            "is_write",
            "level",
            "latency",
            "reach",
            "call",
        )
    }
    return {**columns, "time_ns": block.time_ns - start, "thread": thread, "region": region}


def _transfer_columns(
    block: TransferBlock, table: ThreadTable, finder: RegionFinder, start: int
) -> dict[str, NDArray[np.int64] | NDArray[np.int32]]:
    """The rows of one stretch, one for each (writer, reader, region) in it; start: of the recording."""
    writer, reader = table.find(block.writer, block.writer_ns), table.find(block.reader, block.reader_ns)
    known = (writer >= 0) & (reader >= 0)
    keys = np.stack([writer, reader, _regions_of_pages(block, finder)])[:, known]
    rows, place = np.unique(keys, axis=1, return_inverse=True)
    events = np.bincount(place.ravel(), block.events[known], minlength=rows.shape[1])
    return {
        "start_ns": np.full(rows.shape[1], block.start_ns - start, np.int64),
        "end_ns": np.full(rows.shape[1], block.end_ns - start, np.int64),
        "writer": rows[0],
        "reader": rows[1],
        "region": rows[2],
        "events": events.astype(np.int64),
    }


def _page_use_columns(
    block: PageUseBlock, table: ThreadTable, pages: PageRegions, start: int
) -> dict[str, NDArray[Any]]:
    """Rows of known threads, in stacks only those with accesses; start: of the recording."""
    thread = table.find(block.tid, block.alive_ns)
    times = (block.first_ns, block.end_ns - 1, (block.start_ns + block.end_ns) // 2)
    region = pages.find(block.pid, block.addr, times, block.late_ns)
    columns = {
        "start_ns": block.start_ns - start,
        "end_ns": block.end_ns - start,
        "first_ns": block.first_ns - start,
        "thread": thread,
        "region": region,
        **{name: getattr(block, name) for name in ("addr", "loads", "stores", "missed")},
        "node": np.full(len(block), -1, np.int32) if block.node is None else block.node,
        "local": np.full(len(block), -1, np.int8) if block.local is None else block.local,
    }
    kept = (thread >= 0) & ((block.loads + block.stores > 0) | ~pages.in_stack(region))
    return {name: values[kept] for name, values in columns.items()}


def _call_columns(block: CallBlock, table: ThreadTable) -> dict[str, NDArray[Any]]:
    """A process whose number came back is the last one."""
    process = next((one.process for one in reversed(table.records) if one.pid == block.pid), "")
    return {
        "call": block.number,
        "caller": block.caller,
        "process": np.full(len(block.number), process, np.object_),
        "ip": block.ip,
    }


def _running_columns(block: RunningBlock, table: ThreadTable, start: int) -> dict[str, NDArray[Any]]:
    """Rows of known threads; start: of the recording."""
    thread = table.find(block.tid, block.alive_ns)
    return {"time_ns": (block.time_ns - start)[thread >= 0], "thread": thread[thread >= 0]}


def _regions_of_pages(block: TransferBlock, finder: RegionFinder) -> NDArray[np.int32]:
    """Of each page, a region that its first byte or its last was in: at the end of the stretch, before it, or
    where none was, so little later that its birth may only be told late."""
    found = np.full(len(block), -1, np.int32)
    pid = np.full(len(block), block.pid, np.int32)
    for time in (block.end_ns - 1, (block.start_ns + block.end_ns) // 2, block.start_ns, *block.late_ns):
        for place in (0, PAGE - 1):
            missing = np.flatnonzero(found < 0)
            at = np.full(len(missing), time, np.int64)
            found[missing] = finder.find(pid[missing], block.addr[missing] + np.uint64(place), at)
    return found


def _since(time: int, start: int) -> int:
    return time - start if time >= 0 else -1


def _nothing(meta: Mapping[str, object], *, ran_already: bool) -> UsageError:
    """What to say of a recording without samples; ran_already: its processes did before it began."""
    if not ran_already:
        hint = "the program was too short for this --period, or this backend"
    elif meta.get("backend") == "faults":
        hint = (
            "the processes touched no page for the first time meanwhile, and this backend sees nothing else: "
            "record from the program's start, or by a processor's sampling ('nprof doctor')"
        )
    else:
        hint = (
            "the processes were idle meanwhile, or too little so for this --period: record longer under load"
        )
    return UsageError("no sample was recorded", hint)


def _images(identity: Identity) -> dict[str, str]:
    """The name of each process's program."""
    return {process.process: _program(process) for process in identity.processes}


def _program(process: ProcessRecord) -> str:
    """The name that a program was called by where that is a link to its executable, else the latter's."""
    called = process.argv[0] if process.argv else ""
    found = shutil.which(called) if called else None
    is_link = found is not None and os.path.realpath(found) == process.executable
    return Path(called if is_link else process.executable).name


def _name(record: ThreadRecord, images: Mapping[str, str]) -> str:
    """A thread's name; its executable's where it has none of its own (an emulated one is called QEMU)."""
    own = "" if record.name.startswith("qemu-") else record.name
    return own or images.get(record.process, "")


def _thread_rows(table: ThreadTable, images: Mapping[str, str], start: int) -> list[tuple[object, ...]]:
    return [
        (
            index,
            record.process,
            record.path,
            record.tid,
            record.pid,
            _name(record, images),
            _since(record.start_ns, start),
            _since(record.end_ns, start),
        )
        for index, record in enumerate(table.records)
    ]


def _region_rows(regions: Sequence[RegionRecord], table: ThreadTable, start: int) -> list[tuple[object, ...]]:
    thread_of = {(record.process, record.path): index for index, record in enumerate(table.records)}
    return [
        (
            index,
            region.process,
            region.kind,
            region.name,
            region.build_id,
            region.start_addr,
            region.bytes,
            thread_of.get((region.process, region.thread_path), -1),
            region.sequence,
            _since(region.start_ns, start),
            _since(region.end_ns, start),
        )
        for index, region in enumerate(regions)
    ]


def _counter_rows(recording: Recording, table: ThreadTable, start: int) -> list[tuple[object, ...]]:
    if not recording.counters:
        return []
    tid = np.array([row[2] for row in recording.counters], np.int32)
    time = np.array([row[0] for row in recording.counters], np.int64)
    thread = table.find(tid, time).tolist()
    return [
        (stamp - start, index, event, value)
        for index, (stamp, _pid, _tid, event, value) in zip(thread, recording.counters, strict=True)
    ]


def _message_rows(messages: Sequence[Messages], table: ThreadTable) -> list[tuple[object, ...]]:
    """Each with the thread that sent it; a tid that several threads of a process had is the last one's."""
    threads = {(record.pid, record.tid): index for index, record in enumerate(table.records)}
    return [
        (row.rank, row.peer, row.kind, row.bytes, row.count, threads.get((row.pid, row.tid), -1))
        for row in messages
    ]


def _build_facts(identity: Identity, named: Collection[str]) -> dict[str, str]:
    """The program's build id: that of the executable of the first process whose threads are kept.

    A launcher is left out of the trace of a job, and a plan is for what it starts.
    """
    kept = [process for process in identity.processes if process.process in named] or identity.processes
    for process in kept:
        return {
            "build_id": process.build_id,
            "executable": _program(process),
            "executable_path": process.executable,
        }
    return {"build_id": ""}
