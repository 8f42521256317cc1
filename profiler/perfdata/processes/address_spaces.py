"""The memory regions of recorded processes, by the mappings that perf recorded.

A mapping record gives the area as it is afterwards: a change of protection and growth look like new mappings,
an area that was joined to its neighbour is one with it; the end of a mapping has no record.
"""

import bisect
from collections.abc import Iterable
from dataclasses import replace

from ...identity.records import ModuleRecord, RegionRecord, Segment, inherited_modules, inherited_regions
from ...identity.static import static_objects
from ...sample_block import USER_END
from .ancestry import ProcessSpan
from .elf import bias_of, local_file, writable_ranges
from .records import EXECUTABLE, WRITABLE, Mapping, ThreadSpan
from .reserved import ARENAS, ReservedMemory

_LARGE = 64 << 10  # smaller blocks are not counted, as in recordings of our own
_ANONYMOUS = ("//anon", "/dev/zero", "/SYSV", "/anon_hugepage", "/memfd:", "[anon")
_MOST_REGIONS = 1 << 19
_MOST_MODULES = 1 << 13
_MOST_COPIED = 1 << 21
_LOADING = 10_000_000  # ns between two mappings of one library


class AddressSpaces:
    """Collects the regions of processes, parents before their children. full: there were too many.

    modules: code in files that are here.
    """

    def __init__(self, same_host: bool) -> None:
        self.regions: list[RegionRecord] = []
        self.modules: list[ModuleRecord] = []
        self.full = False
        self._copied = 0
        self._same_host = same_host
        self._rows: dict[int, list[int]] = {}

    def add(self, process: ProcessSpan, maps: Iterable[Mapping], execs: Iterable[int]) -> None:
        """Take a process with its own mappings (in order of time), and the times of its execs."""
        maps = list(maps)
        own = _AddressSpace(self, process, {one.filename for one in maps if one.protection & EXECUTABLE})
        if process.parent is not None:
            own.inherit()
        events: list[tuple[int, int, Mapping | ThreadSpan | None]] = [(time, 0, None) for time in execs]
        events += [(one.time, 1, one) for one in maps if one.length > 0 and one.addr + one.length < USER_END]
        events += [(span.start, 2, span) for span in process.spans if span.start >= 0]
        for time, _kind, what in sorted(events, key=lambda one: one[:2]):
            if what is None:
                own.replaced(time)
            elif isinstance(what, Mapping):
                if self.has_room():
                    own.mapped(what)
            else:
                own.thread_began(what)
        self._rows[id(process)] = own.made

    def inherited(self, process: ProcessSpan) -> list[RegionRecord]:
        """What it has of its parent; nothing once all forks together copied too much."""
        rows = self._rows.get(id(process.parent), [])
        self._copied += len(rows)
        if self._copied > _MOST_COPIED or not self.has_room():
            self.full = True
            return []
        parents = (self.regions[row] for row in rows)
        return inherited_regions(parents, process.label, process.pid, process.start, process.end)

    def has_room(self) -> bool:
        """Whether there may be more regions; once asked in vain, it is `full`."""
        self.full |= len(self.regions) >= _MOST_REGIONS
        return len(self.regions) < _MOST_REGIONS

    def inherited_modules(self, process: ProcessSpan) -> list[ModuleRecord]:
        """What it has of its parent's code."""
        parents = (one for one in self.modules if process.parent and one.process == process.parent.label)
        return inherited_modules(parents, process.label, process.pid, process.start)

    def append(self, region: RegionRecord) -> int:
        """Keep a region; its row, or -1 when there are too many."""
        if not self.has_room():
            return -1
        self.regions.append(region)
        return len(self.regions) - 1

    def file_of(self, one: Mapping) -> str:
        """The ELF file here that was mapped, if it is."""
        return local_file(one.filename, one.build_id, self._same_host)


