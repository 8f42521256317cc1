"""`nmap analyze` and `nmap report`: what a trace says, on the terminal, as files and as one page."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from numaplan.common.cli import Debug, Json

TraceFile = Annotated[Path, typer.Argument(metavar="TRACE", help="A trace.db that 'nprof record' wrote.")]
Slice = Annotated[
    float, typer.Option("--slice", help="Width of the timeline's slices in ms (0: chosen).", min=0.0)
]


def analyze_command(
    trace: TraceFile,
    as_json: Json = False,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="Folder for comm.csv, loads.csv, phases.csv and timeline.csv."),
    ] = None,
    slice_ms: Slice = 0.0,
    debug: Debug = False,
) -> None:
    """Show who communicates with whom, how load is spread, and how memory is shared.

    Example: nmap analyze trace.db --to analysis/
    """
    import msgspec

    from numaplan.analyzer import analyze_trace, false_sharing, page_accesses, placement_summary, region_uses
    from numaplan.analyzer.report import analysis_document, show_analysis, write_csv_files
    from numaplan.profiler import Trace

    with Trace.open(trace) as opened:
        analysis = analyze_trace(opened, slice_ns=round(slice_ms * 1e6))
        regions = region_uses(opened, page_accesses(opened))
        lines = false_sharing(opened)
    sentences = placement_summary(analysis, regions, lines)
    if to is not None:
        for path in write_csv_files(analysis, to):
            print(f"nmap: wrote {path}", file=sys.stderr)
    if as_json:
        document = analysis_document(analysis, regions, lines, sentences)
        sys.stdout.write(msgspec.json.encode(document).decode() + "\n")
    else:
        show_analysis(analysis, regions, sentences)


def report_command(
    trace: TraceFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="The page to write.")] = Path("report.html"),
    plan: Annotated[Path | None, typer.Option("--plan", help="Show this plan against compact.")] = None,
    slice_ms: Slice = 0.0,
    debug: Debug = False,
) -> None:
    """Write one self-contained HTML page about a trace, and about a plan for it.

    Example: nmap report trace.db --plan plan.json -o report.html
    """
    import msgspec

    from numaplan.analyzer.report import write_report
    from numaplan.mapper.plan import Plan
    from numaplan.profiler import Trace

    content: dict[str, Any] | None = msgspec.to_builtins(Plan.load(plan)) if plan is not None else None
    with Trace.open(trace) as opened:
        write_report(opened, output, plan=content, slice_ns=round(slice_ms * 1e6))
    print(f"nmap: wrote {output}", file=sys.stderr)


def register(app: typer.Typer) -> None:
    """Add the commands to `nmap`."""
    app.command("analyze")(analyze_command)
    app.command("report")(report_command)
