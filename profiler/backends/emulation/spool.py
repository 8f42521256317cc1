"""Read what the plugin left: `emulate-PID-START.{threads,samples,windows,clock,clock-window,…}`
(native/emulate/spool.c).

A `.threads` file is a header of 4096 bytes and one record a thread. Samples are pairs of 64-bit words: first
those of `.samples`, then those in `.windows`; a pair is a sample, a header (thread and time of the samples
after it), the call that those are in, or unused (zero). Pairs of `.clock` and `.clock-window` are a moment
by the host's clock and by the process's own. Files of a program that was killed are as good as others.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from errno import EACCES, ENOENT, EPERM
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from numaplan.common import UsageError
from numaplan.machine import MOST_SIZES

from ...sample_block import SampleBlock
from ...trace.schema import EVENT_CODE, LEVELS

MAGIC = b"NPEMULAT"
HEADER_BYTES = 4096
PAIRS = 1 << 20  # read at a time
# (level, reach, whether the page is another node's) of samples -> their levels.
EmulatedLevels = Callable[[NDArray[np.uint8], NDArray[np.int8], NDArray[np.bool_]], NDArray[np.uint8]]
_EXIT, _EXEC = 1, 2  # how a process ends
_HEADER, _CALL = 1 << 63, 3 << 62  # words of what is no sample begin there
_HINT = "record again; the intermediate files were damaged"

HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("version", "<u4"),
        ("pid", "<u4"),
        ("record_bytes", "<u4"),
        ("error", "<u4"),
        ("start_ns", "<i8"),
        ("threads", "<u8"),
        ("first_ns", "<i8"),
        ("last_ns", "<i8"),
        ("origin_pid", "<i8"),
        ("origin_start_ns", "<i8"),
        ("footprint", "<u8"),
        ("root_pid", "<i8"),
        ("root_start_ns", "<i8"),
        ("ends", "<u8"),
    ]
)
VERSION = 9
# Exact counts of a thread, in the order of struct thread_record, under the names of the trace's counters.
COUNTERS = (
    "loads",
    "stores",
    "l1_misses",
    "l2_misses",
    "llc_misses_local",
    "llc_misses_remote",
    "remote_cache_hits",
    "coherence",
    "coherence_within_l3",
    "l3_hits_on_others_lines",
)
# past: accesses that exactly the smallest 1, 2, … of MOST_SIZES caches miss, to local and to remote pages.
THREAD_RECORD = np.dtype(
    [
        *(("tid", "<u4"), ("birth", "<u4"), ("start_ns", "<i8"), ("end_ns", "<i8")),
        *((name, "<u8") for name in (*COUNTERS, "lost")),
        ("sleeps", "<i8"),  # -1: not known
        ("real_time", "<i8"),
        ("past", "<u8", (2, MOST_SIZES)),
    ]
)


@dataclass(frozen=True)
class ProcessSpool:
    """One process image's files. threads: structured array (tid, birth, times, counts); error: errno or 0.

    start_ns: CLOCK_MONOTONIC; first_ns, last_ns and all other times: by the process's own clock, to which
    shift_ns is added; footprint: bytes of touched pages, at their most; origin: (pid, start_ns) of the image
    that it was forked from, (0, 0) if none; exits: whether it ended itself, by no signal; becomes: whether it
    became another program, whose files are others, if it has any; calls: how many its samples are in,
    numbered from first_call on.
    """

    stem: Path
    pid: int
    start_ns: int
    error: int
    threads: NDArray[np.void]
    first_ns: int = 0
    last_ns: int = 0
    origin: tuple[int, int] = (0, 0)
    shift_ns: int = 0
    footprint: int = 0
    exits: bool = True
    becomes: bool = False
    calls: int = 0
    first_call: int = 0

    def clock(self) -> NDArray[np.int64]:
        """Moments by the host's clock and by the process's own, (n, 2) int64, in the order of writing."""
        parts = [np.empty((0, 2), np.int64)]
        for kind in ("clock", "clock-window"):
            path = self.stem.with_name(f"{self.stem.name}.{kind}")
            if path.exists():
                pairs = np.fromfile(path, np.int64, path.stat().st_size // 16 * 2).reshape(-1, 2)
                parts.append(pairs[pairs[:, 0] > 0])
        return np.concatenate(parts)

    def moment(self, own_ns: int) -> int:
        """A time of the process's own clock on the time line; -1 (none) becomes its last."""
        return (own_ns if own_ns >= 0 else self.last_ns) + self.shift_ns

    @property
    def begins(self) -> NDArray[np.int64]:
        """(threads,) a time at which each thread lived, on the time line."""
        return np.array([self.moment(max(int(at), 0)) for at in self.threads["start_ns"]], np.int64)

    def words(self, kinds: Sequence[str] = ("samples", "windows")) -> Iterator[NDArray[np.uint64]]:
        """The pairs of files in order, (n, 2) uint64, mapped, at most PAIRS at a time."""
        for kind in kinds:
            path = self.stem.with_name(f"{self.stem.name}.{kind}")
            pairs = path.stat().st_size // 16 if path.exists() else 0
            for first in range(0, pairs, PAIRS):
                shape = (min(PAIRS, pairs - first), 2)
                yield np.memmap(path, np.uint64, "r", first * 16, shape)

    def bytes(self) -> int:
        """Size of the sample files."""
        paths = (self.stem.with_name(f"{self.stem.name}.{kind}") for kind in ("samples", "windows"))
        return sum(path.stat().st_size for path in paths if path.exists())


