"""Record one run of a program: the machine, the trace, the backends and the perf.data decoder.

The public names are loaded when first used, so that a command pays only for what it needs.
"""

from typing import TYPE_CHECKING

from numaplan.common.lazy import lazy_exports

if TYPE_CHECKING:
    from numaplan.profiler.identity import Identity as Identity
    from numaplan.profiler.identity import ModuleRecord as ModuleRecord
    from numaplan.profiler.identity import ProcessRecord as ProcessRecord
    from numaplan.profiler.identity import RegionRecord as RegionRecord
    from numaplan.profiler.identity import StaticObject as StaticObject
    from numaplan.profiler.identity import ThreadRecord as ThreadRecord
    from numaplan.profiler.identity import build_id_of as build_id_of
    from numaplan.profiler.identity import prepare as prepare
    from numaplan.profiler.identity import read_identity as read_identity
    from numaplan.profiler.identity import static_objects as static_objects
    from numaplan.profiler.machine import Core as Core
    from numaplan.profiler.machine import Machine as Machine
    from numaplan.profiler.machine import Node as Node
    from numaplan.profiler.perfdata import Decoded as Decoded
    from numaplan.profiler.perfdata import PerfDataError as PerfDataError
    from numaplan.profiler.perfdata import StreamDecoder as StreamDecoder
    from numaplan.profiler.perfdata import decode_perf as decode_perf
    from numaplan.profiler.recording import RecordOptions as RecordOptions
    from numaplan.profiler.recording import RecordSummary as RecordSummary
    from numaplan.profiler.recording import record as record
    from numaplan.profiler.trace import Trace as Trace
    from numaplan.profiler.trace import TraceWriter as TraceWriter
    from numaplan.profiler.trace.schema import EVENT_CODE as EVENT_CODE
    from numaplan.profiler.trace.schema import EVENTS as EVENTS
    from numaplan.profiler.trace.schema import LEVEL_CODE as LEVEL_CODE
    from numaplan.profiler.trace.schema import LEVELS as LEVELS

_WHERE = {
    "Identity": "identity",
    "ModuleRecord": "identity",
    "ProcessRecord": "identity",
    "RegionRecord": "identity",
    "StaticObject": "identity",
    "ThreadRecord": "identity",
    "build_id_of": "identity",
    "prepare": "identity",
    "read_identity": "identity",
    "static_objects": "identity",
    "Core": "machine",
    "Machine": "machine",
    "Node": "machine",
    "Decoded": "perfdata",
    "PerfDataError": "perfdata",
    "StreamDecoder": "perfdata",
    "decode_perf": "perfdata",
    "RecordOptions": "recording",
    "RecordSummary": "recording",
    "record": "recording",
    "Trace": "trace",
    "TraceWriter": "trace",
    "EVENTS": "trace.schema",
    "EVENT_CODE": "trace.schema",
    "LEVELS": "trace.schema",
    "LEVEL_CODE": "trace.schema",
}

__all__ = sorted(_WHERE)
__getattr__ = lazy_exports(__name__, _WHERE)
