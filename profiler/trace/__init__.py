"""The trace file (one DuckDB database) and its tables; names are loaded when first used."""

from typing import TYPE_CHECKING

from numaplan.common.lazy import lazy_exports

if TYPE_CHECKING:
    from numaplan.profiler.trace.reader import Trace as Trace
    from numaplan.profiler.trace.schema import EVENT_CODE as EVENT_CODE
    from numaplan.profiler.trace.schema import EVENTS as EVENTS
    from numaplan.profiler.trace.schema import LEVEL_CODE as LEVEL_CODE
    from numaplan.profiler.trace.schema import LEVELS as LEVELS
    from numaplan.profiler.trace.writer import TraceWriter as TraceWriter

_WHERE = {
    "Trace": "reader",
    "EVENTS": "schema",
    "EVENT_CODE": "schema",
    "LEVELS": "schema",
    "LEVEL_CODE": "schema",
    "TraceWriter": "writer",
}

__all__ = sorted(_WHERE)
__getattr__ = lazy_exports(__name__, _WHERE)
