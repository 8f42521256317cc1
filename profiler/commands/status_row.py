"""One line at the bottom of a terminal on which a program runs and writes: its rows above scroll as ever."""

import os
import termios
from contextlib import suppress

_LEAST_ROWS, _LEAST_COLUMNS = 4, 20
_SAVE, _RESTORE, _DOWN, _UP, _CLEAR = "\0337", "\0338", "\033D", "\033[1A", "\033[K"


class StatusRow:
    """Takes the last row of the terminal behind a descriptor with the first `show`, gives it back at `close`.

    Nothing is drawn where it would disturb: in the background, on terminals that cannot (TERM=dumb) or are
    tiny, and while a full-screen program has switched off the terminal's line mode.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._size: tuple[int, int] | None = None  # (columns, rows) when the row was taken

    def show(self, text: str) -> None:
        """Put a text into the row, cut to its width."""
        with suppress(OSError, termios.error):
            size = tuple(os.get_terminal_size(self._descriptor))
            if not self._may_draw(*size):
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

    def _may_draw(self, columns: int, rows: int) -> bool:
        if columns < _LEAST_COLUMNS or rows < _LEAST_ROWS or os.environ.get("TERM", "dumb") == "dumb":
            return False
        local_modes = termios.tcgetattr(self._descriptor)[3]
        return bool(local_modes & termios.ICANON) and os.tcgetpgrp(self._descriptor) == os.getpgrp()

    def _take(self, columns: int, rows: int) -> None:
        """Make only the rows above scroll; if the cursor was on the last one, its line goes up with it."""
        self._size = (columns, rows)
        self._write(f"{_DOWN}{_SAVE}\033[1;{rows - 1}r{_RESTORE}{_UP}")

    def _write(self, text: str) -> None:
        os.write(self._descriptor, text.encode())
