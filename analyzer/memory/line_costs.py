"""Lines of code, and what they cost: which take cache lines from other threads, and go to others' memory."""

from dataclasses import dataclass, field

from numaplan.profiler import Trace, short_function

from .own_code import call_of, own_code

LINE = 64
PAGE = 4096
_KINDS = "('load', 'store', 'llc_miss_local', 'llc_miss_remote')"
_FAR = "('remote_dram', 'remote_cache')"
_MISSED = "('local_dram', 'remote_dram', 'remote_cache', 'pmem', 'cxl')"
Counts = tuple[int, int, int, int, int, int]


@dataclass
class LineCost:
    """A line of the source; counts are of samples. With an empty path: all code of which no line is known.

    missed: that no cache of the node answered; remote: that memory or a cache of another node did; foreign:
    in pages that another thread touched first; transfers: that took a cache line which another thread had
    written; regions: of each region, how many samples.
    """

    path: str
    line: int
    function: str
    samples: int = 0
    writes: int = 0
    missed: int = 0
    remote: int = 0
    foreign: int = 0
    transfers: int = 0
    regions: dict[int, int] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """As people read it: `stencil.c:42 in main`."""
        if not self.path:
            return "code of which no line is known"
        inside = f" in {short_function(self.function)}" if self.function else ""
        return f"{self.path.rpartition('/')[2]}:{self.line}{inside}"

    def add(self, region: int, counts: Counts) -> None:
        """Count what an instruction of the line did in a region."""
        samples, writes, missed, remote, foreign, transfers = counts
        self.samples += samples
        self.writes += writes
        self.missed += missed
        self.remote += remote
        self.foreign += foreign
        self.transfers += transfers
        self.regions[region] = self.regions.get(region, 0) + samples


def line_costs(trace: Trace) -> list[LineCost]:
    """The lines that samples are of, those with the most transfers and remote and foreign accesses first."""
    found: dict[tuple[str, int, str], LineCost] = {}
    for path, number, function, region, *counts in trace.rows(_query(trace)):
        key = (str(path), int(number), str(function))
        if key not in found:
            found[key] = LineCost(*key)
        samples, writes, missed, remote, foreign, transfers = (int(count) for count in counts)
        found[key].add(int(region), (samples, writes, missed, remote, foreign, transfers))
    return sorted(found.values(), key=_order)


def _order(cost: LineCost) -> tuple[int, int, str, int]:
    return -(cost.transfers + max(cost.remote, cost.foreign)), -cost.samples, cost.path, cost.line


def _query(trace: Trace) -> str:
    """Samples by line and region. What a library does counts for the line of the program that called it.

    A sample takes a line from another thread if that wrote it last, and since this thread's own last access.
    """
    counted = trace.meta.get("page_use") == "all" and trace.rows("SELECT 1 FROM page_use LIMIT 1")
    first = (
        "SELECT t.process, u.addr // 4096 AS page, arg_min(u.thread, u.first_ns) AS toucher FROM page_use u "
        "JOIN threads t USING (thread) GROUP BY ALL"
        if counted
        else "SELECT process, page, arg_min(thread, time_ns) AS toucher FROM accesses GROUP BY ALL"
    )
    return f"""
        WITH RECURSIVE {own_code(trace)},
        accesses AS (
            SELECT t.process AS process, s.thread AS thread, s.ip AS ip, {call_of(trace)} AS call,
                   s.region AS region,
                   s.addr // {LINE} AS line, s.addr // {PAGE} AS page, s.time_ns AS time_ns,
                   s.is_write AS is_write, s.level::VARCHAR AS level, s.event::VARCHAR AS event
            FROM samples s JOIN threads t ON s.thread = t.thread WHERE s.event::VARCHAR IN {_KINDS}),
        firsts AS ({first}),
        shared AS (
            SELECT process, line FROM accesses GROUP BY ALL
            HAVING min(thread) <> max(thread) AND bool_or(is_write)),
        moves AS (
            SELECT process, ip, call, region, thread,
                   last_value(CASE WHEN is_write THEN thread END IGNORE NULLS) OVER before AS writer,
                   last_value(CASE WHEN is_write THEN time_ns END IGNORE NULLS) OVER before AS written,
                   lag(time_ns) OVER (PARTITION BY process, line, thread ORDER BY time_ns) AS own
            FROM accesses JOIN shared USING (process, line)
            WINDOW before AS (PARTITION BY process, line ORDER BY time_ns
                              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
        taken AS (
            SELECT process, ip, call, region, count(*) AS transfers FROM moves
            WHERE writer <> thread AND (own IS NULL OR own <= written) GROUP BY ALL),
        used AS (
            SELECT process, ip, call, region, count(*) AS samples, count(*) FILTER (is_write) AS writes,
                   count(*) FILTER (level IN {_MISSED} OR event LIKE 'llc_miss%') AS missed,
                   count(*) FILTER (level IN {_FAR} OR event = 'llc_miss_remote') AS remote,
                   count(*) FILTER (toucher <> thread) AS away
            FROM accesses LEFT JOIN firsts USING (process, page) GROUP BY ALL)
        SELECT coalesce(o.path, a.path, c.path, ''), coalesce(o.line, a.line, c.line, 0),
               coalesce(o.function, a.function, c.function, ''), u.region,
               sum(samples)::BIGINT, sum(writes)::BIGINT, sum(missed)::BIGINT, sum(remote)::BIGINT,
               sum(away)::BIGINT, coalesce(sum(transfers), 0)::BIGINT
        FROM used u LEFT JOIN taken k ON u.process = k.process AND u.ip = k.ip AND u.call = k.call
                                         AND u.region = k.region
             LEFT JOIN own_code o ON u.process = o.process AND u.ip = o.ip
             LEFT JOIN callers a ON u.call = a.call
             LEFT JOIN code c ON u.process = c.process AND u.ip = c.ip
        GROUP BY ALL ORDER BY ALL"""
