"""`nprof setup`: get what emulation needs."""

from typing import Annotated

from numaplan.common import Command, Option, tell


class SetupCommand(Command, frozen=True):
    """Fetch a QEMU with plugins into your cache folder where the system has none; no privilege is needed.

    Example: nprof setup
    """

    renew: Annotated[bool, Option(help="Fetch it again, or although the system has one.")] = False
    from_source: Annotated[bool, Option(help="Build it from the distribution's sources instead.")] = False

    def run(self) -> None:
        from ..setup.qemu import set_up

        words = set_up(self.renew, self.from_source, lambda text: tell(f"nprof: {text}"))
        print(f"{words[-1]} runs our plugin")
