"""`nmap machine`: show a machine."""

import os
from pathlib import Path
from typing import Annotated

from numaplan.common import Argument, Command, Json, Option, UsageError, print_json


class MachineCommand(Command, frozen=True):
    """Show a machine: its nodes, their cpus and memory, the distances between them.

    Example: nmap machine 4x2 --json > machine.json
    """

    source: Annotated[
        str,
        Argument(
            "SOURCE",
            help="local, an hwloc XML or machine.json file, a trace, a folder as for --sysfs or a tar "
            "of one, a built-in name, AxB. [default: local]",
        ),
    ] = "local"
    sysfs: Annotated[
        Path | None,
        Option(metavar="DIR", help="A tree recorded elsewhere, with sys/devices/system inside."),
    ] = None
    as_json: Json = False

    def run(self) -> None:
        from numaplan.profiler import machine_named

        if self.sysfs is not None:
            if self.source != "local":
                raise UsageError(f"both {self.source} and --sysfs given", "give one of them")
            if not self.sysfs.is_dir():
                what, hint = "no such folder", "name one with sys/devices/system inside"
                raise UsageError(f"--sysfs {self.sysfs}: {what}", hint)
        machine = machine_named(self.source if self.sysfs is None else f"{self.sysfs}/", os.environ)
        if self.as_json:
            print_json(machine.to_json())
            return
        from .draw.placement import show_machine

        show_machine(machine)
