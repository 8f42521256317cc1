"""Small files of /proc and /sys below a root, which may be gone at any moment."""

import os
from contextlib import suppress
from pathlib import Path

from numaplan.machine import parse_list

_MOST = 1 << 20


def text(path: Path) -> str:
    """A file's text; empty where it is not there or may not be read."""
    with suppress(OSError):
        return raw(path)
    return ""


def raw(path: Path) -> str:
    """A file's text. Raises OSError."""
    with path.open("rb") as file:
        return file.read(_MOST).decode("utf-8", "replace")


def number(path: Path) -> int | None:
    """The number that a file holds."""
    with suppress(ValueError):
        return int(text(path))
    return None


def ids(listed: str) -> tuple[int, ...]:
    """The ids of a kernel list; none where it is none."""
    from numaplan.common import UsageError

    with suppress(UsageError):
        return parse_list(listed, "list")
    return ()


def numbered(folder: Path, prefix: str = "") -> list[int]:
    """The numbers N of a folder's entries named prefixN, ascending."""
    try:
        names = os.listdir(folder)  # noqa: PTH208  # names alone
    except OSError:
        return []
    found = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
    return sorted(int(name) for name in found if name.isdecimal())


def fields(content: str) -> dict[str, str]:
    """`Key: value` lines."""
    pairs = (line.partition(":") for line in content.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def counters(content: str) -> dict[str, int]:
    """`key value` lines."""
    words = (line.split() for line in content.splitlines())
    return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdecimal()}
