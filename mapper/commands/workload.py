"""What the commands that place a workload share: the options that name it, and words to people."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from numaplan.common import Argument, Command, Option, UsageError, tell

if TYPE_CHECKING:
    from numaplan.machine import Machine

    from ..workload.opening import TraceOpening
    from ..workload.part import Part
    from ..workload.workload import Workload

OneTrace = Annotated[Path | None, Argument("TRACE", help="A trace.db that 'nprof record' wrote.")]
MachineName = Annotated[
    str | None,
    Option(
        "--machine", "-m", reads=True, help="What 'nmap machine' takes; default: the machine in the trace."
    ),
]


class PartCommand(Command, frozen=True, kw_only=True):
    """The base of commands that can be asked for a part of a recording."""

    start: Annotated[
        str,
        Option("--from", metavar="TIME", help="Leave out what comes before: 2s, 500ms, 20M (accesses), 10%."),
    ] = ""
    end: Annotated[str, Option("--to", "--until", metavar="TIME", help="Leave out what comes after.")] = ""
    phase: Annotated[
        int, Option(metavar="N", help="Only the N-th phase that 'nmap analyze' shows.", least=1)
    ] = 0

    @property
    def part(self) -> "Part":
        """The part that is asked for."""
        from ..workload.part import Part

        return Part(self.start, self.end, self.phase)


class WorkloadCommand(PartCommand, frozen=True, kw_only=True):
    """The base of commands on a workload: of traces, or of a matrix and what goes with it."""

    comm: Annotated[Path | None, Option(help="A communication matrix, instead of a trace.")] = None
    loads: Annotated[Path | None, Option(help="A load vector to go with --comm.")] = None
    phases: Annotated[Path | None, Option(help="Loads by phase (phases.csv) to go with --comm.")] = None
    symmetrise: Annotated[bool, Option(help="If --comm counts each direction, use the mean of both.")] = False
    seed: Annotated[int, Option(help="The same seed gives the same plan.")] = 0
    effort: Annotated[str, Option(help="How hard to search: fast, normal or max.")] = "normal"

    def read_workload(
        self,
        *traces: Path | None,
        pages: bool = True,
        objective: str = "balanced",
        opening: "TraceOpening | None" = None,
        part: "Part | None" = None,
        larger: bool = False,
    ) -> "Workload":
        """The workload that the options name; raises UsageError for none or too many.

        opening: of the first trace, where the command has begun that before it loaded what it needs; part:
        of a trace, where it is not for the options to say; larger: also with larger inputs.
        """
        given = [path for path in traces if path is not None]
        if given and self.comm is not None:
            raise UsageError("both a trace and --comm given", "give one of them")
        if self.comm is not None:
            from ..workload.workload import workload_of_files

            if self.start or self.end or self.phase:
                raise UsageError("--from, --to and --phase go with a trace", "a matrix has no times")
            return workload_of_files(self.comm, self.loads, self.phases, self.symmetrise)
        if not given:
            raise UsageError("neither a trace nor --comm given", "name a trace.db, or give --comm comm.csv")
        self.refuse_options_of_a_matrix()
        from ..workload.runs import workload_of_traces

        return workload_of_traces(
            given,
            pages=pages,
            by_phase=objective == "phased",
            opening=opening,
            part=part or self.part,
            larger=larger,
        )

    def refuse_options_of_a_matrix(self) -> None:
        """Raise UsageError for what only goes with --comm."""
        for name in ("loads", "phases"):
            if getattr(self, name) is not None:
                raise UsageError(f"--{name} goes with --comm", "a trace has its own")

    def read_with_machine(
        self,
        machine: str | None,
        *traces: Path | None,
        objective: str = "balanced",
        opening: "TraceOpening | None" = None,
        pages: bool = True,
        larger: bool = False,
    ) -> "tuple[Workload, Machine]":
        """The same, and the machine to place it on: the one named, else the one in the trace."""
        from numaplan.profiler import machine_named

        if not any(traces) and self.comm is not None and machine is None:
            raise UsageError("a matrix does not say for which machine", "add --machine, such as 4x2 or local")
        target = machine_named(machine, os.environ) if machine else None
        workload = self.read_workload(
            *traces, pages=pages, objective=objective, opening=opening, larger=larger
        )
        target = target or workload.machine
        assert target is not None
        return workload, target


def say(notes: Sequence[str]) -> None:
    """Words to people, on stderr."""
    tell(*(f"nmap: {note}" for note in notes))
