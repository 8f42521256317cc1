"""Which code writes a cache line of which the source says nothing else."""

from collections.abc import Sequence

from numaplan.profiler import Trace

from .line_costs import LineCost
from .own_code import call_of, own_code

MOST_PLACES = 16  # that are looked up
MOST_LINES = 2  # of code, of each
MUCH = 0.25  # of the writes of the first line, for another to be told


def written_by(trace: Trace, places: Sequence[tuple[int, int]], length: int) -> list[list[str]]:
    """Of each place the lines of the program that write there most: `join.cpp:24 in probe`.

    places: (region, offset), each of `length` bytes; those beyond MOST_PLACES are not looked up.
    """
    found: list[list[str]] = [[] for _ in places]
    numbered = list(enumerate(places[:MOST_PLACES]))
    if not numbered:
        return found
    listed = ", ".join(f"({number}, {region}, {offset})" for number, (region, offset) in numbered)
    rows = trace.rows(
        f"""
        WITH RECURSIVE {own_code(trace)},
        places(number, region, start) AS (VALUES {listed}),
        written AS (
            SELECT p.number AS number, t.process AS process, s.ip AS ip, {call_of(trace)} AS call
            FROM places p JOIN regions r ON r.region = p.region JOIN samples s ON s.region = p.region
                 JOIN threads t ON t.thread = s.thread
            WHERE s.is_write AND s.addr::HUGEINT - r.start_addr::HUGEINT - p.start BETWEEN 0 AND {length - 1})
        SELECT w.number, coalesce(o.path, a.path) AS path, coalesce(o.line, a.line) AS line,
               coalesce(o.function, a.function) AS function,
               count(*)
        FROM written w LEFT JOIN own_code o ON o.process = w.process AND o.ip = w.ip
             LEFT JOIN callers a ON a.call = w.call
        WHERE coalesce(o.line, a.line) IS NOT NULL
        GROUP BY ALL ORDER BY w.number, count(*) DESC, path, line
        """
    )
    most: dict[int, int] = {}
    for number, path, line, function, count in rows:
        if len(found[number]) < MOST_LINES and count >= MUCH * most.setdefault(number, count):
            found[number].append(LineCost(str(path), int(line), str(function)).title)
    return found
