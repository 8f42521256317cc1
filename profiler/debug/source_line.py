"""One line of a source file, where the file is still what was compiled."""

import os
import stat
from contextlib import suppress
from functools import lru_cache

_MOST_BYTES = 16 << 20
_MOST_LINE = 4096


def source_line(path: str, line: int, compiled_ns: int) -> str:
    """The text of a line, without comments; empty where there is none, or the file changed since."""
    lines = _lines(path)
    if lines is None or lines[0] > compiled_ns or not 0 < line <= len(lines[1]):
        return ""
    text = lines[1][line - 1][:_MOST_LINE].decode("utf-8", "replace")
    return text.partition("//")[0].partition("!")[0] if "!=" not in text else text.partition("//")[0]


@lru_cache(maxsize=64)
def _lines(path: str) -> tuple[int, list[bytes]] | None:
    """When the file was changed, and its lines."""
    with suppress(OSError, ValueError):
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(file, "rb") as opened:
            about = os.fstat(file)
            if stat.S_ISREG(about.st_mode) and about.st_size <= _MOST_BYTES:
                return about.st_mtime_ns, opened.read(_MOST_BYTES).splitlines()
    return None
