"""`nprof import`: make a trace of recordings of perf."""

import os
from pathlib import Path
from typing import Annotated

from numaplan.common import Argument, Command, Option

from .progress import terminal_progress
from .show import say_summary


class ImportCommand(Command, frozen=True):
    """Make a trace from files that 'perf record -d' or 'perf mem record' wrote, here or elsewhere.

    Also packed with gzip or xz, and the folders of 'perf record --threads'.

    Example: nprof import perf.data -o trace.db
    """

    recordings: Annotated[
        list[str], Argument("PERF.DATA", reads=True, help="Recordings of one run; '-' reads from a pipe.")
    ]
    output: Annotated[Path, Option("-o", "--output", writes=True, help="The trace to write.")] = Path(
        "trace.db"
    )
    machine: Annotated[
        str,
        Option(reads=True, help="The machine that was recorded; default: as described in the first file."),
    ] = ""

    def run(self) -> None:
        from ..identity.named_machine import machine_named
        from ..recording.importing import import_recordings

        with terminal_progress() as progress:
            chosen = machine_named(self.machine, os.environ) if self.machine else None
            summary = import_recordings(self.recordings, self.output, machine=chosen, progress=progress)
        say_summary(summary, self.output)
