"""Small files of /proc and /sys: this machine's, or those of a recorded tree."""

from pathlib import Path

ROOT = Path("/")
_TEXT_LIMIT = 64 << 10  # /proc/cpuinfo repeats itself for every cpu


def read_text(path: Path) -> str:
    """The start of a file's text; empty when it is not there."""
    try:
        with path.open("rb") as file:
            return file.read(_TEXT_LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""


def read_number(path: Path) -> int | None:
    """The number in a file; None when there is none."""
    try:
        return int(read_text(path))
    except ValueError:
        return None
