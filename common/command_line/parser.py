"""From the words of a command line to a command: argparse, with options from the command's fields."""

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import NoneType
from typing import Any, NoReturn, TypeVar, get_args, get_origin

from msgspec import NODEFAULT
from msgspec.structs import FieldInfo, fields

from .._version import version
from ..errors import UsageError
from .command import Argument, Command, Option
from .own_files import check_own_files

C = TypeVar("C", bound=Command)

_NUMBERS = {int: "whole number", float: "number"}
_REMAINDER = "rest"


class AnsweredError(Exception):
    """The command line asked for the help or the version, which has been shown."""


class Parser(argparse.ArgumentParser):
    """Reads options; words without a name are left to the caller.

    about: the help's text; listed: title and rows of a list that the help has before the options; takes_rest:
    from the first word without a name on, all are such; whole: of a program, which has a version.
    """

    takes_words = False  # words without a name mean something other than a command

    def __init__(
        self,
        prog: str,
        usage: str,
        about: str,
        listed: tuple[str, Callable[[], Iterable[tuple[str, str]]]],
        *,
        takes_rest: bool,
        whole: bool,
    ) -> None:
        super().__init__(
            prog,
            f"{prog} [OPTIONS] {usage}".rstrip(),
            formatter_class=partial(argparse.HelpFormatter, width=80),  # else it loads shutil, for nothing
            add_help=False,
            allow_abbrev=False,
        )
        self._about, self._takes_rest = about, takes_rest
        self._listed, self._list = listed[1], self.add_argument_group(listed[0])
        self._groups: dict[str, Any] = {}
        self._names: list[str] = []
        self._texts: list[tuple[argparse.Action, Callable[[], str]]] = []
        self._alone: dict[str, str] = {}
        if takes_rest:
            self.add_argument(_REMAINDER, nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
        add = partial(self.add_option, action=_Immediate, nargs=0)
        add("-h", "--help", const=self._answer_help, text=lambda: "Show this message and exit.")
        add("--debug", const=_set_debug, text=lambda: "Show the traceback of an error.")
        if whole:
            add("--version", const=_answer_version, text=lambda: "Show the version and exit.")

    def add_option(
        self,
        *names: str,
        text: Callable[[], str],
        group: str = "Options",
        alone: str = "",
        **settings: Any,
    ) -> None:
        """As `add_argument`, under the heading of that group; text: what the help says of it, once asked;
        alone: see Option."""
        self._names += names
        if alone:
            self._alone |= dict.fromkeys(names, alone)
        if group not in self._groups:
            self._groups[group] = self.add_argument_group(group)
        self._texts.append((self._groups[group].add_argument(*names, **settings), text))

    def read(self, arguments: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
        """What is given by name, and the words without one; raises UsageError."""
        arguments, after = list(arguments), list[str]()
        if not self._takes_rest and "--" in arguments:
            arguments, after = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
        found, left = self.parse_known_args(self._with_values(arguments) if self._alone else arguments)
        for argument in left:
            if argument.startswith("-") and argument != "-":
                is_word = self.takes_words and not argument.startswith("--")
                hint = "what begins with a dash and is no option comes after --; " if is_word else ""
                self.reject("option", argument.partition("=")[0], self._names, hint)
        given = {name: value for name, value in vars(found).items() if value is not None}
        rest = given.pop(_REMAINDER, [])
        return given, [*left, *after, *(rest[1:] if rest[:1] == ["--"] else rest)]

    def _with_values(self, arguments: Sequence[str]) -> list[str]:
        """The same with a value for each option that may have none; a program's own are left alone."""
        found = list[str]()
        words = iter(arguments)
        for word in words:
            if self._takes_rest and not word.startswith("-"):
                return [*found, word, *words]
            found.append(f"{word}={self._alone[word]}" if word in self._alone else word)
            action = self._option_string_actions.get(word)
            if word == "--":
                break
            if action and action.nargs is None and word not in self._alone:
                found += [value for value in (next(words, None),) if value is not None]
        return [*found, *words]

    def _answer_help(self) -> None:
        from .help import show_help

        for option, text in self._texts:
            option.help = text().replace("%", "%%")
        show_help(self, self._about, self._list, self._listed())
        raise AnsweredError

    def reject(self, what: str, argument: str, known: Iterable[str], hint: str = "") -> NoReturn:
        """Raise UsageError for a word that is not known, naming the one that it may be a slip of."""
        from difflib import get_close_matches

        near = "".join(f" (did you mean {name}?)" for name in get_close_matches(argument, known, 1))
        self._refuse(f"no such {what}: {argument}{near}", hint)

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        what = message.removeprefix("argument ").replace("ignored explicit argument", "takes no value, not")
        names, _, problem = what.partition(": ")
        dashed = f"one that begins with a dash is given as {max(names.split('/'), key=len)}=VALUE; "
        self._refuse(what, dashed if problem == "expected one argument" else "")

    def _refuse(self, what: str, hint: str) -> NoReturn:
        raise UsageError(what, f"{hint}see '{self.prog} --help'")


class _Immediate(argparse.Action):
    """An option that does something as soon as it is read."""

    def __call__(self, *_: Any) -> None:
        self.const()


class _Switch(argparse.Action):
    """A truth value; const: the name that says no to it."""

    def __call__(self, _: Any, namespace: argparse.Namespace, __: Any, name: str | None = None) -> None:
        setattr(namespace, self.dest, name != self.const)


def _set_debug() -> None:
    os.environ["NUMAPLAN_DEBUG"] = "1"


def _answer_version() -> None:
    print(f"numaplan {version()}")
    raise AnsweredError


def read_command(command: type[C], prog: str, arguments: Sequence[str], *, whole: bool = False) -> C:
    """The command that the arguments ask for; whole: it is all of a program.

    Raises UsageError, also where it would write over what it reads.
    """
    options: list[tuple[FieldInfo, Option]] = []
    positionals: list[tuple[FieldInfo, Argument]] = []
    for field in fields(command):
        how = field.type.__metadata__[0]
        (options if isinstance(how, Option) else positionals).append((field, how))
    parser = Parser(
        prog,
        " ".join(_usage(*row) for row in positionals),
        command.__doc__ or "",
        ("Arguments", lambda: [(argument.metavar, argument.help) for _, argument in positionals]),
        takes_rest=any(argument.program for _, argument in positionals),
        whole=whole,
    )
    parser.takes_words = bool(positionals)
    for field, option in options:
        _add(parser, field, option)
    given, left = parser.read(arguments)
    for field, _ in positionals:
        kind, many = _kind(field)
        taken, left = (left, []) if many else (left[:1], left[1:])
        if taken:
            given[field.name] = [*map(kind, taken)] if many else kind(taken[0])
    if left:
        parser.error(f"unexpected argument: {left[0]}")
    required = [(field, f"argument {argument.metavar}") for field, argument in positionals]
    required += [(field, f"option {option.names(field.name)[0]}") for field, option in options]
    for field, what in required:
        if field.required and field.name not in given:
            _missing(command, parser, what)
    made = command(**given)
    check_own_files(made)
    return made


def _missing(command: type[Command], parser: Parser, what: str) -> NoReturn:
    _, found, example = (command.__doc__ or "").partition("Example: ")
    hint = f"give it, as in: {example.partition(chr(10))[0]}" if found else f"see '{parser.prog} --help'"
    raise UsageError(f"missing {what}", hint)


def _usage(field: FieldInfo, argument: Argument) -> str:
    name = argument.metavar
    if argument.program:
        name += " [ARGS]..."
    elif _kind(field)[1]:
        name += "..."
    return name if field.required else f"[{name}]"


def _kind(field: FieldInfo) -> tuple[type, bool]:
    """The type of a field's word, and whether there may be several."""
    declared = get_args(field.type)[0]
    if NoneType in get_args(declared):
        declared = next(kind for kind in get_args(declared) if kind is not NoneType)
    many = get_origin(declared) is list
    return get_args(declared)[0] if many else declared, many


def _add(parser: Parser, field: FieldInfo, option: Option) -> None:
    """Add a field's option."""
    names = option.names(field.name)
    kind, many = _kind(field)
    settings: dict[str, Any] = {
        "dest": field.name,
        "group": option.group,
        "text": partial(_help, field, option),
    }
    if kind is bool:
        names = (*names, option.off) if option.off else names
        parser.add_option(*names, action=_Switch, nargs=0, const=option.off, **settings)
        return
    parser.add_option(
        *names,
        action="append" if many else "store",
        type=_reader(kind, option),
        alone=option.alone,
        metavar=option.metavar or max(names, key=len).lstrip("-").upper(),
        **settings,
    )


def _help(field: FieldInfo, option: Option) -> str:
    """The option's text, its limits and its default."""
    shown = field.default
    if isinstance(shown, bool):
        shown = option.off and (option.flags[0] if shown else option.off)
    notes = [f"[{_limits(option)}]"] if option.least is not None else []
    notes += [f"[default: {shown}]"] if shown not in ("", None, NODEFAULT) else []
    return " ".join([option.help if isinstance(option.help, str) else option.help(), *notes])


def _reader(kind: type, option: Option) -> Callable[[str], Any]:
    """Makes a value of a word, as argparse wants it."""
    if kind not in _NUMBERS:
        return kind

    def read(argument: str) -> Any:
        try:
            value = kind(argument)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{argument!r} is not a {_NUMBERS[kind]}") from None
        if (low is not None and not value >= low) or (high is not None and not value <= high):
            raise argparse.ArgumentTypeError(f"{argument} is not in the range {_limits(option)}")
        return value

    low, high = option.least, option.most
    return read


def _limits(option: Option) -> str:
    """Such as `1 <= x <= 9`."""
    return f"{option.least} <= x" + ("" if option.most is None else f" <= {option.most:.0f}")
