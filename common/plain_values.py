"""Words of the command line as values of plain types, without typer's own way through pydantic.

Importing pydantic takes longer than most of our commands run. Parameters of another type, or with checks of
their own, are left to typer; a typer that does not work this way is left alone.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import typer

Reader = Callable[[str], Any]
_WORDS = {
    "true": True,
    "1": True,
    "yes": True,
    "on": True,
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}
_NAMES = {int: "whole number", float: "number", bool: "truth value"}
# What typer checks of a path beyond its being one.
_PATH_CHECKS = ("exists", "writable", "resolve_path", "allow_dash", "path_type")


class PlainValues:
    """How typer asks for a parameter's value; kind: the type of a word; many: whether there are several."""

    def __init__(self, kind: type, settings: Any, many: bool) -> None:
        self._kind, self._settings, self._many = kind, settings, many

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value of a word or of several; raises typer.BadParameter."""
        if value is None:
            return () if self._many else None
        if self._many:
            return [self._one(word, param, ctx) for word in value]
        return self._one(value, param, ctx)

    def _one(self, word: Any, param: Any, ctx: Any) -> Any:
        try:
            value = _WORDS[word.lower()] if self._kind is bool and isinstance(word, str) else self._kind(word)
        except (KeyError, ValueError, OverflowError):
            text = f"{word!r} is not a {_NAMES.get(self._kind, 'value')}."
            raise typer.BadParameter(text, ctx=ctx, param=param) from None
        low, high = self._settings.min, self._settings.max
        if self._kind in (int, float) and not _within(value, low, high):
            limits = f"{'' if low is None else f'{low} <= '}x{'' if high is None else f' <= {high}'}"
            raise typer.BadParameter(f"{word} is not in the range {limits}.", ctx=ctx, param=param)
        return value


def _within(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def read_plainly(command: Any) -> None:
    """Let the parameters of a command, and of those below it, be read here where they are of plain types."""
    for part in _commands(command):
        for parameter in part.params:
            _make_plain(parameter)
        part.get_help_option = _plain_help(part.get_help_option)


def _make_plain(parameter: Any) -> None:
    if getattr(parameter, "_runtime_param", parameter) is None:
        parameter._runtime_param = _plain(parameter)


def _plain_help(made: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The option --help, which typer makes only when it reads the command line."""

    def plain(ctx: Any) -> Any:
        option = made(ctx)
        _make_plain(option)
        return option

    return plain


def _commands(command: Any) -> Iterator[Any]:
    yield command
    for below in getattr(command, "commands", {}).values():
        yield from _commands(below)


def _plain(parameter: Any) -> PlainValues | None:
    kind, settings = parameter.type_descriptor.annotation, parameter.type_descriptor.parameter_info
    many = get_origin(kind) is list
    if many:
        (kind,) = get_args(kind)
    if kind not in (str, int, float, bool, Path) or settings.parser is not None or settings.clamp:
        return None
    if kind is Path and any(getattr(settings, check, None) for check in _PATH_CHECKS):
        return None
    if many != bool(parameter.multiple or parameter.nargs == -1):
        return None
    return PlainValues(kind, settings, many)
