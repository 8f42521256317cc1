"""An analysis as a JSON document (numaplan/analysis/1) and as CSV files."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numaplan.analyzer.analysis import Analysis
from numaplan.analyzer.regions import RegionUse
from numaplan.analyzer.sharing import FalseSharing
from numaplan.common import UsageError, write_document

Matrix = NDArray[np.float64]

SCHEMA = "numaplan/analysis/1"


def analysis_document(
    analysis: Analysis,
    regions: Sequence[RegionUse],
    lines: Sequence[FalseSharing],
    sentences: Sequence[str],
    phase_comm: Sequence[Matrix] = (),
) -> dict[str, Any]:
    """The document as plain values. Times are ns from the start of the recording.

    phase_comm: the (N, N) matrix of each phase, if the document shall hold them.
    """
    line = analysis.timeline
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "threads": [thread.path for thread in analysis.threads],
        "processes": [thread.process for thread in analysis.threads],
        "comm": analysis.comm.tolist(),
        "standard_error": analysis.standard_error.tolist(),
        "loads": analysis.loads.tolist(),
        "load_source": analysis.load_source,
        "accesses": [thread.samples for thread in analysis.threads],
        "dram_accesses": [thread.dram_samples for thread in analysis.threads],
        "phases": [
            {"start_ns": start, "end_ns": end, "weight": phase.weight, "loads": phase.loads.tolist()}
            for phase, (start, end) in zip(analysis.phases, phase_times(analysis), strict=True)
        ],
        "changes_ns": [line.start_ns + place * line.slice_ns for place in analysis.changes],
        "partner_changes_ns": [line.start_ns + place * line.slice_ns for place in analysis.partner_changes],
        "slice_ns": line.slice_ns,
        "confidence": analysis.confidence,
        "events": analysis.events,
        "samples": analysis.samples,
        "shared_samples": analysis.shared_samples,
        "period": analysis.period,
        "layers": analysis.layers,
        "summary": list(sentences),
        "notes": list(analysis.notes),
        "regions": [asdict(region) for region in regions],
        "false_sharing": [asdict(shared) for shared in lines],
    }
    for phase, comm in zip(document["phases"], phase_comm, strict=False):
        phase["comm"] = comm.tolist()
    return document


def phase_times(analysis: Analysis) -> list[tuple[int, int]]:
    """(start, end) of each phase in ns."""
    line = analysis.timeline
    return [
        (line.start_ns + phase.start * line.slice_ns, line.start_ns + phase.end * line.slice_ns)
        for phase in analysis.phases
    ]


def write_csv_files(analysis: Analysis, folder: Path, phase_comm: Sequence[Matrix] = ()) -> list[Path]:
    """comm.csv (N rows of N), loads.csv (one a row), phases.csv and timeline.csv (with a header line).

    phase_comm: matrices of the phases, written to comm-phase-1.csv and so on.

    Raises UsageError when the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror or error}", "name another folder") from error
    paths = [thread.path for thread in analysis.threads]
    names = [f"load {path}" for path in paths]
    line = analysis.timeline
    phases = (
        (start, end, phase.weight, *phase.loads.tolist())
        for phase, (start, end) in zip(analysis.phases, phase_times(analysis), strict=True)
    )
    slices = (
        (start, *cells)
        for start, cells in zip(line.slice_starts().tolist(), line.per_thread.tolist(), strict=True)
    )
    files: dict[str, tuple[Sequence[str], Iterable[Sequence[float]]]] = {
        "comm.csv": ((), analysis.comm.tolist()),
        "loads.csv": ((), ([value] for value in analysis.loads.tolist())),
        "phases.csv": (("start_ns", "end_ns", "weight", *names), phases),
        "timeline.csv": (("start_ns", *(f"accesses {path}" for path in paths)), slices),
    }
    for number, comm in enumerate(phase_comm, start=1):
        files[f"comm-phase-{number}.csv"] = ((), comm.tolist())
    written = []
    for name, (header, rows) in files.items():
        write_document(folder / name, _csv(header, rows))
        written.append(folder / name)
    return written


def _csv(header: Sequence[str], rows: Iterable[Sequence[float]]) -> bytes:
    lines = [",".join(header)] if header else []
    lines += [",".join(f"{value:.10g}" for value in row) for row in rows]
    return ("\n".join(lines) + "\n").encode()
