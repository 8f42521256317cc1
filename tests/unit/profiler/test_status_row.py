"""The line at the bottom of a terminal, seen from the terminal's other side."""

import fcntl
import os
import pty
import struct
import termios
from collections.abc import Iterator

import pytest

from numaplan.profiler.commands.progress import StatusRow

END = "<end>"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """(the terminal's own end, the program's end) of 24 rows and 40 columns, with us in its foreground."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(os, "tcgetpgrp", lambda _descriptor: os.getpgrp())
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def seen(terminal: tuple[int, int]) -> str:
    """What was written since the last call. The kernel hands it over when it likes, so up to a mark."""
    ours, theirs = terminal
    os.write(theirs, END.encode())
    text = ""
    while not text.endswith(END):
        text += os.read(ours, 1 << 16).decode()
    return text.removesuffix(END)


def test_only_the_rows_above_scroll_until_it_is_closed(terminal: tuple[int, int]) -> None:
    _ours, theirs = terminal
    row = StatusRow(theirs)
    row.show("x" * 99)
    drawn = seen(terminal)
    assert "\033[1;23r" in drawn and "\033[24;1H" in drawn
    assert drawn.count("x") == 39
    row.show("more")
    assert "r" not in seen(terminal).partition("more")[0].replace("\033[2m", "")  # the row is ours already
    row.close()
    assert "\033[r" in seen(terminal)
    row.close()
    assert seen(terminal) == ""


def test_a_terminal_that_shrank_is_taken_anew(terminal: tuple[int, int]) -> None:
    _ours, theirs = terminal
    row = StatusRow(theirs)
    row.show("a")
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 40, 0, 0))
    row.show("b")
    assert "\033[1;9r" in seen(terminal)


def test_nothing_is_drawn_where_it_would_disturb(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _ours, theirs = terminal
    row = StatusRow(theirs)
    modes = termios.tcgetattr(theirs)
    raw = [*modes[:3], modes[3] & ~termios.ICANON, *modes[4:]]
    termios.tcsetattr(theirs, termios.TCSANOW, raw)  # as a full-screen editor leaves it
    row.show("no")
    termios.tcsetattr(theirs, termios.TCSANOW, modes)
    monkeypatch.setenv("TERM", "dumb")
    row.show("no")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(os, "tcgetpgrp", lambda _descriptor: 1)
    row.show("no")
    row.close()
    assert seen(terminal) == ""


def test_a_terminal_without_rows_gets_plain_lines(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _ours, theirs = terminal
    monkeypatch.setenv("TERM", "dumb")
    row = StatusRow(theirs, plain_seconds=0.0)
    row.show("much")
    row.close()
    assert seen(terminal).strip() == "nprof: much"
    seldom = StatusRow(theirs, plain_seconds=3600.0)
    seldom.show("more")
    assert seen(terminal) == ""
