"""What `nprof export` writes: tables, or the trace as a document for another tool."""

from collections.abc import Callable
from pathlib import Path

from numaplan.common import UsageError, check_output, output_folder, write_document

from ..trace.reader import Trace
from ..trace.schema import TABLES
from .perfetto import perfetto
from .pprof import pprof
from .speedscope import speedscope
from .tables import OPTIONS, export_tables

# Name -> the file's, and what makes it.
DOCUMENTS: dict[str, tuple[str, Callable[[Trace], bytes]]] = {
    "perfetto": ("trace.pftrace", perfetto),
    "speedscope": ("trace.speedscope.json", speedscope),
    "pprof": ("trace.pb.gz", pprof),
}
FORMATS = (*OPTIONS, *DOCUMENTS)


def export_trace(trace: Trace, folder: Path, kind: str) -> list[Path]:
    """Write the files of a format into `folder` (made when missing), for which the trace was opened.

    Raises UsageError for an unknown format, when the folder cannot be written, or holds the trace under the
    name of one of the files.
    """
    if kind not in FORMATS:
        raise UsageError(f"--format {kind}", f"choose from {', '.join(FORMATS)}")
    names = [f"{table}.{kind}" for table in TABLES] if kind in OPTIONS else [DOCUMENTS[kind][0]]
    with output_folder(folder) as written:
        for name in names:
            check_output(folder / name, [trace.path])
        if kind in OPTIONS:
            return export_tables(trace, folder, kind, written)
        name, content_of = DOCUMENTS[kind]
        write_document(folder / name, content_of(trace))
    return [folder / name]


def write_perfetto(trace: Trace, folder: Path, spans: dict[str, list[tuple[int, int, str]]]) -> Path:
    """The trace for Perfetto with further tracks: (from, to, name) in ns, by the track's name."""
    target = folder / DOCUMENTS["perfetto"][0]
    with output_folder(folder):
        write_document(target, perfetto(trace, spans))
    return target
