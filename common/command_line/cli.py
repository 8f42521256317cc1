"""The command lines of our programs: of one command, or of several whose classes a table names."""

import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from ..errors import UsageError
from .command import Command, CommandGroup
from .frame import run_framed
from .parser import AnsweredError, Parser, read_command

_GC_THRESHOLD = 50_000  # objects made before garbage is looked for; start-up makes many that all stay


def run_command(
    command: type[Command],
    prog: str,
    arguments: Sequence[str] | None = None,
    *,
    no_args_is_help: bool = False,
) -> int:
    """Run the command line of a program that is one command; returns the exit code, errors are one line.

    arguments: those after the program's name (default: those of this process).
    """
    arguments = sys.argv[1:] if arguments is None else arguments

    def call() -> int | None:
        if no_args_is_help and not arguments:
            _show_help(prog, "nothing", lambda: read_command(command, prog, ["--help"], whole=True))
        return read_command(command, prog, arguments, whole=True).run()

    return _framed(call, prog)


def run_tool(
    prog: str, about: str, commands: Mapping[str, str], package: str, arguments: Sequence[str] | None = None
) -> int:
    """The same for a program of several commands.

    about: its help; commands: name -> `module:class`, the module relative to the package; in place of a class
    there may be a CommandGroup, whose modules are relative to the same package.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    return _framed(
        lambda: _run_group(prog, CommandGroup(about, commands), package, arguments, whole=True), prog
    )


def _run_group(
    prog: str, group: CommandGroup, package: str, arguments: Sequence[str], *, whole: bool
) -> int | None:
    def load(name: str) -> "type[Command] | CommandGroup":
        module, _, found = group.commands[name].partition(":")
        command: type[Command] | CommandGroup = getattr(import_module(f".{module}", package), found)
        return command

    def about(name: str) -> str:
        command = load(name)
        return command.about if isinstance(command, CommandGroup) else command.__doc__ or ""

    def listed() -> list[tuple[str, str]]:
        return [(name, about(name).partition("\n\n")[0]) for name in group.commands]

    parser = Parser(
        prog, "COMMAND [ARGS]...", group.about, ("Commands", listed), takes_rest=True, whole=whole
    )
    _, found = parser.read(arguments)
    if not found:
        _show_help(prog, "no command", lambda: parser.read(["--help"]))
    name, *rest = found
    if name not in group.commands:
        parser.reject("command", name, group.commands)
    command = load(name)
    if isinstance(command, CommandGroup):
        return _run_group(f"{prog} {name}", command, package, rest, whole=False)
    return read_command(command, f"{prog} {name}", rest).run()


def _show_help(prog: str, what: str, show: Callable[[], object]) -> NoReturn:
    with suppress(AnsweredError):
        show()
    raise UsageError(f"{what} given", f"see '{prog} --help'")


def _framed(call: Callable[[], int | None], prog: str) -> int:
    def answered() -> int | None:
        with suppress(AnsweredError):
            return call()
        return None

    gc.set_threshold(_GC_THRESHOLD)
    return run_framed(answered, prog)
