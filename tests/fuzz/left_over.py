"""What is wrong with how a start ended: its exit code, what it said, what it left."""

import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

import msgspec

from numaplan.common import UsageError
from numaplan.profiler import Trace
from tests.fuzz.starts import Start

_NEVER = (
    "Traceback", "internal error", "Exception ignored", "Fatal Python error",
    "core dumped", "terminate called", "Segmentation fault", "Warning:",
)  # fmt: skip
_HARMLESS = ("SIGSTOP", "SIGTSTP", "SIGCONT")
_ERRORS = (2, 3)  # of what a killed child was for
_KILLED = 128 + signal.SIGKILL


def problems(
    folder: Path, start: Start, code: int, sent: Sequence[tuple[str, str, float]], pids: set[int]
) -> Iterator[str]:
    """What is wrong; folder: with `work`, `tmp`, and what it said in `stdout` and `stderr`."""
    said = (folder / "stderr").read_text(errors="replace")
    yield from (f"it says {word!r}" for word in _NEVER if word in said)
    if code not in (allowed := _allowed(start, [name for name, _, _ in sent])):
        yield f"exit code {code}, not of {sorted(allowed)}"
    errors = [line for line in said.splitlines() if line.startswith(f"{start.words[0]}: error: ")]
    if len(errors) > 1:
        yield "it has several errors"
    if code in _ERRORS and not errors:
        yield f"exit code {code} without an error"
    yield from _left(folder, start, code)
    yield from (f"shared memory {key} is left" for key in _segments(pids))


def _allowed(start: Start, sent: Sequence[str]) -> set[int]:
    """The codes that it may end with after these signals; a signal may have come too late."""
    codes = {start.code}
    for name in sent:
        if name in _HARMLESS:
            continue
        if name == "SIGKILL":
            codes |= {_KILLED, 1, *_ERRORS}
            continue
        number = int(signal.Signals[name])
        # Before it has begun anything it dies of it, as a shell tells by the same number.
        codes |= {128 + number, -number}
        if name == "SIGUSR2" and "--on-signal" in start.words:
            codes.add(0)
    return codes


def _left(folder: Path, start: Start, code: int) -> Iterator[str]:
    yield from (f"{path.name} is left in TMPDIR" for path in (folder / "tmp").iterdir())
    inputs = {path.name for path in (folder.parent / "inputs").iterdir()}
    for path in (folder / "work").iterdir():
        if path.name in inputs:
            continue
        if path.name not in start.makes:
            yield f"{path.name} is left"
        elif reason := damage(path):
            yield f"{path.name} is not whole: {reason}"
    if code == 0 and start.code == 0:
        made = {path.name for path in (folder / "work").iterdir()}
        yield from (f"{name} was not made" for name in start.makes if name not in made)


def damage(path: Path) -> str:
    """Why an output is not whole; empty if it is."""
    try:
        if path.name == "j":  # a journal is appended to
            return ""
        if path.is_dir():
            return "; ".join(filter(None, map(damage, path.iterdir())))
        if path.name.startswith("."):
            return "a hidden file"
        if path.suffix == ".db":
            with Trace.open(path) as trace:
                trace.read_small_tables()
        elif path.suffix == ".json":
            msgspec.json.decode(path.read_bytes())
        elif path.suffix == ".xml":
            ElementTree.fromstring(path.read_text())
        elif path.suffix == ".html" and not path.read_text().rstrip().endswith("</html>"):
            return "it has no end"
        elif path.stat().st_size == 0:
            return "it is empty"
    except (UsageError, msgspec.DecodeError, ElementTree.ParseError) as error:
        return str(error)
    return ""


def _segments(pids: set[int]) -> Iterator[str]:
    """Keys of System V shared memory that one of these processes made."""
    _, *rows = Path("/proc/sysvipc/shm").read_text().splitlines()
    yield from (row.split()[1] for row in rows if int(row.split()[4]) in pids)
