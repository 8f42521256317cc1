"""The workload and the machine that a command line names, and words to people."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from numaplan.common import UsageError

if TYPE_CHECKING:
    from numaplan.machine import Machine

    from .workload import Workload


def read_input(
    traces: Sequence[Path] | None,
    comm: Path | None,
    loads: Path | None,
    machine: str | None,
    *,
    pages: bool = True,
    phases: Path | None = None,
    by_phase: bool = False,
    symmetrise: bool = False,
) -> "tuple[Workload, Machine]":
    """The workload and the machine that the options name; raises UsageError for none or too many."""
    from numaplan.machine import Machine

    if not traces and comm is not None and machine is None:
        raise UsageError("a matrix does not say for which machine", "add --machine, such as 4x2 or local")
    target = Machine.load(machine) if machine else None
    workload = read_workload(
        traces,
        comm,
        loads,
        pages=pages,
        phases=phases,
        by_phase=by_phase,
        symmetrise=symmetrise,
    )
    if target is None:
        assert workload.machine is not None
        target = workload.machine
    return workload, target


def read_workload(
    traces: Sequence[Path] | None,
    comm: Path | None,
    loads: Path | None,
    *,
    pages: bool = True,
    phases: Path | None = None,
    by_phase: bool = False,
    symmetrise: bool = False,
) -> "Workload":
    """The workload that the options name; raises UsageError for none or too many."""
    if traces and comm is not None:
        raise UsageError("both a trace and --comm given", "give one of them")
    if comm is not None:
        from .workload import workload_of_files

        return workload_of_files(comm, loads, phases, symmetrise)
    if not traces:
        raise UsageError("neither a trace nor --comm given", "name a trace.db, or give --comm comm.csv")
    if loads is not None or phases is not None:
        raise UsageError(
            f"--{'loads' if loads is not None else 'phases'} goes with --comm", "a trace has its own"
        )
    from .runs import workload_of_traces

    return workload_of_traces(traces, pages=pages, by_phase=by_phase)


def say(text: str) -> None:
    """A word to people, on stderr."""
    print(f"nmap: {text}", file=sys.stderr)
