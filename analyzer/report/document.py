"""An analysis as a JSON document (numaplan/analysis/1)."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numaplan.profiler import Trace

from ..analyzed import Analysis
from ..memory.false_sharing import FalseSharing
from ..memory.regions import RegionUse
from ..policy_inputs import (
    dino_classes,
    misses_per_kilo_instructions,
    node_use,
    process_exclusivity,
    trace_roofline,
)
from ..timeline.phases import Phase, describe_phases

Matrix = NDArray[np.float64]

SCHEMA = "numaplan/analysis/1"
_SOURCE = ("name", "type", "path", "line", "function")


def analysis_document(
    analysis: Analysis,
    regions: Sequence[RegionUse],
    lines: Sequence[FalseSharing],
    sentences: Sequence[str],
    phase_comm: Sequence[Matrix] = (),
    stretch_comm: Sequence[Matrix] = (),
) -> dict[str, Any]:
    """The document as plain values. Times are ns from the start of the recording; where `clock` is `accesses`
    (emulation under its fair schedule) that is how many accesses came before.

    phase_comm, stretch_comm: the (N, N) matrix of each phase by Algorithm 1 and of each stretch between
    changes, if the document shall hold them.
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
        "expected_dram_accesses": analysis.misses.tolist(),
        "phases": [
            {"start_ns": start, "end_ns": end, "weight": phase.weight, "loads": phase.loads.tolist()}
            for phase, (start, end) in zip(analysis.phases, phase_times(analysis), strict=True)
        ],
        "stretches": [
            {"start_ns": start, "end_ns": end, "weight": stretch.weight, "loads": stretch.loads.tolist()}
            for stretch, (start, end) in stretches(analysis)
        ],
        "changes_ns": [line.start_ns + place * line.slice_ns for place in analysis.changes],
        "partner_changes_ns": [line.start_ns + place * line.slice_ns for place in analysis.partner_changes],
        "slice_ns": line.slice_ns,
        "clock": "accesses" if line.in_accesses else "time",
        "confidence": analysis.confidence,
        "events": analysis.events,
        "left_out": analysis.left_out,
        "samples": analysis.samples,
        "shared_samples": analysis.shared_samples,
        "period": analysis.period,
        "layers": analysis.layers,
        "local_share": analysis.local.accesses if analysis.local else -1.0,
        "local_memory_share": analysis.local.memory if analysis.local else -1.0,
        "summary": list(sentences),
        "notes": list(analysis.notes),
        "regions": [_region(region) for region in regions],
        "false_sharing": [asdict(shared) for shared in lines],
    }
    for parts, matrices in (("phases", phase_comm), ("stretches", stretch_comm)):
        for part, comm in zip(document[parts], matrices, strict=False):
            part["comm"] = comm.tolist()
    return document


def policy_document(trace: Trace) -> dict[str, Any]:
    """Key `policy_inputs`: latency by thread and node, MPKI, exclusivity, 3DyRM; -1: not known."""
    intensity, performance, relative = trace_roofline(trace)
    use = node_use(trace)
    mpki = misses_per_kilo_instructions(trace)
    return {
        "policy_inputs": {
            "nodes": use.nodes,
            "samples_on_node": use.samples.tolist(),
            "latency": use.latency.tolist(),
            "node_latency": use.node_latency.tolist(),
            "mpki": mpki.tolist(),
            "dino_class": dino_classes(mpki),
            "exclusivity": process_exclusivity(trace),
            "roofline": {
                "intensity": intensity.tolist(),
                "performance": performance.tolist(),
                "relative": relative.tolist(),
            },
        }
    }


def phase_times(analysis: Analysis) -> list[tuple[int, int]]:
    """(start, end) of each phase in ns."""
    return [_times(analysis, phase) for phase in analysis.phases]


def stretches(analysis: Analysis) -> list[tuple[Phase, tuple[int, int]]]:
    """Each stretch between changes as a phase, and its (start, end) in ns."""
    found = describe_phases(analysis.timeline.per_thread, analysis.stretches)
    return [(stretch, _times(analysis, stretch)) for stretch in found]


def _times(analysis: Analysis, phase: Phase) -> tuple[int, int]:
    line = analysis.timeline
    return line.start_ns + phase.start * line.slice_ns, line.start_ns + phase.end * line.slice_ns


def _region(region: RegionUse) -> dict[str, Any]:
    """A region; `source`: what the source calls it, null where that is not known."""
    source = region.source
    named = {name: getattr(source, name) for name in _SOURCE} if source else None
    return {**asdict(region), "title": region.title, "source": named}
