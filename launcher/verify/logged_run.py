"""What the library, or the tracer, logged of a run: its threads, and where its pages were."""

import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from numaplan.profiler import Record, read_control, read_image, read_logs

from ..enforce.tracer import LOG

# Record kinds and fields: native/enforce/enforce.h.
_APPLIED_THREAD, _APPLIED_REGION, _REGION_PAGES, _BAD_PLAN_TABLE, _NEXT_TOUCHED = range(32, 37)
_RULE_BLOCKS, _MEMORY, _PROGRAM, _RETIRED = range(37, 41)
_PLANNED, _FOLLOWS = 1, 2  # enum nf_named, enum tr_named
_SANDBOX = 12  # native/preload/preload.h
_NO_NODE = 0xFFFF
# What the library could do for the threads of a process that restricts its system calls.
_FOLLOWED = "later threads were bound from outside"
_FREED = "its threads were set free"
_LEFT = "later threads were left where they are"
_MOST_LOG = 256 << 20  # bytes read of the tracer's log
_LOG_FIELDS = 8


@dataclass
class LoggedThread:
    """A thread: cpus as last read back (empty: not read), if the plan names it, errno of binding; follows: it
    has the cpus of a planned one that had ended."""

    process: str
    path: str
    tid: int
    cpus: tuple[int, ...] = ()
    planned: bool = False
    error: int = 0
    pid: int = 0
    ended: bool = False
    follows: bool = False


@dataclass
class LoggedRegion:
    """A planned region that appeared: size, errno of placing, bytes by (node of the plan, node found).

    -1 stands for a node not planned, or a page not touched. address and pid: where it was last. blocks: of a
    rule, how many it placed, `bytes` in all; pages are those of some of them. gone: at its address may be
    something else.
    """

    bytes: int = 0
    error: int = 0
    pages: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    address: int = 0
    pid: int = 0
    blocks: int = 0
    gone: bool = False


@dataclass
class LoggedRun:
    """A run by its logs; regions by their row in the plan table; outside: processes that a tracer followed.

    next_touch: bytes marked, pages moved, pages that could not be moved; full: nodes that had, while it
    ran, no room for what was planned there; memory: bytes of large blocks, mappings and static data that it
    made, and of those that were placed; programs: files that ran as the plan's processes; sandboxed: who
    restricted its system calls, and what became of its threads from then on.
    """

    processes: list[str] = field(default_factory=list)
    threads: dict[tuple[str, str], LoggedThread] = field(default_factory=dict)
    regions: dict[int, LoggedRegion] = field(default_factory=lambda: defaultdict(LoggedRegion))
    bad_table: bool = False
    lost: int = 0
    outside: set[str] = field(default_factory=set)
    next_touch: tuple[int, int, int] = (0, 0, 0)
    full: set[int] = field(default_factory=set)
    memory: tuple[int, int] = (0, 0)
    programs: set[str] = field(default_factory=set)
    sandboxed: dict[str, str] = field(default_factory=dict)


