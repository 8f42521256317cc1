"""The perf.data decoder: files of `perf record`, of any version, into arrays.

The names are loaded when first used.
"""

from typing import TYPE_CHECKING

from numaplan.common.lazy import lazy_exports

if TYPE_CHECKING:
    from numaplan.profiler.perfdata.decoded import Decoded as Decoded
    from numaplan.profiler.perfdata.decoded import decode_perf as decode_perf
    from numaplan.profiler.perfdata.errors import PerfDataError as PerfDataError
    from numaplan.profiler.perfdata.records import Mapping as Mapping
    from numaplan.profiler.perfdata.records import ThreadSpan as ThreadSpan
    from numaplan.profiler.perfdata.stream import Piece as Piece
    from numaplan.profiler.perfdata.stream import StreamDecoder as StreamDecoder

_WHERE = {
    "Decoded": "decoded",
    "decode_perf": "decoded",
    "PerfDataError": "errors",
    "Mapping": "records",
    "ThreadSpan": "records",
    "Piece": "stream",
    "StreamDecoder": "stream",
}

__all__ = sorted(_WHERE)
__getattr__ = lazy_exports(__name__, _WHERE)
