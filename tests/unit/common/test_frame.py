"""Lines for people."""

import io
import sys

import pytest

from numaplan.common import tell


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
