"""What a trace says about threads and memory: arrays in, arrays out.

The public names are loaded when first used, so that a command pays only for what it needs.
"""

from typing import TYPE_CHECKING

from numaplan.common.lazy import lazy_exports

if TYPE_CHECKING:
    from numaplan.analyzer.analysis import Analysis as Analysis
    from numaplan.analyzer.analysis import ThreadInfo as ThreadInfo
    from numaplan.analyzer.analysis import analyze_trace as analyze_trace
    from numaplan.analyzer.changes import change_points as change_points
    from numaplan.analyzer.changes import share_changes as share_changes
    from numaplan.analyzer.combining import Communication as Communication
    from numaplan.analyzer.communication import RULES as RULES
    from numaplan.analyzer.communication import communication_matrix as communication_matrix
    from numaplan.analyzer.communication import measure as measure
    from numaplan.analyzer.counter import CommunicationCounter as CommunicationCounter
    from numaplan.analyzer.merging import Difference as Difference
    from numaplan.analyzer.merging import compare_traces as compare_traces
    from numaplan.analyzer.merging import merge_analyses as merge_analyses
    from numaplan.analyzer.misses import ExpectedMisses as ExpectedMisses
    from numaplan.analyzer.misses import expected_misses as expected_misses
    from numaplan.analyzer.page_counts import count_pages as count_pages
    from numaplan.analyzer.pages import PageAccesses as PageAccesses
    from numaplan.analyzer.pages import page_accesses as page_accesses
    from numaplan.analyzer.performance import NodeUse as NodeUse
    from numaplan.analyzer.performance import counter_totals as counter_totals
    from numaplan.analyzer.performance import dino_classes as dino_classes
    from numaplan.analyzer.performance import dynamic_roofline as dynamic_roofline
    from numaplan.analyzer.performance import exclusivity as exclusivity
    from numaplan.analyzer.performance import misses_per_kilo_instructions as misses_per_kilo_instructions
    from numaplan.analyzer.performance import node_use as node_use
    from numaplan.analyzer.performance import process_exclusivity as process_exclusivity
    from numaplan.analyzer.performance import trace_roofline as trace_roofline
    from numaplan.analyzer.phase_communication import communication_by_phase as communication_by_phase
    from numaplan.analyzer.phases import Phase as Phase
    from numaplan.analyzer.phases import access_load_vector as access_load_vector
    from numaplan.analyzer.phases import describe_phases as describe_phases
    from numaplan.analyzer.phases import divide_phases as divide_phases
    from numaplan.analyzer.regions import RegionUse as RegionUse
    from numaplan.analyzer.regions import region_uses as region_uses
    from numaplan.analyzer.report.units import in_bytes as in_bytes
    from numaplan.analyzer.samples import TraceSamples as TraceSamples
    from numaplan.analyzer.sharing import FalseSharing as FalseSharing
    from numaplan.analyzer.sharing import false_sharing as false_sharing
    from numaplan.analyzer.stability import RunAgreement as RunAgreement
    from numaplan.analyzer.stability import compare_runs as compare_runs
    from numaplan.analyzer.stability import match_threads as match_threads
    from numaplan.analyzer.summary import placement_summary as placement_summary
    from numaplan.analyzer.timeline import Timeline as Timeline
    from numaplan.analyzer.timeline import access_timeline as access_timeline
    from numaplan.analyzer.timeline import cycles_to_ns as cycles_to_ns
    from numaplan.analyzer.timeline import remove_outliers as remove_outliers

_WHERE = {
    "Analysis": "analysis",
    "ThreadInfo": "analysis",
    "analyze_trace": "analysis",
    "change_points": "changes",
    "share_changes": "changes",
    "RULES": "communication",
    "communication_matrix": "communication",
    "measure": "communication",
    "Communication": "combining",
    "CommunicationCounter": "counter",
    "Difference": "merging",
    "compare_traces": "merging",
    "merge_analyses": "merging",
    "ExpectedMisses": "misses",
    "expected_misses": "misses",
    "count_pages": "page_counts",
    "PageAccesses": "pages",
    "page_accesses": "pages",
    "NodeUse": "performance",
    "counter_totals": "performance",
    "dino_classes": "performance",
    "dynamic_roofline": "performance",
    "exclusivity": "performance",
    "misses_per_kilo_instructions": "performance",
    "node_use": "performance",
    "process_exclusivity": "performance",
    "trace_roofline": "performance",
    "communication_by_phase": "phase_communication",
    "Phase": "phases",
    "access_load_vector": "phases",
    "describe_phases": "phases",
    "divide_phases": "phases",
    "RegionUse": "regions",
    "region_uses": "regions",
    "in_bytes": "report.units",
    "TraceSamples": "samples",
    "FalseSharing": "sharing",
    "false_sharing": "sharing",
    "RunAgreement": "stability",
    "compare_runs": "stability",
    "match_threads": "stability",
    "placement_summary": "summary",
    "Timeline": "timeline",
    "access_timeline": "timeline",
    "cycles_to_ns": "timeline",
    "remove_outliers": "timeline",
}

__all__ = sorted(_WHERE)
__getattr__ = lazy_exports(__name__, _WHERE)
