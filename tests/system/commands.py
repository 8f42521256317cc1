"""Run our commands as a user would, and read their one-line errors."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent


def run(
    *words: str | Path, cwd: Path | None = None, stdin: bytes | None = None, timeout: float = 240
) -> subprocess.CompletedProcess[bytes]:
    """One of our commands, from the environment that runs the tests."""
    command = [str(BIN / str(words[0])), *map(str, words[1:])]
    return subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        cwd=cwd,
        timeout=timeout,
        check=False,
        env=clean_environment(),
    )


def clean_environment() -> dict[str, str]:
    """The environment without what would change how we behave."""
    return {key: value for key, value in os.environ.items() if not key.startswith("NUMAPLAN_")}


def succeed(*words: str | Path, cwd: Path | None = None, stdin: bytes | None = None) -> bytes:
    """The stdout of a command that must succeed."""
    result = run(*words, cwd=cwd, stdin=stdin)
    assert result.returncode == 0, result.stderr.decode(errors="replace")
    return result.stdout


def one_line_error(result: subprocess.CompletedProcess[bytes], prog: str, code: int) -> str:
    """The single error line of a command that must have failed with this exit code."""
    text = result.stderr.decode(errors="replace")
    assert result.returncode == code, text
    assert "Traceback" not in text
    errors = [line for line in text.splitlines() if line.startswith(f"{prog}: error: ")]
    assert len(errors) == 1, text
    return errors[0]


def needs(*programs: str) -> None:
    """Skip the test where a program is missing."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def compiled(source: Path, folder: Path, *flags: str) -> Path:
    """A C program of ours, built into a folder."""
    needs("cc")
    target = folder / source.stem
    subprocess.run(["cc", "-O2", "-g", "-pthread", source, "-o", target, *flags], check=True, timeout=60)
    return target