class _AddressSpace:
    """One process while its records are gone through."""

    def __init__(self, out: AddressSpaces, process: ProcessSpan, programs: set[str]) -> None:
        self.made: list[int] = []  # rows of all its regions
        self._rows: list[int] = []  # and of those since its last exec
        self._out = out
        self._process = process
        self._programs = programs
        self._counts: dict[str, int] = {}
        self._forget()

    def _forget(self) -> None:
        """Begin with empty memory."""
        self._end_of: dict[int, int] = {}  # areas of anonymous memory, by start
        self._start_of: dict[int, int] = {}  # and by end
        self._reserved = ReservedMemory()
        self._known: set[tuple[str, int]] = set()
        self._own_data: list[tuple[int, int]] = []
        self._data_ends: dict[int, Mapping] = {}

    def inherit(self) -> None:
        """Take what the parent had."""
        for region in self._out.inherited(self._process):
            self._keep(region)
        if len(self._out.modules) < _MOST_MODULES:
            self._out.modules += self._out.inherited_modules(self._process)

    def replaced(self, time: int) -> None:
        """Another program took the process over: nothing of its memory stays."""
        for row in self._rows:
            region = self._out.regions[row]
            if region.end_ns < 0 or region.end_ns > time:
                self._out.regions[row] = replace(region, end_ns=time)
        self._rows = []
        self._forget()

    def mapped(self, one: Mapping) -> None:
        """Take a record of a mapping."""
        name, base = one.filename, one.filename.rpartition("/")[2]
        if not name or name.startswith(_ANONYMOUS):
            self._anonymous(one)
        elif name == "[heap]":
            self._add(one, "small", "small")
        elif name.startswith("[stack"):
            self._add(one, "stack", "0", thread="0")
        elif name.startswith("["):
            self._add(one, "other", base)
        elif one.protection & EXECUTABLE:
            self._program(one, base)
        elif name in self._programs:
            self._program_data(one, base)
        else:
            self._add(one, "file", f"{base}+{one.offset:#x}")

    def thread_began(self, span: ThreadSpan) -> None:
        """A thread was made: its stack is what its maker reserved last, or that of a thread that ended."""
        path = self._process.paths.get(span.tid, "")
        stack, reused = self._reserved.take_stack(span)
        if stack is None:
            return
        if reused:
            self._keep(self._region("stack", path, stack.start, stack.end - stack.start, span.start, path))
        elif stack.row >= 0:
            region = self._out.regions[stack.row]
            self._out.regions[stack.row] = replace(
                region, kind="stack", name=path, thread_path=path, sequence=0
            )

    def _program(self, one: Mapping, base: str) -> None:
        """Code of a program or library: its data are where its file says, if that is here."""
        file = self._out.file_of(one)
        bias = bias_of(file, one.offset, one.addr) if file else None
        if bias is not None and len(self._out.modules) < _MOST_MODULES:
            code = (Segment(one.addr, one.length, 1),)
            label, pid = self._process.label, self._process.pid
            self._out.modules.append(
                ModuleRecord(label, pid, file, one.build_id, bias, False, code, one.time, -1)
            )
        if bias is not None and (file, bias) not in self._known and len(self._known) < _MOST_MODULES:
            self._known.add((file, bias))
            for piece_range in writable_ranges(file, bias):
                bisect.insort(self._own_data, piece_range)
            for piece in static_objects(file):
                start, length = bias + piece.address, piece.bytes
                if length > 0 and 0 <= start < USER_END - length:
                    title = f"{base}:{piece.name}"
                    self._keep(self._region("static", title, start, length, one.time, build_id=one.build_id))
        self._add(one, "text", f"{base}:.text")

    def _program_data(self, one: Mapping, base: str) -> None:
        if self._is_own_data(one):
            return
        if one.protection & WRITABLE:
            self._add(one, "static", f"{base}:.data")
            self._data_ends[one.addr + one.length] = one
        else:
            self._add(one, "text", f"{base}:.rodata")

    def _anonymous(self, one: Mapping) -> None:
        start, end = one.addr, one.addr + one.length
        before = self._data_ends.pop(start, None)
        if before is not None and one.time - before.time < _LOADING:
            base = before.filename.rpartition("/")[2]
            self._add(replace(one, build_id=before.build_id), "static", f"{base}:.bss")
            return
        if self._is_own_data(one) or self._reserved.holds(start, end):
            return
        if one.protection == 0:
            self._reserve(one)
            return
        # What was joined to neighbours is recorded as one: the new part is what those leave.
        at, stop = start, end
        while at < stop:
            if at < self._end_of.get(at, at) <= stop:
                at = self._end_of[at]
            elif at <= self._start_of.get(stop, stop) < stop:
                stop = self._start_of[stop]
            else:
                break
        self._end_of[start], self._start_of[end] = end, start
        if at < stop:
            self._add(replace(one, addr=at, length=stop - at), "mmap", "anon")

    def _reserve(self, one: Mapping) -> None:
        one = self._reserved.without_guard(one)
        arena = one.length in ARENAS
        row = self._add(one, "small" if arena else "mmap", "small" if arena else "anon")
        self._reserved.add(one, row)

    def _is_own_data(self, one: Mapping) -> bool:
        """Whether its symbols tell more of this memory already."""
        place = bisect.bisect_right(self._own_data, (one.addr, USER_END)) - 1
        return place >= 0 and one.addr + one.length <= self._own_data[place][1]

    def _add(self, one: Mapping, kind: str, name: str, thread: str = "") -> int:
        """Keep a mapping as a region of this kind; its row, -1 if there was no room."""
        sequence = 0
        if kind == "mmap":
            thread = self._process.paths.get(one.tid, "0")
            if one.length >= _LARGE:
                sequence = self._counts[thread] = self._counts.get(thread, 0) + 1
        return self._keep(
            self._region(kind, name, one.addr, one.length, one.time, thread, sequence, one.build_id)
        )

    def _region(
        self,
        kind: str,
        name: str,
        start: int,
        length: int,
        time: int,
        thread: str = "",
        sequence: int = 0,
        build_id: str = "",
    ) -> RegionRecord:
        born = time if time > 0 else -1
        label, pid, died = self._process.label, self._process.pid, self._process.end
        return RegionRecord(label, pid, kind, name, build_id, start, length, thread, sequence, born, died)

    def _keep(self, region: RegionRecord) -> int:
        row = self._out.append(region)
        if row >= 0:
            self._rows.append(row)
            self.made.append(row)
        return row
