"""Run our commands as a user would, and read their one-line errors."""

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from numaplan.common import NumaplanError
from numaplan.profiler.backends.emulation.qemu import find_qemu

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
        if program == "qemu-x86_64":
            if not emulator():
                pytest.skip("no QEMU here emulates (nprof setup)")
        elif shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def emulator() -> list[str]:
    """The words that start the QEMU that recordings use; none where there is none."""
    with suppress(NumaplanError):
        return find_qemu("x86_64")
    return []


def on_terminal(
    words: Sequence[str | Path], awaited: str, rows: int = 24, columns: int = 100
) -> tuple[int, str]:
    """(exit code, all that a terminal got) of a command that has the terminal; awaited: a pattern, upon which
    Enter is typed."""
    pid, descriptor = pty.fork()
    if pid == 0:
        os.execve(words[0], [str(word) for word in words], {**clean_environment(), "TERM": "xterm"})
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    got, typed = b"", False
    with suppress(OSError):  # EIO: the other side has gone
        while piece := os.read(descriptor, 1 << 16):
            got += piece
            if not typed and re.search(awaited, got.decode(errors="replace")):
                typed = os.write(descriptor, b"\n") > 0
    os.close(descriptor)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), got.decode()
