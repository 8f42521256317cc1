"""`nprof info` and `nprof export`: what a trace holds, on the terminal and as files."""

from pathlib import Path
from typing import Annotated

from numaplan.common import Argument, Command, Json, Option, print_json, print_lines

TraceFile = Annotated[Path, Argument("TRACE", help="A trace.db that 'nprof record' wrote.")]


class InfoCommand(Command, frozen=True):
    """Show what a trace holds: program, machine, threads, samples per event and level, losses.

    Example: nprof info trace.db
    """

    trace: TraceFile
    as_json: Json = False

    def run(self) -> None:
        from ..trace.description import describe
        from ..trace.reader import Trace

        with Trace.open(self.trace) as opened:
            facts = describe(opened)
        if self.as_json:
            import msgspec

            print_json(msgspec.json.encode(facts))
        else:
            from .show import show_info

            show_info(facts)


class ExportCommand(Command, frozen=True):
    """Write a trace in the format of other tools.

    parquet and csv: a file for each table. perfetto: threads, where they ran, accesses and remote shares in
    time (trace.pftrace, for ui.perfetto.dev). speedscope, pprof: accesses, remote ones and cache lines taken
    from other threads by code (trace.speedscope.json, trace.pb.gz for 'go tool pprof').

    Example: nprof export trace.db --format pprof --to profile
    """

    trace: TraceFile
    to: Annotated[Path, Option(metavar="DIR", help="The folder to write into.")]
    kind: Annotated[
        str, Option("--format", metavar="FORMAT", help="parquet, csv, perfetto, speedscope or pprof.")
    ] = "parquet"

    def run(self) -> None:
        from ..export.formats import export_trace
        from ..trace.reader import Trace

        with Trace.open(self.trace, exporting_to=self.to) as opened:
            for path in export_trace(opened, self.to, self.kind):
                print_lines(str(path))
