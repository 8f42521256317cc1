"""How far a recording is, on a terminal: a bar, or one row below what the recorded program writes."""

import os
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from numaplan.common import make_console

from ..backends.base import WATCHING

if TYPE_CHECKING:
    from ..backends.base import Progress

_LEAST_ROWS, _LEAST_COLUMNS = 4, 20
_PLAIN_SECONDS = 10.0  # between lines on a terminal without rows
_SAVE, _RESTORE, _DOWN, _UP, _CLEAR = "\0337", "\0338", "\033D", "\033[1A", "\033[K"


@contextmanager
def terminal_progress(expected: str = "") -> "Iterator[Progress]":
    """A progress bar on a terminal's stderr, which comes to be with the first thing that it has to say.

    While a program runs that was started from here, a line at the bottom instead: the rest is the program's.
    expected: how long that will be, which the line then says beside how long it has been.
    """
    if not sys.stderr.isatty():
        yield lambda _what, _share: None
        return
    with ExitStack() as stack:
        row = StatusRow(sys.stderr.fileno())
        stack.callback(row.close)
        shown: list[Progress] = []
        began = time.monotonic()

        def advance(what: str, share: float) -> None:
            if share == WATCHING:
                passed = f"{time.monotonic() - began:.0f} s of about {expected}: " if expected else ""
                row.show(passed + what)
                return
            row.close()
            if not shown:
                shown.append(_bar(stack))
            shown[0](what, share)

        yield advance


def _bar(stack: ExitStack) -> "Progress":
    from rich.progress import BarColumn, Progress as Bar, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(20), TimeElapsedColumn())
    bar = stack.enter_context(Bar(*columns, console=make_console(stderr=True), transient=True))
    task = bar.add_task("", total=None)

    def advance(what: str, share: float) -> None:
        bar.update(task, description=what, total=None if share < 0 else 1.0, completed=max(share, 0.0))

    return advance


class StatusRow:
    """Takes the last row of the terminal behind a descriptor with the first `show`, gives it back at `close`.

    Nothing is drawn where it would disturb: in the background, and while a full-screen program has switched
    off the terminal's line mode. Terminals that cannot (TERM=dumb) or are tiny get a plain line now and then.
    """

    def __init__(self, descriptor: int, plain_seconds: float = _PLAIN_SECONDS) -> None:
        self._descriptor = descriptor
        self._plain_seconds = plain_seconds
        self._told = time.monotonic()
        self._size: tuple[int, int] | None = None  # (columns, rows) when the row was taken

    def show(self, text: str) -> None:
        """Put a text into the row, cut to its width."""
        with suppress(OSError, termios.error):
            size = tuple(os.get_terminal_size(self._descriptor))
            if not self._may_write():
                return
            if not _can_draw(*size):
                self._show_plainly(text)
                return
            if size != self._size:
                self._take(*size)
            columns, rows = size
            self._write(f"{_SAVE}\033[{rows};1H\033[2m{text[: columns - 1]}\033[22m{_CLEAR}{_RESTORE}")

    def close(self) -> None:
        """Empty the row and let all rows scroll again."""
        if self._size is None:
            return
        self._size = None
        with suppress(OSError):
            rows = os.get_terminal_size(self._descriptor).lines
            self._write(f"{_SAVE}\033[r\033[{rows};1H{_CLEAR}{_RESTORE}")

    def _show_plainly(self, text: str) -> None:
        if time.monotonic() - self._told >= self._plain_seconds:
            self._told = time.monotonic()
            self._write(f"nprof: {text}\r\n")

    def _may_write(self) -> bool:
        local_modes = termios.tcgetattr(self._descriptor)[3]
        return bool(local_modes & termios.ICANON) and os.tcgetpgrp(self._descriptor) == os.getpgrp()

    def _take(self, columns: int, rows: int) -> None:
        """Make only the rows above scroll; if the cursor was on the last one, its line goes up with it."""
        self._size = (columns, rows)
        self._write(f"{_DOWN}{_SAVE}\033[1;{rows - 1}r{_RESTORE}{_UP}")

    def _write(self, text: str) -> None:
        os.write(self._descriptor, text.encode())


def _can_draw(columns: int, rows: int) -> bool:
    return columns >= _LEAST_COLUMNS and rows >= _LEAST_ROWS and os.environ.get("TERM", "dumb") != "dumb"
