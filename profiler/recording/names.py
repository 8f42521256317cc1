"""Names that people wrote, put into a trace: the programs are still there when it is made."""

import bisect
import time
from collections.abc import Iterator

from ..backends.base import Progress
from ..debug.region_names import SourceNames
from ..identity.records import Identity
from ..trace.writer import TraceWriter

MOST_CODE = 1 << 16  # instructions of which lines are looked up, those with the most samples first
_EXECUTABLE = 1
_TELL_S = 0.1


def add_names(writer: TraceWriter, identity: Identity, progress: Progress, *, ask_server: bool) -> None:
    """Write the tables of names for what is in the trace by now; regions are numbered as in the identity.

    ask_server: for debug information that is not on this machine.
    """
    with SourceNames(identity, ask_server=ask_server) as names:
        tables = names.name_regions(identity.regions)
        writer.add_rows("names", tables.names)
        writer.add_rows("fields", tables.fields)
        writer.add_rows("chains", tables.chains)
        writer.add_rows("code", _code(writer, identity, names, progress))


def _code(
    writer: TraceWriter, identity: Identity, names: SourceNames, progress: Progress
) -> Iterator[tuple[object, ...]]:
    modules: dict[str, list[tuple[int, int, int, str]]] = {}
    for module in identity.modules:
        modules.setdefault(module.process, []).extend(
            (segment.start_addr, segment.start_addr + segment.bytes, module.bias, module.path)
            for segment in module.segments
            if segment.flags & _EXECUTABLE
        )
    for spans in modules.values():
        spans.sort()
    starts = {process: [span[0] for span in spans] for process, spans in modules.items()}
    asked, told = writer.instructions(MOST_CODE), 0.0
    for number, (process, ip) in enumerate(asked):
        if time.monotonic() >= told:
            told = time.monotonic() + _TELL_S
            progress("looking up names", number / len(asked))
        at = bisect.bisect_right(starts.get(process, []), ip) - 1
        if at >= 0 and ip < modules[process][at][1]:
            _, _, bias, path = modules[process][at]
            function, file, line = names.line(path, ip - bias)
            if line:
                yield process, ip, function, file, line
