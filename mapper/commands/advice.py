"""The options of commands that say what to do about a trace."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from numaplan.common import Option, shell_line

from .workload import MachineName, PartCommand

if TYPE_CHECKING:
    from numaplan.analyzer import Advised, FalseSharing, RegionUse
    from numaplan.profiler import Trace

    from ..advice.counted import LabCounts
    from ..plan_file.plan import Plan
    from ..workload.workload import Workload


class AdviceCommand(PartCommand, frozen=True, kw_only=True):
    """The base of such commands."""

    machine: MachineName = None
    counts: Annotated[
        Path | None,
        Option(metavar="COUNTS.JSON", help="What 'nlab compare --json' counted, to stand beside the advice."),
    ] = None

    def counted(self) -> "LabCounts | None":
        """What the lab counted, if that is given; raises UsageError for another file."""
        from ..advice.counted import read_counts

        return read_counts(self.counts) if self.counts is not None else None

    def advised(
        self,
        trace: "Trace",
        workload: "Workload",
        regions: "Sequence[RegionUse]",
        lines: "Sequence[FalseSharing]",
        paths: Sequence[Path],
        made: "tuple[Plan, str] | None" = None,
    ) -> "Advised":
        """What to do about a trace, on the machine that is asked for, else that of the plan, else its own.

        paths: of all traces that are planned for; made: a plan, and its name.
        """
        from numaplan.profiler import machine_named

        from ..advice.advise import advise

        target = machine_named(self.machine, os.environ) if self.machine else trace.machine
        if made and not self.machine:
            target = made[0].machine.machine()
        plan = ["nmap plan", shell_line([str(path) for path in paths])]
        plan += ["--machine", shell_line([self.machine])] if self.machine else []
        return advise(trace, workload, target, plan, regions, lines, made if not self.machine else None)

    def advised_of(
        self,
        trace: "Trace",
        workload: "Workload",
        paths: Sequence[Path],
        made: "tuple[Plan, str] | None" = None,
    ) -> "Advised":
        """The same of a further trace."""
        from numaplan.analyzer import false_sharing, page_accesses, region_uses

        regions = region_uses(trace, page_accesses(trace))
        return self.advised(trace, workload, regions, false_sharing(trace), paths, made)

    def all_advised(
        self, found: "Sequence[Advised]", counts: "LabCounts | None", argv: Sequence[str]
    ) -> "Advised":
        """The advice about all traces as one list; argv: of the first."""
        from ..advice.counted import with_counts
        from ..advice.merged import merged

        answer = merged(found)
        return with_counts(answer, counts, argv) if counts else answer
