"""Code that people wrote: of what a library does, the line that called it, where calls were recorded."""

from numaplan.profiler import LIBRARY_FOLDERS, LIBRARY_PARTS, Trace


def own_code(trace: Trace) -> str:
    """Common tables of a recursive query: `own_code` has the lines of the program's own code by process and
    ip, `callers` by `call` those of the innermost call in it.
    """
    library = " OR ".join(
        [f"starts_with(path, '{folder}')" for folder in LIBRARY_FOLDERS]
        + [f"contains(path, '{part}')" for part in LIBRARY_PARTS]
    )
    calls = "calls" if trace.has("call") else "calls WHERE false"
    return f"""
        own_code AS (SELECT process, ip, path, line, function FROM code WHERE NOT ({library})),
        above AS (
            SELECT call, call AS at FROM {calls}
            UNION ALL
            SELECT above.call, c.caller FROM above JOIN calls c ON above.at = c.call
                   LEFT JOIN own_code o ON o.process = c.process AND o.ip = c.ip
            WHERE o.ip IS NULL AND c.caller >= 0),
        callers AS (
            SELECT above.call, o.path, o.line, o.function FROM above JOIN calls c ON above.at = c.call
                   JOIN own_code o ON o.process = c.process AND o.ip = c.ip)"""


def call_of(trace: Trace) -> str:
    """The column of samples that has the call; of traces without calls -1."""
    return "call" if trace.has("call") else "-1"
