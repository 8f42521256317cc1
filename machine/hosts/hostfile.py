"""Hosts listed in a file: Open MPI's form (`n01 slots=8`), MPICH's (`n01:8`), or a name a line."""

import re
from pathlib import Path
from typing import NamedTuple

from numaplan.common import UsageError, read_document

_LINE = re.compile(r"(?P<name>[^\s:=]+)(?::(?P<count>[0-9]{1,5}))?(?P<rest>(?:\s+\S+)*)")
_SLOTS = re.compile(r"(?<!\S)slots\s*=\s*(\S+)")  # and not max_slots or max-slots
_HINT = "write a host a line, such as 'n01 slots=8' or 'n01:8'"


class ListedHost(NamedTuple):
    """A host and how many ranks it takes; slots 0: as many as it has cpus."""

    name: str
    slots: int


def hosts_of_file(path: Path) -> list[ListedHost]:
    """The hosts of a hostfile in their order; raises UsageError naming the line that is none.

    A host that is listed several times has the slots of all its lines, 1 for a line that says none (as batch
    systems write them).
    """
    try:
        text = read_document(path, "hostfile").decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not text", _HINT) from error
    found: dict[str, list[int]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].strip()
        if words:
            name, slots = _host(words, f"{path}: line {number}")
            found.setdefault(name, []).append(slots)
    if not found:
        raise UsageError(f"{path}: no hosts", _HINT)
    return [
        ListedHost(name, listed[0] if len(listed) == 1 else sum(max(slots, 1) for slots in listed))
        for name, listed in found.items()
    ]


def _host(words: str, where: str) -> ListedHost:
    line = _LINE.fullmatch(words)
    if not line:
        raise UsageError(f"{where}: cannot be read", _HINT)
    given = _SLOTS.search(line["rest"])
    word = line["count"] or (given[1] if given else "")
    if not word.isdecimal() and word not in ("", "auto"):
        raise UsageError(f"{where}: {word} slots", _HINT)
    if word.isdecimal() and not int(word):
        raise UsageError(f"{where}: no slots", "leave the host out, or give it some")
    return ListedHost(line["name"], int(word) if word.isdecimal() else 0)
