"""The samples of a trace by thread, calls, instruction and region: what profile formats hold."""

from collections.abc import Iterator
from typing import NamedTuple

from ..trace.reader import Trace
from .code_places import CodePlaces, Place
from .stacks import Stacks

# Accesses that leave the thread's node.
REMOTE = "(event = 'llc_miss_remote' OR level IN ('remote_dram', 'remote_cache'))"
# What reaches memory at all, or another node's cache.
BEYOND = f"({REMOTE} OR event = 'llc_miss_local' OR level IN ('local_dram', 'pmem', 'cxl'))"
VALUES = ("accesses", "remote", "transfers")


class Row(NamedTuple):
    """Samples that are alike. thread: as people call it; region: likewise, empty: none is known.

    accesses, remote: samples; transfers: cache lines that the thread took from others, counted and not
    sampled; place: None for them, as it is not known which instruction took them; callers: the calls that
    it was made in, innermost first, none where that is not known.
    """

    thread: str
    place: Place | None
    callers: tuple[Place, ...]
    region: str
    accesses: int
    remote: int
    transfers: int

    @property
    def values(self) -> tuple[int, int, int]:
        """In the order of VALUES."""
        return self.accesses, self.remote, self.transfers


def profile_rows(trace: Trace) -> Iterator[Row]:
    """All of them; the sums are those of the tables `samples` and `transfers`."""
    several = len({row.process for row in trace.thread_rows}) > 1
    process = {row.thread: row.process for row in trace.thread_rows}
    names = {row.thread: f"{row.process}:{row.path}" if several else row.path for row in trace.thread_rows}
    regions = {row.region: f"{row.kind} {row.name}" for row in trace.region_rows}
    regions |= {
        row.region: known.title(row.kind, row.bytes)
        for row in trace.region_rows
        if (known := trace.source_names.get(row.region)) is not None
    }
    places = CodePlaces(trace)
    stacks = Stacks(trace, places)
    call = "call" if trace.has("call") else "-1"
    sampled = trace.rows(
        f"SELECT thread, ip, region, {call}, count(*), count(*) FILTER {REMOTE.join(('(WHERE ', ')'))}"
        " FROM samples GROUP BY ALL ORDER BY 1, 2, 3, 4"
    )
    for thread, ip, region, innermost, accesses, remote in sampled:
        place = places.find(process.get(thread, "p0"), int(ip))
        callers, of_region = stacks.find(innermost), regions.get(region, "")
        yield Row(names.get(thread, "unknown"), place, callers, of_region, accesses, remote, 0)
    taken = trace.rows("SELECT reader, region, sum(events)::BIGINT FROM transfers GROUP BY ALL ORDER BY ALL")
    for thread, region, lines in taken:
        yield Row(names.get(thread, "unknown"), None, (), regions.get(region, ""), 0, 0, lines)
