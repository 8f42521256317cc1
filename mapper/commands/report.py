"""`nmap report`: what a trace says and what to do, as one page."""

from pathlib import Path
from typing import Annotated, Any

from numaplan.common import Argument, NotSoError, Option, check_named_once

from .advice import AdviceCommand
from .analyze import Slice, check_same_program, thread_names
from .workload import say


class ReportCommand(AdviceCommand, frozen=True, kw_only=True):
    """Write one self-contained HTML page about a trace, and about a plan for it.

    It begins with what to do first, by what each would gain. A plan that was made for another program than
    the trace's is shown too, but the command ends with 1.

    Example: nmap report trace.db --plan plan.json -o report.html
    """

    traces: Annotated[
        list[Path], Argument("TRACE", help="A trace, and those of a job's other ranks for their messages.")
    ]
    output: Annotated[Path, Option("-o", "--output", writes=True, help="The page to write.")] = Path(
        "report.html"
    )
    plan: Annotated[Path | None, Option(help="Show this plan, and what every method would cost.")] = None
    slice_ms: Slice = 0.0

    def run(self) -> None:
        import msgspec

        from numaplan.analyzer import (
            ANOTHER_PROGRAM,
            MessageCounter,
            false_sharing,
            page_accesses,
            region_uses,
            write_report,
        )
        from numaplan.profiler import Trace

        from ..advice.merged import MOST_TRACES
        from ..plan_file.plan import Plan
        from ..plan_file.summary import kept_on
        from ..planning.judge.compare import method_costs
        from ..workload.from_trace import opened_workload
        from ..workload.part import part_note

        counts = self.counted()
        check_named_once(self.traces)  # else its messages would count twice
        content: dict[str, Any] | None = None
        costs: dict[str, Any] = {}
        made = None
        if self.plan is not None:
            loaded = Plan.load(self.plan)
            made = loaded, str(self.plan)
            costs = msgspec.to_builtins(loaded.predicted)
            if loaded.alone:
                what = "the page is about the trace and what was tried"
                say([f"{self.plan} {kept_on(loaded)} ({loaded.alone}): {what}"])
            else:
                content = msgspec.to_builtins(loaded)
        counter, further = MessageCounter(), []
        with Trace.open(self.traces[0]) as whole:
            facts, names = whole.meta, thread_names(whole) if self.traces[1:] else set()
        for number, path in enumerate(self.traces[1:], 1):
            with Trace.open(path) as whole, self.part.of(whole) as opened:
                check_same_program(path, opened, facts, names)
                counter.add(opened)
                if number < MOST_TRACES:
                    workload = opened_workload(whole, opened).workload
                    further.append(self.advised_of(opened, workload, self.traces, made))
        with Trace.open(self.traces[0]) as whole, self.part.of(whole) as opened:
            say(part_note(whole, opened))
            counter.add(opened)
            workload, analysis, _ = opened_workload(whole, opened, slice_ns=round(self.slice_ms * 1e6))
            pages = page_accesses(opened)
            regions, lines = region_uses(opened, pages), false_sharing(opened)
            advised = self.advised(opened, workload, regions, lines, self.traces, made)
            mismatch = write_report(
                opened,
                self.output,
                memory=(pages, regions, lines),
                analysis=analysis,
                advised=self.all_advised([advised, *further], counts, opened.argv),
                plan=content,
                methods=method_costs(*made, workload) if made and content is not None else (),
                costs=costs,
                messages=counter.result(),
            )
        say([f"wrote {self.output}"])
        for told in mismatch:
            if told.startswith(ANOTHER_PROGRAM):
                raise NotSoError(
                    told, "give the plan made from this trace, or from another run of its program"
                )
            say([f"warning: {told}"])
