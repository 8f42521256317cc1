"""A run's processes, threads, memory regions and modules. Times: CLOCK_MONOTONIC ns; end -1: to the end."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """A process: `p0` the program started, `p0.1` its first child; `r3` an MPI rank, `r3.1` the rank's child.

    parent: name of the parent, empty for the first; executable, argv, build_id: of the last image it exec'd.
    """

    process: str
    pid: int
    parent: str
    argv: tuple[str, ...]
    executable: str
    build_id: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class ThreadRecord:
    """A thread by creation path: `0` the main thread, `0.3` the third it made, `0.3.1` that one's first."""

    process: str
    path: str
    pid: int
    tid: int
    name: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class RegionRecord:
    """A piece of memory; where regions overlap, the one that began last is meant, before any `small`.

    kind: `static`, `heap`, `mmap`, `file`, `stack`, `small` (malloc's small blocks), `text`, `other`; name:
    `module:symbol`, `module+0xOFFSET` of the call site, or the thread's path for a stack; build_id: of the
    static region's module, else of the program; thread_path, sequence: who made it and as which of its large
    blocks (from 1); chain: the call site, and those of the functions above it, as far as they are known.
    A forked child has its parent's regions under its own pid and the parent's process name.
    """

    process: str
    pid: int
    kind: str
    name: str
    build_id: str
    start_addr: int
    bytes: int
    thread_path: str
    sequence: int
    start_ns: int
    end_ns: int
    chain: tuple[str, ...] = ()


def inherited_regions(
    parents: Iterable[RegionRecord], process: str, pid: int, fork_ns: int, end_ns: int
) -> list[RegionRecord]:
    """What a child forked at `fork_ns` begins with of its parent's regions; static data is its own copy."""
    return [
        replace(
            region,
            process=process if region.kind in ("static", "text") else region.process,
            pid=pid,
            start_ns=fork_ns,
            end_ns=end_ns,
        )
        for region in parents
        if region.start_ns <= fork_ns and not 0 <= region.end_ns < fork_ns
    ]


@dataclass(frozen=True, slots=True)
class Segment:
    """A loaded piece of a module; flags: 1 executable, 2 writable, 4 readable."""

    start_addr: int
    bytes: int
    flags: int


@dataclass(frozen=True, slots=True)
class ModuleRecord:
    """An executable or library in one process; bias: what the linker added to the addresses in its file."""

    process: str
    pid: int
    path: str
    build_id: str
    bias: int
    is_executable: bool
    segments: tuple[Segment, ...]
    start_ns: int
    end_ns: int

    @property
    def name(self) -> str:
        """Basename of the file."""
        return self.path.rpartition("/")[2]


def inherited_modules(
    parents: Iterable[ModuleRecord], process: str, pid: int, fork_ns: int
) -> list[ModuleRecord]:
    """What a child forked at `fork_ns` begins with of its parent's modules."""
    return [
        replace(module, process=process, pid=pid, start_ns=fork_ns)
        for module in parents
        if module.start_ns <= fork_ns and not 0 <= module.end_ns < fork_ns
    ]


@dataclass(frozen=True)
class Identity:
    """All of a run.

    lost: events that had no room in a log (full disk, too many); marked: [from, to) by pid that the program
    marked by numaplan_begin() and numaplan_end().
    """

    processes: tuple[ProcessRecord, ...] = ()
    threads: tuple[ThreadRecord, ...] = ()
    regions: tuple[RegionRecord, ...] = ()
    modules: tuple[ModuleRecord, ...] = field(default=(), repr=False)
    lost: int = 0
    marked: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=dict)
