"""The trace file (one DuckDB database) and its tables."""

from numaplan.profiler.trace.reader import Trace
from numaplan.profiler.trace.schema import EVENT_CODE, EVENTS, LEVEL_CODE, LEVELS
from numaplan.profiler.trace.writer import TraceWriter

__all__ = ["EVENTS", "EVENT_CODE", "LEVELS", "LEVEL_CODE", "Trace", "TraceWriter"]
