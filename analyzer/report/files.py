"""An analysis as files for other tools: matrices and tables in CSV or Parquet, graphs in GraphML."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from numaplan.common import UsageError, atomic_output, output_folder, printable, write_document
from numaplan.profiler import Trace, write_perfetto

from ..analyzed import Analysis
from ..messages import RankMessages
from ..timeline.phases import Phase
from .document import phase_times, stretches as stretch_times

if TYPE_CHECKING:
    import networkx as nx

Matrix = NDArray[np.float64]
Column = NDArray[np.float64] | NDArray[np.int64]

NOWHERE: Mapping[int, int] = MappingProxyType({})
FORMATS = ("csv", "parquet", "graphml")


@dataclass(frozen=True)
class Table:
    """Named columns, equally long; headed: whether they are named in CSV too (matrices are bare there)."""

    names: Sequence[str]
    columns: Sequence[Column]
    headed: bool


def write_files(
    analysis: Analysis,
    folder: Path,
    phase_comm: Sequence[Matrix] = (),
    stretch_comm: Sequence[Matrix] = (),
    *,
    messages: RankMessages | None = None,
    kind: str = "csv",
    nodes: Mapping[int, int] = NOWHERE,
) -> list[Path]:
    """comm (N rows of N), loads (one a row), phases and timeline; in CSV the first two without a header line.

    phase_comm: matrices of the phases, written to comm-phase-1 and so on; stretch_comm: of the stretches
    between changes, to comm-stretch-1 and so on, beside stretches; messages: between ranks, a pair a row, to
    messages; kind: one of FORMATS; `graphml` holds the
    matrices alone, each as a graph (`Analysis.graph`), with the loads on its vertices and, as `node`, those
    of `nodes`, by number of the thread.
    Raises UsageError for another kind, or when the folder cannot be made or written.
    """
    if kind not in FORMATS:
        raise UsageError(f"no format {kind!r}", f"choose from {', '.join(FORMATS)}")
    parts = {
        f"comm-{part}-{at}": comm
        for part, matrices in (("phase", phase_comm), ("stretch", stretch_comm))
        for at, comm in enumerate(matrices, 1)
    }
    writers: dict[str, Callable[[Path], None]]
    if kind == "graphml":
        graphs = {"comm": analysis.graph(), **{name: analysis.graph(comm) for name, comm in parts.items()}}
        on = {row: nodes[one.thread] for row, one in enumerate(analysis.threads) if one.thread in nodes}
        for graph in graphs.values():
            for row, node in on.items():
                graph.nodes[row]["node"] = node
        writers = {name: partial(_write_graph, graph) for name, graph in graphs.items()}
    else:
        write = _write_csv if kind == "csv" else _write_parquet
        tables = _tables(analysis, parts, stretches=bool(stretch_comm))
        if messages is not None:
            pairs: list[Column] = [messages.rank, messages.peer, messages.bytes, messages.count]
            tables["messages"] = Table(["rank", "peer", "bytes", "messages"], pairs, headed=True)
        writers = {name: partial(write, table) for name, table in tables.items()}
    with output_folder(folder, "name another folder") as written:
        for name, writer in writers.items():
            path = folder / f"{name}.{kind}"
            writer(path)
            written.append(path)
    return written


def recorded_nodes(trace: Trace) -> dict[int, int]:
    """The node that most samples of each thread were taken on, where that is known."""
    rows = trace.rows(
        "SELECT thread, node, count(*) AS n FROM samples WHERE thread >= 0 AND node >= 0"
        " GROUP BY thread, node ORDER BY n, node DESC"
    )
    return {int(thread): int(node) for thread, node, _ in rows}


def write_tracks(trace: Trace, analysis: Analysis, folder: Path) -> Path:
    """The trace for Perfetto, with its phases and the stretches between changes as tracks.

    Raises UsageError when the folder cannot be made or written.
    """
    phases = phase_times(analysis)
    between = [span for _, span in stretch_times(analysis)]
    named = {"phases": ("phase", phases), "stretches between changes": ("stretch", between)}
    spans = {
        track: [(start, end, f"{word} {number}") for number, (start, end) in enumerate(_apart(found), 1)]
        for track, (word, found) in named.items()
    }
    return write_perfetto(trace, folder, spans)


def _apart(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that overlap by a slice, each until the next one begins."""
    starts = [start for start, _ in spans[1:]]
    return [
        (start, min(end, after)) for (start, end), after in zip(spans, [*starts, spans[-1][1]], strict=True)
    ]


def _tables(analysis: Analysis, parts: dict[str, Matrix], *, stretches: bool) -> dict[str, Table]:
    names = analysis.names
    line = analysis.timeline
    tables = {
        "comm": _matrix(names, analysis.comm),
        "loads": Table(["load"], [analysis.loads], headed=False),
        "phases": _parts(names, list(zip(analysis.phases, phase_times(analysis), strict=True))),
        "timeline": Table(
            ["start_ns", *(f"accesses {name}" for name in names)],
            [line.slice_starts(), *line.per_thread.T],
            headed=True,
        ),
    }
    if stretches:
        tables["stretches"] = _parts(names, stretch_times(analysis))
    return tables | {name: _matrix(names, comm) for name, comm in parts.items()}


def _parts(names: Sequence[str], parts: Sequence[tuple[Phase, tuple[int, int]]]) -> Table:
    times = np.array([bounds for _, bounds in parts], np.int64).reshape(-1, 2)
    loads = np.array([part.loads for part, _ in parts]).reshape(-1, len(names))
    head = ["start_ns", "end_ns", "weight", *(f"load {name}" for name in names)]
    return Table(head, [*times.T, np.array([part.weight for part, _ in parts]), *loads.T], headed=True)


def _matrix(names: Sequence[str], values: Matrix) -> Table:
    return Table(names, list(values.T), headed=False)


def _write_csv(table: Table, path: Path) -> None:
    lines = [",".join(table.names)] if table.headed else []
    columns = [column.tolist() for column in table.columns]
    lines += [",".join(f"{value:.10g}" for value in row) for row in zip(*columns, strict=True)]
    write_document(path, ("\n".join(lines) + "\n").encode())


def _write_parquet(table: Table, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = pa.table([pa.array(column) for column in table.columns], names=list(table.names))
    with atomic_output(path) as temporary:
        pq.write_table(content, temporary, compression="zstd")


def _write_graph(graph: "nx.Graph", path: Path) -> None:
    from networkx import write_graphml_xml

    for _, about in graph.nodes(data=True):
        about.update({key: printable(value) for key, value in about.items() if isinstance(value, str)})
    with atomic_output(path) as temporary:
        write_graphml_xml(graph, temporary)
