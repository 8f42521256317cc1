"""What was found, written: the JSON document, CSV and Parquet files, a terminal view and one HTML page."""

from numaplan.analyzer.report.document import analysis_document
from numaplan.analyzer.report.files import write_files
from numaplan.analyzer.report.method_figures import MethodCost
from numaplan.analyzer.report.page import write_report
from numaplan.analyzer.report.policy import policy_document
from numaplan.analyzer.report.runs import runs_document, runs_sentences
from numaplan.analyzer.report.terminal import show_analysis

__all__ = [
    "MethodCost",
    "analysis_document",
    "policy_document",
    "runs_document",
    "runs_sentences",
    "show_analysis",
    "write_files",
    "write_report",
]
