"""`nprof doctor`: what this machine can record."""

from pathlib import Path
from typing import Annotated

from numaplan.common import Command, Json, Option, UsageError, print_json


class DoctorCommand(Command, frozen=True):
    """Say what this machine can record, and the command that fixes what is missing.

    Example: nprof doctor
    """

    sysfs: Annotated[
        Path | None, Option(metavar="DIR", help="Judge by this recorded tree of /sys and /proc.")
    ] = None
    as_json: Json = False

    def run(self) -> None:
        import msgspec

        from numaplan.machine import Machine

        from ..doctor import diagnose

        tree = recorded_tree(self.sysfs)
        checks = diagnose(Machine.load(str(tree) if tree else "local"), tree)
        if self.as_json:
            content = {
                "schema": "numaplan/doctor/1",
                "checks": [msgspec.to_builtins(check) for check in checks],
            }
            print_json(msgspec.json.encode(content))
        else:
            from .show import show_checks

            show_checks(checks)


def recorded_tree(folder: Path | None) -> Path | None:
    """A folder that holds another machine's /sys and /proc; raises UsageError where it does not."""
    if folder is not None and not (folder / "sys").is_dir():
        raise UsageError(f"{folder}: no folder 'sys' in it", "give the root of a recorded tree")
    return folder
