"""Lines for people."""

import io
import os
import subprocess
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


SAYS = """
import sys
from numaplan.common.command_line.frame import run_framed
sys.exit(run_framed(lambda: print("\N{MIDDLE DOT} 1"), "nmap"))
"""


@pytest.mark.parametrize(
    ("redirected", "encoding", "code", "out", "err"),
    [
        (">/dev/full", "utf-8", 2, "", "nmap: error: the output: No space left on device — free some space"),
        (">&-", "utf-8", 0, "", ""),
        ("2>&-", "utf-8", 0, "\N{MIDDLE DOT} 1\n", ""),
        ("<&-", "utf-8", 0, "\N{MIDDLE DOT} 1\n", ""),
        ("", "ascii", 0, "? 1\n", ""),
        ("", "ascii:surrogateescape", 0, "? 1\n", ""),  # as in the C locale
    ],
)
def test_streams_that_are_full_or_closed_or_lack_letters(
    redirected: str, encoding: str, code: int, out: str, err: str
) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(
        ["sh", "-c", f'"$0" -c "$1" {redirected}', sys.executable, SAYS],
        capture_output=True,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stdout.decode()) == (code, out)
    assert done.stderr.decode().startswith(err) and done.stderr.count(b"\n") == bool(err)