def read_logged_run(workdir: Path, named: Mapping[int, str]) -> LoggedRun:
    """All that the library or the tracer logged; nothing when neither was at work.

    named: processes of the plan by their hashes: one that had another's part goes by that one's name.
    """
    entries = read_control(workdir)
    names = [named.get(entry.plays, entry.name) for entry in entries]
    logged = LoggedRun(names.copy())
    for log in read_logs(workdir):
        if log.entry >= len(entries):
            continue
        process = names[log.entry]
        image = read_image(log, process, None)
        tids = {thread.path: thread.tid for thread in image.threads}
        logged.lost += log.lost
        rules, memory = dict[int, Record](), (0, 0)  # the last word counts
        for record in log.records:
            if record.kind == _APPLIED_THREAD and record.thread in image.paths:
                path = image.paths[record.thread]
                _add_thread(logged, LoggedThread(process, path, tids.get(path, log.pid), pid=log.pid), record)
            elif record.kind == _APPLIED_REGION:
                region = logged.regions[record.b]
                region.bytes, region.error = record.d, region.error or record.a
                region.address, region.pid, region.gone = record.c, log.pid, False
            elif record.kind == _REGION_PAGES:
                pair = (_node(record.a >> 16), _node(record.a & 0xFFFF))
                region = logged.regions[record.b]
                region.pages[pair] += record.c
                region.gone = True
                if record.d:
                    logged.full.add(pair[0])
            elif record.kind == _NEXT_TOUCHED:
                marked, moved, stayed = logged.next_touch
                logged.next_touch = (marked + record.b, moved + record.d, stayed + record.e)
            elif record.kind == _BAD_PLAN_TABLE:
                logged.bad_table = True
            elif record.kind == _RULE_BLOCKS:
                if record.b not in rules or record.c > rules[record.b].c:
                    rules[record.b] = record
            elif record.kind == _PROGRAM:
                logged.programs.add(os.fsdecode(record.text))
            elif record.kind == _RETIRED:
                logged.sandboxed[process] = _FOLLOWED if record.a else _FREED
            elif record.kind == _SANDBOX:
                logged.sandboxed.setdefault(process, _LEFT)
            elif record.kind == _MEMORY:
                memory = max(memory, (record.b, record.c))
        logged.memory = (logged.memory[0] + memory[0], logged.memory[1] + memory[1])
        for row, record in rules.items():
            region = logged.regions[row]
            region.blocks, region.bytes = region.blocks + record.c, region.bytes + record.d
            region.error = region.error or record.a
    _read_tracer_log(workdir, logged)
    return logged


def _add_thread(logged: LoggedRun, birth: LoggedThread, record: Record) -> None:
    """At its birth, or later (record.d), at its end; another process may have had the same part before."""
    thread = logged.threads.setdefault((birth.process, birth.path), birth)
    if not record.d:
        thread.tid, thread.pid = birth.tid, birth.pid
    thread.ended = bool(record.d)
    thread.planned = thread.planned or record.c == _PLANNED
    thread.follows = thread.follows or record.c == _FOLLOWS
    thread.error = thread.error or record.a
    cpus = _cpus_of(record.text)
    if cpus:  # at the end of a thread that is already gone there is nothing to read
        thread.cpus = cpus


def _node(value: int) -> int:
    return -1 if value == _NO_NODE else value


def _read_tracer_log(workdir: Path, logged: LoggedRun) -> None:
    """Add what the tracer logged: a line for each thread's birth and end (native/trace/bind.c).

    A line that was cut short is left out.
    """
    try:
        with (workdir / LOG).open("rb") as file:
            data = file.read(_MOST_LOG)
    except OSError:
        return
    for line in data.decode(errors="replace").split("\n")[:-1]:
        fields = line.split(" ")
        if len(fields) == _LOG_FIELDS:
            _add_line(logged, fields)


def _add_line(logged: LoggedRun, fields: list[str]) -> None:
    event, process, path, *numbers, mask = fields
    try:
        pid, tid, named, error = (int(number) for number in numbers)
        cpus = _cpus_of(bytes.fromhex(mask)) if mask != "-" else ()
    except ValueError:
        return
    logged.outside.add(process)
    if process not in logged.processes:
        logged.processes.append(process)
    thread = logged.threads.get((process, path))
    if thread is None or event == "b":
        thread = logged.threads[process, path] = LoggedThread(process, path, tid, pid=pid)
    thread.planned, thread.follows = named == _PLANNED, named == _FOLLOWS
    thread.error = thread.error or error
    thread.cpus = cpus or thread.cpus
    thread.ended = event == "e"


def _cpus_of(mask: bytes) -> tuple[int, ...]:
    """The numbers of the bits that are set, lowest first."""
    return tuple(8 * byte + bit for byte, value in enumerate(mask) for bit in range(8) if value >> bit & 1)
