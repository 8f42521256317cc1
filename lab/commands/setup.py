"""`nlab setup` and `nlab doctor`: get what the lab needs, and say what is missing."""

from pathlib import Path
from typing import Annotated

from numaplan.common import Command, Json, MachineLacksError, Option, tell


class SetupCommand(Command, frozen=True):
    """Fetch a Debian kernel into your cache folder; as root, install QEMU if it is missing.

    Example: nlab setup
    """

    deb: Annotated[list[Path], Option(help="Use this kernel package; fetch none.", metavar="FILE")] = []
    renew: Annotated[bool, Option(help="Fetch a kernel again.")] = False

    def run(self) -> None:
        from ..places import cache_folder
        from ..setup.fetch import set_up

        kernel = set_up(self.deb, self.renew, lambda text: tell(f"nlab: {text}"))
        print(f"kernel {kernel.version} in {cache_folder()}")


class DoctorCommand(Command, frozen=True):
    """Say what the lab still needs on this machine, and the command that fixes it.

    Example: nlab doctor
    """

    as_json: Json = False

    def run(self) -> None:
        from ..setup.doctor import diagnose, show_diagnosis
        from .guest import print_result

        diagnosis = diagnose()
        if self.as_json:
            print_result(diagnosis)
        else:
            show_diagnosis(diagnosis)
        if not diagnosis.ok:
            lacking = next(check for check in diagnosis.checks if not check.ok)
            raise MachineLacksError(f"{lacking.name}: {lacking.found}", lacking.hint)
