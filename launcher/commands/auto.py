"""The options of `nlaunch --auto`."""

from typing import TYPE_CHECKING, Annotated

from numaplan.common import Command, Option, UsageError

if TYPE_CHECKING:
    from ..auto.options import AutoOptions

_AUTO = "Plans that are found (see docs/guide/store.md)"


class AutoCommand(Command, frozen=True):
    """The base of a command whose plan may be found in the store."""

    auto: Annotated[
        str,
        Option(
            help="The plan in the store; =require: run only with one; =record: make it of the first run.",
            metavar="[=require|record]",
            group=_AUTO,
            alone="yes",
        ),
    ] = ""
    store: Annotated[
        str,
        Option(
            help="A folder, or an address for fsspec; default: $NUMAPLAN_STORE, else in ~/.local/share.",
            metavar="ADDRESS",
            group=_AUTO,
        ),
    ] = ""
    run_class: Annotated[
        str,
        Option(
            "--class", help="The kind of run; default: by its arguments' shape.", metavar="NAME", group=_AUTO
        ),
    ] = ""
    signers: Annotated[
        str,
        Option(
            help="Whose plans are taken from elsewhere (allowed signers).",
            metavar="FILE",
            group=_AUTO,
            reads=True,
        ),
    ] = ""
    sign: Annotated[
        str,
        Option(help="The key that signs a plan stored elsewhere.", metavar="KEY", group=_AUTO, reads=True),
    ] = ""
    backend: Annotated[
        str,
        Option(
            help="=record: by what, as nprof takes it; default: a sampler that costs little.", group=_AUTO
        ),
    ] = ""
    record_for: Annotated[
        float, Option(help="=record: only so much of the start.", metavar="SECONDS", group=_AUTO)
    ] = 120.0

    def auto_options(self) -> "AutoOptions":
        """How the plan is to be found; raises UsageError naming what is wrong."""
        from numaplan.mapper import class_name

        from ..auto.options import MODES, AutoOptions

        for mode in MODES:
            if mode == self.auto:
                break
        else:
            raise UsageError(
                f"--auto={self.auto}: no such choice", f"--auto alone, or one of {', '.join(MODES)}"
            )
        if not 0 < self.record_for < 1e6:
            raise UsageError(f"--record-for {self.record_for:g}: not a number of seconds", "give more than 0")
        return AutoOptions(
            mode,
            self.store,
            class_name(self.run_class),
            self.signers,
            self.sign,
            self.backend,
            self.record_for,
        )
