"""Record one run of a program: the machine, the trace, the backends and the perf.data decoder.

The public names are loaded when first used, so that a command pays only for what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numaplan.profiler.machine import Core as Core
    from numaplan.profiler.machine import Machine as Machine
    from numaplan.profiler.machine import Node as Node
    from numaplan.profiler.trace import EVENT_CODE as EVENT_CODE
    from numaplan.profiler.trace import EVENTS as EVENTS
    from numaplan.profiler.trace import LEVEL_CODE as LEVEL_CODE
    from numaplan.profiler.trace import LEVELS as LEVELS
    from numaplan.profiler.trace import Trace as Trace
    from numaplan.profiler.trace import TraceWriter as TraceWriter

_WHERE = {
    "Core": "machine",
    "Machine": "machine",
    "Node": "machine",
    "EVENTS": "trace.schema",
    "EVENT_CODE": "trace.schema",
    "LEVELS": "trace.schema",
    "LEVEL_CODE": "trace.schema",
    "Trace": "trace",
    "TraceWriter": "trace",
}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
