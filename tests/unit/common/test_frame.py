"""Signals that interrupt a command as Ctrl-C does, and lines for people."""

import io
import os
import signal
import sys

import pytest

from numaplan.common import interruptible, tell


def test_signals_interrupt_inside_and_are_told() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with interruptible(signal.SIGTERM, signal.SIGHUP) as received:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        assert received == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) == before


class Writes(io.StringIO):
    """Keeps what each write was given."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[str] = []

    def write(self, text: str) -> int:
        self.given.append(text)
        return len(text)


def test_lines_for_people_are_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ranks of a job share stderr, where it may have no buffer (PYTHONUNBUFFERED)."""
    stderr = Writes()
    monkeypatch.setattr(sys, "stderr", stderr)
    tell("nprof: one", "nprof: two")
    tell()
    assert stderr.given == ["nprof: one\nnprof: two\n"]
    monkeypatch.setattr(sys, "stderr", None)
    tell("nprof: nobody reads it")
