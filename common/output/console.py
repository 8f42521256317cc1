"""Text for people: names come from programs, files and users, and must not reach a terminal as commands."""

import os
import sys
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def printable(text: str) -> str:
    """The text as a terminal, a page or an XML file may be given it."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def printable_lines(text: str) -> str:
    """The same for a text of several lines."""
    return "\n".join(map(printable, text.split("\n")))


def shell_line(words: Iterable[str]) -> str:
    """A command as a shell takes it (bash, where a word holds control characters), printable line by line."""
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    import shlex

    if word.replace("\n", "").isprintable():
        return shlex.quote(word)
    coded = "".join(
        letter
        if letter.isprintable() and letter not in "'\\"
        else "".join(f"\\x{byte:02x}" for byte in os.fsencode(letter))
        for letter in word
    )
    return f"$'{coded}'"


def counted(number: int, what: str) -> str:
    """Such as `1 thread` or `2,000 threads`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def in_page(text: str) -> str:
    """The text within HTML."""
    return escape(printable_lines(text))


def tell(*lines: str) -> None:
    """Lines for people on stderr, if there is one: in one write, for the ranks of a job share it.

    Not by print(), which writes a line and its end one after the other where stderr has no buffer.
    """
    if sys.stderr is not None and lines:
        sys.stderr.write("".join(f"{printable(line)}\n" for line in lines))


def print_lines(*lines: str) -> None:
    """Lines for people on stdout."""
    sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))


def printable_json(data: bytes) -> str:
    """A JSON document with one line end, in which what a terminal could take for a command is escaped."""
    text = data.decode().rstrip("\n")
    if not text.isascii():
        text = "".join(
            letter if letter.isprintable() or letter == "\n" else _escaped(letter) for letter in text
        )
    return text.replace("\x7f", "\\u007f") + "\n"


def print_json(data: bytes) -> None:
    """The same on stdout."""
    sys.stdout.write(printable_json(data))


def _escaped(letter: str) -> str:
    units = letter.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def make_console(**options: Any) -> "Console":
    """A rich console for tables and colours, without markup: a name may look like some."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class PlainConsole(Console):
        """What it is given to show, and not what it says to the terminal, is made printable."""

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                text = segment.text
                if segment.control or text.isprintable() or text == "\n":
                    yield segment
                else:
                    yield Segment(printable_lines(text), segment.style)

    return PlainConsole(markup=False, highlight=False, **options)


def print_point(console: "Console", mark: str, text: str, style: str = "") -> None:
    """A point of a list; further lines begin below its text, not below its mark."""
    from textwrap import wrap

    width = max(console.width - len(mark), 1)
    lines = wrap(text, width, break_long_words=False, break_on_hyphens=False)
    for number, line in enumerate(lines):
        console.print(f"{' ' * len(mark) if number else mark}{line}", style=style, soft_wrap=True)
