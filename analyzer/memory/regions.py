"""How each region of memory is used: size, who touched it first, who shares it, read-mostly or not."""

from dataclasses import dataclass, replace

import numpy as np

from numaplan.profiler import SourceName, Trace

from ..samples.region_rules import OUR_LIBRARY
from .page_counts import DATA_KINDS, PageCounts

READ_MOSTLY = 0.05  # share of writes after the first toucher's own


@dataclass(frozen=True)
class RegionUse:
    """One region with samples. Counts are samples, weighed as in PageCounts, or as many as counted accesses
    are worth; threads are indices.

    sharers, writers: how many threads touched and wrote it; first_toucher: of its earliest sample;
    main_thread, main_share: who touches it most, and that thread's share; read_mostly: hardly written but by
    its first toucher; shared_writes: share of its samples in pages that one thread writes and others touch;
    foreign_first: share in pages that another thread touches most than the one that touched them first;
    thread: creation path of who allocated it; source: what the source calls it, None: not known.
    """

    region: int
    process: str
    kind: str
    name: str
    bytes: int
    sequence: int
    samples: int
    writes: int
    sharers: int
    writers: int
    first_toucher: int
    main_thread: int
    main_share: float
    read_mostly: bool
    shared_writes: float
    foreign_first: float
    thread: str = ""
    source: SourceName | None = None

    @property
    def title(self) -> str:
        """How the region is called where people read: as the source does, where that is known."""
        if self.source:
            return self.source.title(self.kind, self.bytes)
        # What is left of the heap has no name of its own.
        return "small heap blocks" if self.kind == "small" else f"{self.kind} {self.name}"


def region_uses(trace: Trace, pages: PageCounts) -> list[RegionUse]:
    """Every data region of the program with samples, most touched first; our own library's are not told.

    pages: of the same trace (`page_accesses`).
    """
    kinds = ", ".join(f"'{kind}'" for kind in DATA_KINDS)
    rows = trace.rows(
        "SELECT region, r.process, kind, r.name, bytes, sequence, coalesce(t.path, '')"
        " FROM regions r LEFT JOIN threads t ON r.thread = t.thread "
        f"WHERE kind IN ({kinds}) AND NOT (kind = 'other' AND r.name = '{OUR_LIBRARY}') ORDER BY region"
    )
    starts = np.searchsorted(pages.region, [int(row[0]) for row in rows])
    ends = np.searchsorted(pages.region, [int(row[0]) for row in rows], side="right")
    each = max(1, int(trace.meta.get("period", "1"))) if pages.exact else 1
    found = []
    for row, start, end in zip(rows, starts.tolist(), ends.tolist(), strict=True):
        if pages.accesses[start:end].sum() > 0:
            identity = (int(row[0]), str(row[1]), str(row[2]), str(row[3]), int(row[4]), int(row[5]))
            use = _use(identity, pages, slice(start, end), each)
            found.append(replace(use, thread=str(row[6]), source=trace.source_names.get(use.region)))
    return sorted(found, key=lambda use: (-use.samples, use.region))


def _use(
    identity: tuple[int, str, str, str, int, int], pages: PageCounts, part: slice, each: int
) -> RegionUse:
    assert pages.toucher is not None and pages.first_ns is not None
    thread, count, writes = pages.thread[part], pages.accesses[part], pages.writes[part]
    touched = np.bincount(thread, weights=count)
    wrote = np.bincount(thread, weights=writes)
    first = int(pages.toucher[part][np.argmin(pages.first_ns[part])])
    total = float(touched.sum())
    by_others = float(wrote.sum() - wrote[first])
    region, process, kind, name, size, sequence = identity
    return RegionUse(
        region=region,
        process=process,
        kind=kind,
        name=name,
        bytes=size,
        sequence=sequence,
        samples=round(total / each),
        writes=round(float(wrote.sum()) / each),
        sharers=int((touched > 0).sum()),
        writers=int((wrote > 0).sum()),
        first_toucher=first,
        main_thread=int(np.argmax(touched)),
        main_share=float(touched.max() / total),
        read_mostly=by_others <= READ_MOSTLY * total,
        shared_writes=_shared_writes(pages, part) / total,
        foreign_first=_foreign_first(pages, part) / total,
    )


def _shared_writes(pages: PageCounts, part: slice) -> float:
    """Samples in pages that someone writes and more than one thread touches (one entry a page and thread,
    without accesses where the kernel filled the page for it)."""
    page, place = np.unique(pages.page[part], return_inverse=True)
    threads = np.bincount(place, weights=pages.accesses[part] > 0, minlength=len(page))
    written = np.bincount(place, weights=pages.writes[part], minlength=len(page)) > 0
    samples = np.bincount(place, weights=pages.accesses[part], minlength=len(page))
    return float(samples[(threads > 1) & written].sum())


def _foreign_first(pages: PageCounts, part: slice) -> float:
    """Samples in pages whose first toucher is not the thread that touches them most."""
    assert pages.toucher is not None
    page, thread = pages.page[part], pages.thread[part]
    starts = np.flatnonzero(np.diff(page, prepend=-1))
    most = np.lexsort((-pages.accesses[part], page))[starts]
    samples = np.add.reduceat(pages.accesses[part], starts)
    return float(samples[pages.toucher[part][starts] != thread[most]].sum())
