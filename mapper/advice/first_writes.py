"""Which code writes memory for the first time: its line, or module and offset where that is not known."""

from collections.abc import Sequence

from numaplan.analyzer import call_of, own_code
from numaplan.profiler import Trace

LIBRARIES = ("libc.", "libc-", "ld-", "libgomp", "libomp", "libiomp", "libpthread", "libstdc++", "preload.so")
_MOST = 3  # places
_MUCH = 0.5  # of the pages that the first place writes, for another to be told, too


def first_write(trace: Trace, regions: Sequence[int], thread: int) -> str:
    """The code that is the first to write most pages of regions, as far as a thread does: its lines, also
    where they call a library for that (memset); empty where none is seen, or only a library is known."""
    numbers = ", ".join(str(int(number)) for number in regions)
    found = trace.rows(
        f"""
        WITH RECURSIVE {own_code(trace)},
        firsts AS (
            SELECT arg_min(ip, time_ns) AS ip, arg_min({call_of(trace)}, time_ns) AS call FROM samples
            WHERE region IN ({numbers}) AND thread = {int(thread)} AND is_write GROUP BY addr // 4096),
        found AS (
            SELECT coalesce(o.path, a.path, '') AS path, coalesce(o.line, a.line, 0) AS line, f.ip AS ip,
                   r.name AS name, r.build_id AS build_id
            FROM firsts f JOIN regions r ON r.kind = 'text' AND f.ip >= r.start_addr
                 AND f.ip - r.start_addr < r.bytes
                 LEFT JOIN own_code o ON o.ip = f.ip AND o.process = r.process
                 LEFT JOIN callers a ON a.call = f.call)
        SELECT path, line, min(ip)::UBIGINT, name, (SELECT min(start_addr) FROM regions m
                   WHERE m.kind = 'text' AND m.build_id = f.build_id
                   AND split_part(m.name, ':', 1) = split_part(f.name, ':', 1))::UBIGINT, count(*)
        FROM found f GROUP BY path, line, name, build_id, CASE WHEN line > 0 THEN 0 ELSE ip END
        ORDER BY count(*) DESC, 1, 2, 3 LIMIT {_MOST}
        """
    )
    places = set()
    for path, line, ip, name, base, count in found:
        module = str(name).partition(":")[0]
        if count >= _MUCH * found[0][-1] and (line or not module.startswith(LIBRARIES)):
            place = f"{str(path).rpartition('/')[2]}:{line}" if line else f"{module}+{int(ip) - int(base):#x}"
            places.add((path, line, place))
    return " and ".join(place for _, _, place in sorted(places))
