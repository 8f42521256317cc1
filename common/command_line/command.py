"""What a command is: a Struct whose fields are its options and arguments, and whose docstring is its help.

    class ShowCommand(Command, frozen=True):
        '''Show a plan.

        Example: tool show plan.json
        '''

        plan: Annotated[Path, Argument("PLAN", help="The plan to show.")]
        wide: Annotated[bool, Option(help="Show all columns.")] = False

        def run(self) -> int | None: ...

Fields are of type bool, int, float, str, Path, one of them or None, or a list of them; one without a default
must be given.
"""

from collections.abc import Callable, Mapping
from typing import Annotated

import msgspec


class Option:
    """How a field is given by name.

    flags: its names, by default `--` and the field's name; help: a text, or what makes it when it is shown;
    off: the name that says no to a truth value; least, most: limits of a number; group: the heading under
    which the help shows it; alone: the value that it has where none is given, others being given by `=` only;
    reads, writes: it names a file to read (after an `@`, it may be), as every path does that is not written,
    or one to write.
    """

    def __init__(
        self,
        *flags: str,
        help: str | Callable[[], str],
        metavar: str | None = None,
        off: str = "",
        least: float | None = None,
        most: float | None = None,
        group: str = "Options",
        alone: str = "",
        reads: bool = False,
        writes: bool = False,
    ) -> None:
        self.flags, self.help, self.metavar, self.off, self.alone = flags, help, metavar, off, alone
        self.least, self.most, self.group = least, most, group
        self.reads, self.writes = reads, writes

    def names(self, field: str) -> tuple[str, ...]:
        """Its names, of the field that is called so."""
        return self.flags or (f"--{field.replace('_', '-')}",)


class Argument:
    """How a field is given without a name; program: it is the rest of the line, which is a program's; reads:
    as of an Option."""

    def __init__(self, metavar: str, *, help: str, program: bool = False, reads: bool = False) -> None:
        self.metavar, self.help, self.program, self.reads = metavar, help, program, reads


class Command(msgspec.Struct, frozen=True):
    """The base of all commands."""

    def run(self) -> int | None:
        """Do it; returns the exit code, None for 0; raises NumaplanError."""
        raise NotImplementedError


class CommandGroup(msgspec.Struct, frozen=True):
    """Several commands under one name: what their help says, and `module:class` by name."""

    about: str
    commands: Mapping[str, str]


Json = Annotated[bool, Option("--json", help="Print one JSON document and nothing else.")]
