"""Who touches which page of each region, and who touched it first (native part: pages.c).

The one count by page: regions, false sharing and reports ask for the whole run, the planner phase by phase.
"""

import ctypes
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from numaplan.profiler import RegionKey, Trace

from ..communication.blocks import check_count, library
from ..samples.trace_samples import IS_DRAM, LEVELS, TraceSamples
from .elsewhere import counted_by_pairs, pages_by_pairs
from .page_counts import DATA_KINDS, PAGE, PageCounts
from .page_use import SEVERAL, PageUse, SeveralRegions, has_page_use, page_use_pieces
from .sampled_misses import with_sampled_misses, without_misses

MOST_BORDERS = 31  # of the native part
_PLACED, _CODE = 1, 2
_SPACE = 52  # bits of a page's number, beyond which its region's or process' stands
_ROW = np.dtype(
    {
        "names": [
            *("page", "first_ns", "accesses", "before", "writes", "missed", "missed_before"),
            *("space", "thread", "phase", "toucher"),
        ],
        "formats": ["<u8", "<i8", "<f8", "<f8", "<f8", "<f8", "<f8", "<u4", "<u2", "<u2", "<u4"],
        "itemsize": 72,
    }
)


def page_accesses(trace: Trace) -> PageCounts:
    """Who touched which page in the run, or a part of it, of regions that hold data (no stacks, no code)."""
    return _counted(trace, TraceSamples(trace), _Rules(trace, DATA_KINDS))


def count_pages(
    trace: Trace,
    samples: TraceSamples,
    kinds: Collection[str],
    borders: Sequence[int] = (),
    since_ns: int = 0,
) -> PageCounts:
    """Count the samples of regions of these kinds that are at least a page, and of the rest of memory.

    Those from before since_ns, or before the first thread beside the main one starts, stand apart. borders:
    times in ns at which a new phase begins, ascending. samples: of the trace; of a part, those from before
    it are read besides, as they tell who touched a page first. Raises ValueError for more than MOST_BORDERS.
    """
    if len(borders) > MOST_BORDERS:
        raise ValueError(f"{len(borders)} borders")
    others = [thread.start_ns for thread in trace.thread_rows if thread.path != "0"]
    started = max(min(others, default=0), since_ns)
    process, numbers = np.zeros(samples.threads, np.uint32), dict[str, int]()
    for thread in trace.thread_rows:
        process[thread.thread] = numbers.setdefault(thread.process, len(numbers))
    rules = _Rules(trace, kinds, PAGE, borders, started, process)
    return _counted(trace, samples, rules)


def _counted(trace: Trace, samples: TraceSamples, rules: "_Rules") -> PageCounts:
    check_count(samples.threads)
    if trace.part and rules.since:
        with trace.between(0, trace.part[1]) as until:
            return _all_counted(until, TraceSamples(until, samples.cache_ratio), rules)
    return _all_counted(trace, samples, rules)


def _all_counted(trace: Trace, samples: TraceSamples, rules: "_Rules") -> PageCounts:
    if not has_page_use(trace):
        return _sampled(trace, samples, rules)
    found = _exactly(trace, samples, rules)
    if found.missed is None or samples.cache_ratio is not None:
        found = with_sampled_misses(found, _sampled(trace, samples, rules))
    return found


def _sampled(trace: Trace, samples: TraceSamples, rules: "_Rules") -> PageCounts:
    native = rules.native(samples)
    with _Table() as table:
        for columns in samples.columns():
            table.add(native, _samples(columns))
        found = _page_counts(trace, table.rows(), rules, samples)
    found = replace(found, period=max(1, samples.period))
    return found if samples.dram_count else without_misses(found)


def _exactly(trace: Trace, samples: TraceSamples, rules: "_Rules") -> PageCounts:
    """What was counted, and samples where regions share a page."""
    native, several, known = rules.native(samples), SeveralRegions(samples.regions.process), True
    with _Table() as table:
        for use in page_use_pieces(trace, samples.threads):
            several.add(use)
            known &= not bool((use.missed < 0).any())
            table.add_uses(native, use.chosen(use.region != SEVERAL))
        native = rules.native(samples, max(1, samples.period))
        for columns in samples.columns():
            rows = several.has(columns["thread"], columns["addr"])
            if rows.any():
                chosen = {name: values[rows] for name, values in columns.items()}
                table.add(native, _samples(chosen))
        found = replace(_page_counts(trace, table.rows(), rules, samples), exact=True)
    return found if known else without_misses(found)


