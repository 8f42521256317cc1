"""The memory regions of one process image: large blocks, stacks, static data, and what is left."""

import bisect
from collections.abc import Iterable, Iterator
from dataclasses import replace

from . import log as events
from .environment import LIBRARY
from .image import Image
from .log import Record
from .records import ModuleRecord, RegionRecord, inherited_regions
from .static import static_objects

HEAP, MMAP, FILE, ARENA = range(1, 5)
KINDS = {HEAP: "heap", MMAP: "mmap", FILE: "file", ARENA: "small"}

EXECUTABLE, WRITABLE = 1, 2
ADDRESSES = 1 << 64
KIND = 0xFF  # of what an allocation's record says: above it is the number of a chain of calls


def regions_of(image: Image) -> list[RegionRecord]:
    """Every region that this image made, in no particular order."""
    known = [*_blocks(image), *_stacks(image)]
    for module in image.modules:
        known += _module_regions(image, module)
    return [*known, *_leftovers(image, known)]


def inherited(image: Image, parent: Image | None) -> list[RegionRecord]:
    """What a forked image has of its parent's memory, but for static data, which `regions_of` gives."""
    if parent is None:
        return []
    own = ("static", "text")
    log = image.log
    passed = inherited_regions(parent.regions, image.process, log.pid, log.fork_ns, image.end_ns)
    return [region for region in passed if region.kind not in own]


def _region(
    image: Image,
    kind: str,
    name: str,
    start: int,
    length: int,
    times: tuple[int, int],
    thread: str = "",
    sequence: int = 0,
    build_id: str | None = None,
) -> RegionRecord:
    end = times[1] if times[1] >= 0 else image.end_ns
    return RegionRecord(
        image.process,
        image.log.pid,
        kind,
        name,
        image.build_id if build_id is None else build_id,
        start,
        length,
        thread,
        sequence,
        times[0],
        end,
    )


class _Live:
    """Blocks that have not been freed yet, by address; mappings also by range."""

    def __init__(self) -> None:
        self.heap: dict[int, Record] = {}
        self.mapped: dict[int, Record] = {}
        self._starts: list[int] = []

    def add(self, record: Record) -> Record | None:
        """Take a block in; returns one whose end was missed at the same address."""
        if record.a & KIND == HEAP:
            return self._swap(self.heap, record)
        if record.b not in self.mapped:
            bisect.insort(self._starts, record.b)
        return self._swap(self.mapped, record)

    @staticmethod
    def _swap(table: dict[int, Record], record: Record) -> Record | None:
        old = table.get(record.b)
        table[record.b] = record
        return old

    def remove(self, record: Record) -> Iterator[Record]:
        """The blocks that a free or munmap ends: all mappings wholly inside the range."""
        if record.a == HEAP:
            if record.b in self.heap:
                yield self.heap.pop(record.b)
            return
        end = record.b + record.c
        first = bisect.bisect_left(self._starts, record.b)
        last = bisect.bisect_left(self._starts, end)
        gone = [s for s in self._starts[first:last] if s + self.mapped[s].c <= end + 4095]
        self._starts[first:last] = [s for s in self._starts[first:last] if s not in set(gone)]
        for start in gone:
            yield self.mapped.pop(start)


def _blocks(image: Image) -> Iterator[RegionRecord]:
    live = _Live()
    for record in image.log.records:
        if (
            record.kind == events.ALLOC
            and record.a & KIND in KINDS
            and record.c
            and record.b + record.c <= ADDRESSES
        ):
            missed = live.add(record)
            if missed is not None:
                yield _block(image, missed, record.time_ns)
        elif record.kind == events.FREE:
            for old in live.remove(record):
                yield _block(image, old, record.time_ns)
    for record in (*live.heap.values(), *live.mapped.values()):
        yield _block(image, record, -1)


def _block(image: Image, record: Record, end_ns: int) -> RegionRecord:
    chain = image.chains.get(record.a >> 8, ())
    region = _region(
        image,
        KINDS[record.a & KIND],
        image.site(record.d, record.time_ns),
        record.b,
        record.c,
        (record.time_ns, end_ns),
        image.paths.get(record.thread, ""),
        min(record.e, (1 << 31) - 1),
    )
    return (
        replace(region, chain=tuple(image.site(site, record.time_ns) for site in chain)) if chain else region
    )


def _stacks(image: Image) -> Iterator[RegionRecord]:
    births = {r.thread: r.time_ns for r in image.log.records if r.kind == events.THREAD_START}
    ends = {r.thread: r.time_ns for r in image.log.records if r.kind == events.THREAD_END}
    for number, (start, length) in image.stacks.items():
        path = image.paths[number]
        if 0 < length <= ADDRESSES - start:
            times = (births.get(number, image.log.start_ns), ends.get(number, -1))
            yield _region(image, "stack", path, start, length, times, path)


def _module_regions(image: Image, module: ModuleRecord) -> Iterator[RegionRecord]:
    times = (module.start_ns, module.end_ns)
    if module.name == LIBRARY.name:  # ours, not the program's
        yield from (
            _region(image, "other", module.name, s.start_addr, s.bytes, times) for s in module.segments
        )
        return
    objects = static_objects(module.path)
    writable = [s for s in module.segments if s.flags & WRITABLE]
    for segment in module.segments:
        if not segment.flags & WRITABLE and segment.bytes <= ADDRESSES - segment.start_addr:
            suffix = ".text" if segment.flags & EXECUTABLE else ".rodata"
            yield _region(
                image,
                "text",
                f"{module.name}:{suffix}",
                segment.start_addr,
                segment.bytes,
                times,
                build_id=module.build_id,
            )
    pieces: Iterable[tuple[str, int, int]] = [(o.name, module.bias + o.address, o.bytes) for o in objects]
    # A file that is gone, or replaced since, says nothing of what was loaded: take the segments as they were.
    if not objects or not all(
        any(_inside(piece, s.start_addr, s.bytes) for s in writable) for piece in pieces
    ):
        pieces = [(".data", s.start_addr, s.bytes) for s in writable]
    for name, start, length in pieces:
        if 0 < length <= ADDRESSES - start:
            yield _region(
                image, "static", f"{module.name}:{name}", start, length, times, build_id=module.build_id
            )


def _inside(piece: tuple[str, int, int], start: int, length: int) -> bool:
    return start <= piece[1] and piece[1] + piece[2] <= start + length


def _leftovers(image: Image, known: list[RegionRecord]) -> Iterator[RegionRecord]:
    """Anonymous memory at the end that is none of the regions alive then: the heaps of small blocks."""
    taken = sorted((r.start_addr, r.start_addr + r.bytes) for r in known if r.end_ns in (-1, image.end_ns))
    for record in image.log.records:
        if record.kind != events.AREA or not 0 < record.c <= ADDRESSES - record.b:
            continue
        at, end = record.b, record.b + record.c
        for start, stop in taken[_first_near(taken, at) :]:
            if start >= end:
                break
            if start > at:
                yield _region(image, "small", "small", at, start - at, (image.log.start_ns, -1))
            at = max(at, stop)
        if at < end:
            yield _region(image, "small", "small", at, end - at, (image.log.start_ns, -1))


def _first_near(taken: list[tuple[int, int]], address: int) -> int:
    """Where to begin looking: the last region that starts at or before the address."""
    return max(bisect.bisect_right(taken, (address, ADDRESSES)) - 1, 0)