def read_process(path: Path) -> ProcessSpool:
    """The process whose `.threads` file is given; raises UsageError when the file is not one of ours."""
    data = path.read_bytes()
    if len(data) < HEADER_BYTES:
        raise UsageError(f"{path.name}: cut short at {len(data)} bytes", _HINT)
    header = np.frombuffer(data, HEADER, 1)[0]
    stride = int(header["record_bytes"])
    if header["magic"] != MAGIC or header["version"] != VERSION or stride < THREAD_RECORD.itemsize:
        raise UsageError(f"{path.name}: not written by this version's plugin", _HINT)
    # A disk that filled up leaves threads without a record; their samples are not there either.
    count = min(int(header["threads"]), (len(data) - HEADER_BYTES) // stride)
    layout = np.dtype([("record", THREAD_RECORD), ("rest", f"V{stride - THREAD_RECORD.itemsize}")])
    threads = np.frombuffer(data, layout, count, HEADER_BYTES)["record"]
    return ProcessSpool(
        path.with_suffix(""),
        int(header["pid"]),
        int(header["start_ns"]),
        int(header["error"]),
        threads,
        int(header["first_ns"]),
        max(int(header["last_ns"]), int(threads["end_ns"].max(initial=-1))),
        (int(header["origin_pid"]), int(header["origin_start_ns"])),
        footprint=int(header["footprint"]),
        exits=int(header["ends"]) == _EXIT or bool(threads["end_ns"].min(initial=0) >= 0),
        becomes=int(header["ends"]) == _EXEC,
    )


def read_processes(workdir: Path) -> list[ProcessSpool]:
    """Every process's files in a folder, by start; raises UsageError (a damaged file, a full disk)."""
    found = []
    for path in sorted(workdir.glob("emulate-*.threads")):
        if path.stat().st_size < HEADER_BYTES:
            raise UsageError(
                f"{workdir}: no room to record (disk full)",
                "free some space there, or write the trace elsewhere (-o)",
            )
        found.append(read_process(path))
    for process in found:
        if process.error in (EACCES, EPERM):
            raise UsageError(
                f"{workdir}: process {process.pid} gave up the rights to write its recording: "
                f"{os.strerror(process.error)}",
                "record it with --backend lab, or start it as the user that it becomes",
            )
        if process.error == ENOENT:
            raise UsageError(
                f"{workdir}: process {process.pid} lost sight of the folder of its recording: it has another "
                "root, or something is mounted there",
                "write the trace elsewhere (-o), or record it with --backend lab",
            )
        if process.error:
            raise UsageError(
                f"{workdir}: recording stopped: {os.strerror(process.error)} (disk full?)",
                "free some space there, write the trace elsewhere (-o), or record with a larger --period",
            )
    placed, first = [], 0
    for process in sorted(found, key=lambda process: process.start_ns):
        placed.append(replace(process, calls=_count_calls(process), first_call=first))
        first += placed[-1].calls
    return placed


def _count_calls(process: ProcessSpool) -> int:
    """How many calls there are: none has the address 0."""
    return sum(int(np.count_nonzero(pairs[:, 1])) for pairs in process.words(("calls", "calls-window")))


def _convert(
    process: ProcessSpool,
    pairs: NDArray[np.uint64],
    current: tuple[int, int, int],
    seats: Sequence[tuple[int, int]],
    levels: EmulatedLevels | None,
    sizes: int,
) -> tuple[SampleBlock, tuple[int, int, int]]:
    """Samples of some pairs, and the (thread, time, call) in force after them; current: before them."""
    first, second = np.array(pairs[:, 0]), np.array(pairs[:, 1])
    is_sample = first < np.uint64(_HEADER)
    is_header = ~is_sample & (first < np.uint64(_CALL))
    told = np.flatnonzero(~is_sample)
    call_of = np.concatenate(([current[2]], np.where(is_header[told], 0, second[told].astype(np.int64))))
    headers = np.flatnonzero(is_header)
    thread_of = np.concatenate(([current[0]], (first[headers] & np.uint64(0xFFFFFFFF)).astype(np.int64)))
    time_of = np.concatenate(([current[1]], second[headers].astype(np.int64)))
    after = (int(thread_of[-1]), int(time_of[-1]), int(call_of[-1]))
    block = np.cumsum(is_header)
    good = is_sample & ((first | second) != 0)
    known = (thread_of >= 0) & (thread_of < len(process.threads))
    good &= known[block]
    call = call_of[np.cumsum(~is_sample)[good]]
    block, first, second = block[good], first[good], second[good]
    thread = thread_of[block]
    seat = np.array(seats, np.int32).reshape(-1, 2)[process.threads["birth"].astype(np.int64) % len(seats)]
    level = (first >> np.uint64(58) & np.uint64(15)).astype(np.uint8)
    level[level >= len(LEVELS)] = 0
    store = (first >> np.uint64(62) & np.uint64(1)).astype(np.bool_)
    low = np.uint64((1 << 48) - 1)
    count = len(first)
    reach = np.full(count, -1, np.int8)
    if levels is not None:
        reach = np.minimum(first >> np.uint64(48) & np.uint64(15), np.uint64(sizes)).astype(np.int8)
        level = levels(level, reach, (first >> np.uint64(52) & np.uint64(1)).astype(np.bool_))
    return SampleBlock(
        time_ns=time_of[block] + (second >> np.uint64(48)).astype(np.int64) + process.shift_ns,
        pid=np.full(count, process.pid, np.int32),
        tid=process.threads["tid"].astype(np.int32)[thread],
        cpu=seat[thread, 0],
        node=seat[thread, 1],
        addr=first & low,
        phys_addr=np.zeros(count, np.uint64),
        ip=second & low,
        event=np.where(store, EVENT_CODE["store"], EVENT_CODE["load"]).astype(np.uint8),
        is_write=store,
        level=level,
        latency=np.full(count, -1, np.int32),
        reach=reach,
        call=np.where((call > 0) & (call <= process.calls), call - 1 + process.first_call, -1).astype(
            np.int32
        ),
    ), after


def sample_blocks(
    processes: Sequence[ProcessSpool],
    seats: Sequence[tuple[int, int]],
    progress: Callable[[float], None],
    keep: Callable[[ProcessSpool, NDArray[np.uint64], NDArray[np.uint64]], NDArray[np.bool_] | None],
    levels: EmulatedLevels | None = None,
    sizes: int = MOST_SIZES,
) -> Iterator[SampleBlock]:
    """Blocks of samples of all processes.

    seats: (cpu, node) of each thread by order of birth, wrapping; keep(process, ip, addr) -> which
    samples stay (None: all of them); levels(level, reach, remote) -> the levels to tell, where
    it was modelled how far accesses reach; sizes: how many caches that is told of.
    """
    total = sum(process.bytes() for process in processes) or 1
    done = 0
    for process in processes:
        current = (-1, 0, 0)
        for pairs in process.words():
            block, current = _convert(process, pairs, current, seats, levels, sizes)
            done += pairs.nbytes
            progress(done / total)
            kept = keep(process, block.ip, block.addr)
            if kept is not None:
                block = block.chosen(kept)
            if len(block):
                yield block
