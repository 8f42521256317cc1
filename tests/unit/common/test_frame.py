"""Lines for people."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from numaplan.common import tell
from numaplan.common.command_line.frame import run_framed


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


def test_a_current_folder_that_was_removed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert run_framed(Path.cwd, "nlab") == 2
    assert capfd.readouterr().err.startswith("nlab: error: the current folder has been removed")
    monkeypatch.chdir(tmp_path)
    assert run_framed(Path("none").stat, "nlab") == 2
    assert "internal error: FileNotFoundError" in capfd.readouterr().err


def test_a_name_that_leads_nowhere_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    for path, why in (
        (tmp_path / ("x" * 300), "File name too long"),
        (tmp_path / "file/x", "Not a directory"),
    ):
        assert run_framed(path.stat, "nmap") == 2
        assert capfd.readouterr().err.startswith(f"nmap: error: {path}: {why} — ")
