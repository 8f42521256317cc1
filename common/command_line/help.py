"""The layout of a command's help; loaded only when help is asked for."""

import argparse
from collections.abc import Iterable
from typing import Any

from rich.console import Group
from rich.text import Text
from rich_argparse import RichHelpFormatter

_EXAMPLE = "Example: "
_COLUMN = 32  # the texts of options begin here or before


class _Formatter(RichHelpFormatter):
    help_markup = text_markup = False  # "[TRACE]" is meant as it stands
    group_name_formatter = str

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=_COLUMN)


def show_help(
    parser: argparse.ArgumentParser, about: str, group: Any, listed: Iterable[tuple[str, str]]
) -> None:
    """Print it; about: paragraphs, of which examples come last; listed: rows to add to the group."""
    paragraphs = [" ".join(part.split()) for part in about.split("\n\n")]
    examples = [part for part in paragraphs if part.startswith(_EXAMPLE)]
    parser.formatter_class = _Formatter
    parser.description = _text([part for part in paragraphs if part not in examples])
    parser.epilog = _text(examples)
    for name, text in listed:
        group.add_argument(name, help=" ".join(text.split()).replace("%", "%%"))
    parser.print_help()


def _text(paragraphs: list[str]) -> Any:
    """What argparse hands on to rich as it is: a text that is wrapped by paragraphs."""
    lines = [part for paragraph in paragraphs for part in (Text(paragraph), Text())]
    return Group(*lines[:-1]) if lines else None
