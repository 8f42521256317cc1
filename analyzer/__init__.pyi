from .analysis import analyze_trace as analyze_trace
from .analyzed import Analysis as Analysis
from .communication.combining import Communication as Communication
from .communication.counter import CommunicationCounter as CommunicationCounter
from .communication.matrix import (
    RULES as RULES,
    communication_matrix as communication_matrix,
    measure as measure,
)
from .communication.transfers import transfers_of as transfers_of
from .memory.elsewhere import counted_by_pairs as counted_by_pairs, pages_by_pairs as pages_by_pairs
from .memory.false_sharing import FalseSharing as FalseSharing, false_sharing as false_sharing
from .memory.line_costs import LineCost as LineCost, line_costs as line_costs
from .memory.local_shares import LocalShares as LocalShares
from .memory.own_code import call_of as call_of, own_code as own_code
from .memory.page_counting import count_pages as count_pages, page_accesses as page_accesses
from .memory.page_counts import BY_PAIRS as BY_PAIRS, RESTACKED as RESTACKED, PageCounts as PageCounts
from .memory.regions import RegionUse as RegionUse, region_uses as region_uses
from .messages import (
    LINE_BYTES as LINE_BYTES,
    MessageCounter as MessageCounter,
    RankMessages as RankMessages,
    rank_messages as rank_messages,
)
from .misses import expected_misses as expected_misses
from .notes import (
    FEW_MISSES as FEW_MISSES,
    RECORDED_APART as RECORDED_APART,
    UNSEEN_BETWEEN as UNSEEN_BETWEEN,
    first_touches_only as first_touches_only,
)
from .partners import pairs_kept as pairs_kept
from .phase_communication import communication_by_phase as communication_by_phase
from .policy_inputs import (
    counter_totals as counter_totals,
    dino_classes as dino_classes,
    dynamic_roofline as dynamic_roofline,
    exclusivity as exclusivity,
    misses_per_kilo_instructions as misses_per_kilo_instructions,
    node_use as node_use,
    process_exclusivity as process_exclusivity,
    trace_roofline as trace_roofline,
)
from .report.advice import (
    Advice as Advice,
    Advised as Advised,
    Change as Change,
    advice_document as advice_document,
)
from .report.code_lines import (
    lines_document as lines_document,
    region_titles as region_titles,
    show_lines as show_lines,
)
from .report.document import analysis_document as analysis_document, policy_document as policy_document
from .report.figures.messages import (
    message_document as message_document,
    message_sentences as message_sentences,
)
from .report.figures.methods import MethodCost as MethodCost
from .report.files import (
    recorded_nodes as recorded_nodes,
    write_files as write_files,
    write_tracks as write_tracks,
)
from .report.page import write_report as write_report
from .report.plan_view import ANOTHER_PROGRAM as ANOTHER_PROGRAM
from .report.runs import runs_document as runs_document, runs_sentences as runs_sentences
from .report.terminal import show_analysis as show_analysis
from .report.units import in_bytes as in_bytes, in_time as in_time
from .roles import Roles as Roles, thread_roles as thread_roles
from .runs.merging import compare_traces as compare_traces, merge_analyses as merge_analyses
from .runs.stability import (
    RunAgreement as RunAgreement,
    compare_runs as compare_runs,
    match_threads as match_threads,
)
from .runs.users import same_users as same_users
from .samples.cache_sizes import (
    CacheSizes as CacheSizes,
    cache_sizes as cache_sizes,
    levels_at as levels_at,
    modelled_sizes as modelled_sizes,
)
from .samples.trace_samples import TraceSamples as TraceSamples
from .summary import placement_summary as placement_summary
from .timeline.activity import (
    activity as activity,
    living_together as living_together,
    together as together,
)
from .timeline.changes import change_points as change_points, share_changes as share_changes
from .timeline.looks import looked_at as looked_at
from .timeline.phases import (
    Phase as Phase,
    access_load_vector as access_load_vector,
    describe_phases as describe_phases,
    divide_phases as divide_phases,
)
from .timeline.timeline import (
    Timeline as Timeline,
    access_timeline as access_timeline,
    cycles_to_ns as cycles_to_ns,
    remove_outliers as remove_outliers,
)