class _Table:
    """Of the native part."""

    def __enter__(self) -> "_Table":
        self._handle = library().comm_pages_new()
        if not self._handle:
            raise MemoryError("pages")
        return self

    def __exit__(self, *_: object) -> None:
        library().comm_pages_free(self._handle)

    def add(self, rules: "_Native", samples: "_Samples") -> None:
        if library().comm_pages_add(self._handle, ctypes.byref(rules), ctypes.byref(samples)):
            raise MemoryError("pages")

    def add_uses(self, rules: "_Native", use: PageUse) -> None:
        arrays = [np.ascontiguousarray(getattr(use, name)) for name in _USE]
        arrays[-1] = np.maximum(arrays[-1], 0.0)
        native = _Uses(len(use), *(array.ctypes.data for array in arrays))
        if library().comm_pages_add_uses(self._handle, ctypes.byref(rules), ctypes.byref(native)):
            raise MemoryError("pages")

    def rows(self) -> NDArray[Any]:
        rows = np.empty(library().comm_pages_rows(self._handle), _ROW)
        if library().comm_pages_read(self._handle, rows.ctypes.data):
            raise MemoryError("pages")
        return rows


def _page_counts(trace: Trace, rows: NDArray[Any], rules: "_Rules", samples: TraceSamples) -> PageCounts:
    regions = len(rules.kind)
    in_region = rows["space"] < regions
    code = np.zeros(len(rows), np.bool_)
    code[in_region] = rules.kind[rows["space"][in_region]] == _CODE
    placed = in_region & ~code
    keys = _keys(trace, regions)
    found = PageCounts(
        regions=keys,
        **_in_order(rows[placed]),
        lives=_lives(trace, regions),
        sources={keys[number]: name.title(keys[number].kind) for number, name in trace.source_names.items()},
    )
    if rules.process is None:
        return found
    rows["toucher"][code] = _who_reads_first(rows[code], keys)
    rest = rows[~placed]
    made, missed = rest["accesses"] + rest["before"], rest["missed"] + rest["missed_before"]
    page, space, thread, toucher = (
        rest[name].astype(np.int64) for name in ("page", "space", "thread", "toucher")
    )
    data, count = ~code[~placed], samples.threads
    used, shared = pages_by_pairs(
        (space << _SPACE | page)[data], thread[data], toucher[data], made[data], count
    )
    return replace(
        found,
        elsewhere=counted_by_pairs(thread, toucher, made, count),
        elsewhere_missed=counted_by_pairs(thread, toucher, missed, count),
        elsewhere_pages=used,
        elsewhere_shared=shared,
    )


def _who_reads_first(rows: NDArray[Any], keys: Sequence[RegionKey]) -> NDArray[np.int64]:
    """(rows,) of pages of code: they are the file's, whoever maps it, and where they were read first."""
    files: dict[tuple[str, str], int] = {}
    number = [files.setdefault((key.name, key.build_id), len(files)) for key in keys]
    pages = np.stack([np.array(number, np.int64)[rows["space"]], rows["page"].astype(np.int64)])
    which = np.unique(pages, axis=1, return_inverse=True)[1].reshape(-1)
    first = np.full(len(rows), np.iinfo(np.int64).max)
    np.minimum.at(first, which, rows["toucher"].astype(np.int64))
    return first[which]


def _in_order(rows: NDArray[Any]) -> dict[str, Any]:
    """The columns of PageCounts."""
    rows = rows[np.lexsort([rows[name] for name in ("phase", "thread", "page", "space")])]
    names = {"region": "space"} | {name: name for name in _ROW.names or () if name != "space"}
    return {
        name: rows[of].astype(np.float64 if _ROW[of].kind == "f" else np.int64) for name, of in names.items()
    }


