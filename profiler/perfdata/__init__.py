"""The perf.data decoder: files of `perf record`, of any version, into arrays."""

from numaplan.profiler.perfdata.decoded import Decoded, decode_perf
from numaplan.profiler.perfdata.errors import PerfDataError
from numaplan.profiler.perfdata.records import Mapping, ThreadSpan
from numaplan.profiler.perfdata.stream import Piece, StreamDecoder

__all__ = ["Decoded", "Mapping", "PerfDataError", "Piece", "StreamDecoder", "ThreadSpan", "decode_perf"]
