"""The perf.data decoder: files of `perf record`, of any version, into arrays."""

from numaplan.profiler.perfdata.decoded import Decoded, decode_perf
from numaplan.profiler.perfdata.errors import PerfDataError
from numaplan.profiler.perfdata.records import Mapping, ThreadSpan

__all__ = ["Decoded", "Mapping", "PerfDataError", "ThreadSpan", "decode_perf"]
