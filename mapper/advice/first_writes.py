"""Which code writes memory for the first time: its line, or module and offset where that is not known."""

from collections.abc import Sequence

from numaplan.profiler import Trace

LIBRARIES = ("libc.", "libc-", "ld-", "libgomp", "libomp", "libiomp", "libpthread", "libstdc++", "preload.so")


def first_write(trace: Trace, regions: Sequence[int], thread: int) -> str:
    """The instruction that is the first to write most pages of regions, as far as a thread does; empty where
    none is seen, or it is a library's."""
    numbers = ", ".join(str(int(number)) for number in regions)
    found = trace.rows(
        f"""
        WITH firsts AS (
            SELECT arg_min(ip, time_ns) AS ip FROM samples
            WHERE region IN ({numbers}) AND thread = {int(thread)} AND is_write GROUP BY addr // 4096)
        SELECT f.ip::UBIGINT, r.name,
               coalesce(any_value(c.path), ''), coalesce(any_value(c.line), 0),
               (SELECT min(start_addr) FROM regions m WHERE m.kind = 'text' AND m.build_id = r.build_id
                AND split_part(m.name, ':', 1) = split_part(r.name, ':', 1))::UBIGINT
        FROM firsts f JOIN regions r ON r.kind = 'text' AND f.ip >= r.start_addr
             AND f.ip - r.start_addr < r.bytes
             LEFT JOIN code c ON c.ip = f.ip AND c.process = r.process
        GROUP BY f.ip, r.name, r.build_id ORDER BY count(*) DESC, 1 LIMIT 1
        """
    )
    if not found:
        return ""
    ip, name, path, line, base = found[0]
    module = str(name).partition(":")[0]
    if line and not module.startswith(LIBRARIES):
        return f"{str(path).rpartition('/')[2]}:{line}"
    return "" if module.startswith(LIBRARIES) else f"{module}+{int(ip) - int(base):#x}"
