"""`nmap analyze`: what a trace says and what to do, on the terminal and as files."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from numaplan.common import Argument, Json, Option, UsageError, check_named_once, print_json

from .advice import AdviceCommand
from .workload import say

if TYPE_CHECKING:
    from numaplan.analyzer import Analysis, RunAgreement
    from numaplan.profiler import Trace

_FORMATS = ("csv", "parquet", "graphml", "perfetto")
_MOST_MS = 1e9  # eleven days

Slice = Annotated[
    float,
    Option(
        "--slice",
        help="Width of the timeline's slices in ms, or in million accesses for emulated runs (0: automatic).",
        least=0,
        most=_MOST_MS,
    ),
]


class AnalyzeCommand(AdviceCommand, frozen=True, kw_only=True):
    """Show who communicates with whom, how load is spread, how memory is shared, and what to do first.

    For several runs of one program it says whether threads keep their roles from run to run, and shows the
    mean of the runs if they do.

    Example: nmap analyze trace.db --to analysis/
    """

    traces: Annotated[
        list[Path], Argument("TRACE", help="Traces: several runs of one program, or a job's ranks.")
    ]
    end: Annotated[str, Option("--until", metavar="TIME", help="Leave out what comes after.")] = ""
    as_json: Json = False
    to: Annotated[
        Path | None, Option(help="Folder for comm.csv, loads.csv, phases.csv and timeline.csv.")
    ] = None
    file_format: Annotated[
        str, Option("--format", help="Format of the files in --to: csv, parquet, graphml or perfetto.")
    ] = "csv"
    slice_ms: Slice = 0.0
    per_phase: Annotated[
        bool,
        Option(
            help="Add the matrix of each phase, and of each stretch between changes, to --json and --to "
            "(one trace only)."
        ),
    ] = False

    lines: Annotated[
        bool,
        Option(help="Add the lines of code, those first that use memory and cache lines of others."),
    ] = False

    def run(self) -> None:
        import msgspec

        from numaplan.analyzer import (
            MessageCounter,
            advice_document,
            analysis_document,
            analyze_trace,
            communication_by_phase,
            false_sharing,
            line_costs,
            lines_document,
            merge_analyses,
            message_document,
            message_sentences,
            page_accesses,
            placement_summary,
            policy_document,
            recorded_nodes,
            region_titles,
            region_uses,
            runs_document,
            runs_sentences,
            show_analysis,
            show_lines,
            write_files,
            write_tracks,
        )
        from numaplan.profiler import Trace

        from ..advice.merged import MOST_TRACES
        from ..workload.from_trace import opened_workload
        from ..workload.part import part_note

        counts = self.counted()
        if self.file_format not in _FORMATS:
            raise UsageError(f"--format {self.file_format}", f"choose from {', '.join(_FORMATS)}")
        if self.file_format != "csv" and self.to is None:
            raise UsageError(f"--format {self.file_format} without --to", "name a folder: --to DIR")
        if self.file_format == "perfetto" and len(self.traces) > 1:
            raise UsageError("--format perfetto with several traces", "its times are of one: name one trace")
        if self.per_phase and len(self.traces) > 1:
            raise UsageError("--per-phase with several traces", "their phases differ: name one trace")
        if self.per_phase and self.to is None and not self.as_json:
            raise UsageError("--per-phase without --json or --to", "say where each phase's matrix should go")
        check_named_once(self.traces)  # else a run would be taken to be like itself
        part, counter = self.part, MessageCounter()
        with Trace.open(self.traces[0]) as whole, part.of(whole) as opened:
            say(part_note(whole, opened))
            workload, first, _ = opened_workload(whole, opened, slice_ns=round(self.slice_ms * 1e6))
            facts, names, argv = opened.meta, thread_names(opened), opened.argv
            counter.add(opened)
            pages = page_accesses(opened)
            regions = region_uses(opened, pages)
            lines = false_sharing(opened)
            advised = [self.advised(opened, workload, regions, lines, self.traces)]
            costs = line_costs(opened) if self.lines else []
            titles = region_titles(opened, regions) if self.lines else {}
            inputs = policy_document(opened) if self.as_json else {}
            ranges = [(phase.start, phase.end) for phase in first.phases]
            parts = communication_by_phase(opened, first, ranges + first.stretches) if self.per_phase else []
            if self.to is not None and self.file_format == "perfetto":
                say([f"wrote {write_tracks(opened, first, self.to)}"])
            graphs = self.to is not None and self.file_format == "graphml" and len(self.traces) == 1
            nodes = recorded_nodes(opened) if graphs else {}
            matrices = [part.matrix for part in parts]
            by_phase = matrices[: len(ranges)], matrices[len(ranges) :]
        analyses = [first]
        for path in self.traces[1:]:
            with Trace.open(path) as whole, part.of(whole) as opened:
                check_same_program(path, opened, facts, names)
                counter.add(opened)
                if len(advised) == MOST_TRACES:
                    analyses.append(analyze_trace(opened, slice_ns=first.timeline.slice_ns))
                    continue
                workload, found, _ = opened_workload(whole, opened, slice_ns=first.timeline.slice_ns)
                analyses.append(found)
                advised.append(self.advised_of(opened, workload, self.traces))
        agreements = _agreements(analyses)
        stable = all(agreement is None or agreement.verdict != "roles" for agreement in agreements)
        analysis = merge_analyses(analyses) if stable else first
        advice = self.all_advised(advised, counts, argv)
        messages = counter.result()
        sentences = [
            *runs_sentences(agreements, stable),
            *message_sentences(messages),
            *placement_summary(analysis, regions, lines, pages),
        ]
        if self.to is not None and self.file_format != "perfetto":
            files = write_files(
                analysis, self.to, *by_phase, messages=messages, kind=self.file_format, nodes=nodes
            )
            for written in files:
                say([f"wrote {written}"])
        if self.as_json:
            document = analysis_document(analysis, regions, lines, sentences, *by_phase)
            document |= runs_document(self.traces, analyses, agreements, stable) | inputs
            document |= message_document(messages) | advice_document(advice)
            document |= lines_document(costs, titles) if self.lines else {}
            print_json(msgspec.json.encode(document))
        else:
            show_analysis(analysis, regions, sentences, advice)
            if self.lines:
                show_lines(costs, titles)


def thread_names(trace: "Trace") -> set[tuple[str, str]]:
    """(process, path) of each thread."""
    return {(row.process, row.path) for row in trace.thread_rows}


def check_same_program(
    path: Path, trace: "Trace", facts: Mapping[str, str], names: Collection[tuple[str, str]]
) -> None:
    """Raises UsageError for a trace of threads as the first one's, which has these facts and names, but of
    another program; ranks of a job may be of several."""
    from ..workload.program import other_program

    if not thread_names(trace).isdisjoint(names) and other_program(facts, trace.meta):
        raise UsageError(
            f"{path}: of another program, or another build of it", "analyze each program by itself"
        )


def _agreements(analyses: "list[Analysis]") -> "list[RunAgreement | None]":
    """Each further trace against the first; None for one that has no threads in common with it."""
    from numaplan.analyzer import compare_runs

    names = [{(thread.process, thread.path) for thread in analysis.threads} for analysis in analyses]
    found: list[RunAgreement | None] = []
    for analysis, own in zip(analyses[1:], names[1:], strict=True):
        shared = len(own & names[0])
        if shared == 1 and (len(own) > 1 or len(names[0]) > 1):
            raise UsageError(
                "the traces have one thread in common", "give runs of one program, run in the same way"
            )
        found.append(compare_runs(analyses[0], analysis) if shared > 1 else None)
    return found
