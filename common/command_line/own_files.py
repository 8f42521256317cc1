"""What a command writes must not be what it reads: its traces, its plan, the program that it starts."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn, get_args

from msgspec.structs import FieldInfo, asdict, fields

from ..errors import UsageError
from ..files.whole import FileName, same_file
from .command import Argument, Command, Option


def check_own_files(command: Command, *more: FileName) -> None:
    """Raise UsageError if an option names a file to write that another names to read, or to write, too.

    more: what is written besides, by a name that no option has.
    """
    outputs = [*_named(command, writes=True), *(("the output", one) for one in more)]
    for number, (name, output) in enumerate(outputs):
        for other, one in outputs[:number]:
            if same_file(output, one) or (not os.path.lexists(output) and _is_path_of(output, one)):
                _refuse(name, output, other, one)
    outputs = [(name, output) for name, output in outputs if os.path.lexists(output)]
    for other, one in _named(command, writes=False) if outputs else ():
        for name, output in outputs:
            if same_file(output, one):
                _refuse(name, output, other, one)


def _refuse(name: str, output: FileName, other: str, one: FileName) -> NoReturn:
    raise UsageError(f"{name} {output}: would be written over {other} {one}", "name another file")


def _is_path_of(output: FileName, other: FileName) -> bool:
    return os.path.realpath(output) == os.path.realpath(other)


def program_files(argv: Sequence[str]) -> list[str]:
    """The files that a command line starts: the executable, and the script of an interpreter."""
    from ..processes.program import script_path
    from ..processes.run import find_program

    try:
        return [file for file in (find_program(argv), script_path(argv)) if file]
    except UsageError:
        return []


def _named(command: Command, *, writes: bool) -> Iterator[tuple[str, FileName]]:
    """(how it is called, file) of each that is written, or read."""
    values = asdict(command)
    for field in fields(command):
        how, value = field.type.__metadata__[0], values[field.name]
        if not value or writes != (isinstance(how, Option) and how.writes):
            continue
        if isinstance(how, Argument) and how.program:
            yield from (("the program", file) for file in program_files(value))
        elif writes or how.reads or _is_path(field):
            name = how.metavar if isinstance(how, Argument) else how.names(field.name)[-1]
            words = value if isinstance(value, list) else [value]
            yield from ((name, str(word).removeprefix("@") if how.reads else word) for word in words)


def _is_path(field: FieldInfo) -> bool:
    kind = get_args(field.type)[0]
    return Path in (kind, *get_args(kind))