def _keys(trace: Trace, regions: int) -> list[RegionKey]:
    """What identifies each region of a trace, by its number."""
    path_of = {row.thread: row.path for row in trace.thread_rows}
    keys = [RegionKey(kind="", name="", bytes=0)] * regions  # numbers without a region
    for row in trace.region_rows:
        keys[row.region] = RegionKey(
            kind=row.kind,
            name=row.name,
            bytes=row.bytes,
            build_id=row.build_id,
            process=row.process,
            thread=path_of.get(row.thread, ""),
            sequence=row.sequence,
        )
    return keys


def _lives(trace: Trace, regions: int) -> NDArray[np.int64]:
    """(regions, 2) when each was made and when it went."""
    lives = np.zeros((regions, 2), np.int64)
    for row in trace.region_rows:
        lives[row.region] = row.start_ns, row.end_ns
    return lives


class _Native(ctypes.Structure):
    _fields_ = (
        ("regions", ctypes.c_uint32),
        ("borders", ctypes.c_uint32),
        *((name, ctypes.c_void_p) for name in ("start", "kind", "process", "border")),
        ("started", ctypes.c_int64),
        ("since", ctypes.c_int64),
        ("weight", ctypes.c_void_p),
        ("missed", ctypes.c_void_p),
        ("levels", ctypes.c_uint32),
    )


class _Samples(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_size_t),
        *(
            (name, ctypes.c_void_p)
            for name in ("time", "addr", "thread", "region", "is_write", "event", "level")
        ),
    )


_USE = ("time_ns", "first_ns", "addr", "thread", "region", "accesses", "writes", "missed")


class _Uses(ctypes.Structure):
    _fields_ = (("count", ctypes.c_size_t), *((name, ctypes.c_void_p) for name in _USE))


class _Rules:
    """What counts as a page of a region, and when; the arrays live as long as this does.

    kinds: of regions that are counted by their own pages, if they have `least` bytes; started: ns before
    which accesses stand apart; process: number of each thread's, for the rest of memory, which does not
    count without. Those from before the part that is counted only tell who touched a page first.
    """

    def __init__(
        self,
        trace: Trace,
        kinds: Collection[str],
        least: int = 0,
        borders: Sequence[int] = (),
        started: int = 0,
        process: NDArray[np.uint32] | None = None,
    ) -> None:
        size = 1 + max((row.region for row in trace.region_rows), default=-1)
        self.kind, self.start = np.zeros(size, np.uint8), np.zeros(size, np.uint64)
        for region in trace.region_rows:
            placed = region.kind in kinds and region.bytes >= least
            # Small blocks share pages: these are counted as the system has them.
            inside = region.start_addr % PAGE if region.kind == "small" else 0
            self.start[region.region] = region.start_addr - inside
            self.kind[region.region] = _PLACED if placed else _CODE * (region.kind == "text")
        self.border, self.started, self.process = np.array(borders, np.int64), started, process
        self.since = max(trace.part[0], 0) if trace.part else 0

    def native(self, samples: TraceSamples, each: int = 1) -> _Native:
        """The same as the native part takes it; each: what a sample of the most sampled event counts."""
        self.weight = np.full(1 << 8, float(each))
        self.weight[: len(samples.weights)] = samples.weights * each
        self.missed = np.zeros((1 << 8) * LEVELS + (1 << 8), np.uint8)
        self.missed[: len(IS_DRAM)] = IS_DRAM
        arrays = (self.start, self.kind, self.process, self.border)
        pointers = (None if array is None else array.ctypes.data for array in arrays)
        counted = (self.started, self.since, self.weight.ctypes.data, self.missed.ctypes.data, LEVELS)
        return _Native(len(self.kind), len(self.border), *pointers, *counted)


def _samples(columns: dict[str, NDArray[Any]]) -> _Samples:
    words = {"time_ns": np.int64, "addr": np.uint64, "thread": np.int32, "region": np.int32}
    names: dict[str, Any] = {**words, "is_write": np.bool_, "event": np.uint8, "level": np.uint8}
    arrays = [np.ascontiguousarray(columns[name], kind) for name, kind in names.items()]
    columns |= dict(zip(names, arrays, strict=True))  # kept alive by who holds them
    return _Samples(len(arrays[0]), *(array.ctypes.data for array in arrays))
