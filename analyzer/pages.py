"""Who touches which page of each region: what memory placement is planned from."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from numaplan.analyzer.periods import event_weights
from numaplan.profiler import Trace

PAGE = 4096
DATA_KINDS = ("static", "heap", "mmap", "file", "small", "other")


@dataclass(frozen=True)
class PageAccesses:
    """Equally long arrays, one entry for each (region, page, thread) with samples, in that order.

    page: offset in the region // 4096; count, writes: samples, those of an event that was sampled more seldom
    count as many of the one sampled most often as they stand for; first_ns: of the earliest one.
    """

    region: NDArray[np.int32]
    page: NDArray[np.int64]
    thread: NDArray[np.int32]
    count: NDArray[np.float64]
    writes: NDArray[np.float64]
    first_ns: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.region)


def page_accesses(trace: Trace) -> PageAccesses:
    """Samples of each page by thread, of every region that holds data (no stacks, no instructions)."""
    kinds = ", ".join(f"'{kind}'" for kind in DATA_KINDS)
    count, writes = weighed_counts(trace)
    columns = trace.arrays(
        f"""
        SELECT s.region AS region, ((s.addr - r.start_addr) // {PAGE})::BIGINT AS page, s.thread AS thread,
               {count}::DOUBLE AS count, ({writes})::DOUBLE AS writes,
               min(s.time_ns)::BIGINT AS first_ns
        FROM samples s JOIN regions r ON s.region = r.region
        WHERE r.kind IN ({kinds}) AND s.thread >= 0 AND s.addr >= r.start_addr
        GROUP BY ALL ORDER BY 1, 2, 3
        """
    )
    return PageAccesses(**columns)


def weighed_counts(trace: Trace) -> tuple[str, str]:
    """SQL of how many samples `s` of a group there are, and of writes among them, weighed by their events."""
    if "periods" not in trace.meta:
        return "count(*)", "count(*) FILTER (s.is_write)"
    present = [int(row[0]) for row in trace.rows("SELECT DISTINCT enum_code(event) FROM samples")]
    _, weights = event_weights(trace.meta, present)
    cases = " ".join(f"WHEN {event} THEN {float(weights[event])!r}" for event in present)
    weight = f"CASE enum_code(s.event) {cases} ELSE 1 END" if cases else "1"
    return f"sum({weight})", f"coalesce(sum({weight}) FILTER (s.is_write), 0)"
