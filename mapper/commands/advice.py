"""The options of commands that say what to do about a trace."""

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
        counts: "LabCounts | None",
        made: "tuple[Plan, str] | None" = None,
    ) -> "Advised":
        """What to do about the trace, on the machine that is asked for, else that of the plan, else its own.

        made: a plan, and its name.
        """
        from numaplan.machine import Machine

        from ..advice.advise import advise
        from ..advice.counted import with_counts

        target = Machine.load(self.machine) if self.machine else trace.machine
        if made and not self.machine:
            target = made[0].machine.machine()
        plan = ["nmap plan", shell_line([str(trace.path)])]
        plan += ["--machine", shell_line([self.machine])] if self.machine else []
        found = advise(trace, workload, target, plan, regions, lines, made if not self.machine else None)
        return with_counts(found, counts, trace.argv) if counts else found
