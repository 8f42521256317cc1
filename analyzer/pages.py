"""Who touches which page of each region: what memory placement is planned from."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from numaplan.profiler import Trace

PAGE = 4096
DATA_KINDS = ("static", "heap", "mmap", "file", "small", "other")


@dataclass(frozen=True)
class PageAccesses:
    """Equally long arrays, one entry for each (region, page, thread) with samples, in that order.

    page: offset in the region // 4096; count, writes: samples; first_ns: of the earliest one.
    """

    region: NDArray[np.int32]
    page: NDArray[np.int64]
    thread: NDArray[np.int32]
    count: NDArray[np.int64]
    writes: NDArray[np.int64]
    first_ns: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.region)


def page_accesses(trace: Trace) -> PageAccesses:
    """Samples of each page by thread, of every region that holds data (no stacks, no instructions)."""
    kinds = ", ".join(f"'{kind}'" for kind in DATA_KINDS)
    columns = trace.arrays(
        f"""
        SELECT s.region AS region, ((s.addr - r.start_addr) // {PAGE})::BIGINT AS page, s.thread AS thread,
               count(*)::BIGINT AS count, (count(*) FILTER (s.is_write))::BIGINT AS writes,
               min(s.time_ns)::BIGINT AS first_ns
        FROM samples s JOIN regions r ON s.region = r.region
        WHERE r.kind IN ({kinds}) AND s.thread >= 0 AND s.addr >= r.start_addr
        GROUP BY ALL ORDER BY 1, 2, 3
        """
    )
    return PageAccesses(**columns)
