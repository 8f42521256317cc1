"""Sets of cpus and nodes: our own, and as Linux and hwloc write them: lists (`0-3,8`), masks (`0x3,0001`)."""

import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

from numaplan.common import UsageError

from .topology import MAX_CPUS

_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9})/(\d{1,9}))?)?")
_CHUNK_BITS = 32


def parse_list(text: str, where: str) -> tuple[int, ...]:
    """The ids of a kernel list such as `0-3,8,10-15:2/4`, ascending; old kernels end it with a NUL.

    Raises UsageError naming `where` for anything else, and for ids beyond what a machine may have.
    """
    ids: set[int] = set()
    for part in text.replace("\0", "").strip().split(","):
        if part.strip():
            ids.update(_range(part.strip(), where))
    return tuple(sorted(ids))


def _range(part: str, where: str) -> Iterator[int]:
    match = _RANGE.fullmatch(part)
    if match is None:
        raise UsageError(
            f"{where}: {part[:40]!r} is not a list of cpus or nodes", "expected a list like 0-3,8"
        )
    first, last = int(match[1]), int(match[2] or match[1])
    if last >= MAX_CPUS or first > last:
        raise UsageError(f"{where}: range {part[:40]!r} is out of order or too large", "correct the list")
    used, group = (int(match[3]), int(match[4])) if match[3] else (1, 1)
    if not 1 <= used <= group:
        raise UsageError(f"{where}: range {part[:40]!r} has an impossible stride", "correct the list")
    return (value for value in range(first, last + 1) if (value - first) % group < used)


def format_list(ids: Iterable[int]) -> str:
    """Ids as `parse_list` and `taskset -c` take them: `0-3,8`."""
    parts: list[list[int]] = []
    for number in sorted(ids):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def parse_mask(text: str, where: str) -> tuple[int, ...]:
    """The ids of a mask of comma separated 32-bit words, highest first; an empty word is zero (hwloc).

    hwloc's `0xf...f` prefix of an endless set stands for every id a machine may have above the words given.
    """
    words = text.replace("\0", "").strip().split(",")
    endless = bool(words) and words[0].strip().lower() == "0xf...f"
    words = words[1:] if endless else words
    if len(words) > MAX_CPUS // _CHUNK_BITS:
        raise UsageError(f"{where}: mask of {len(words)} words", f"at most {MAX_CPUS} cpus are supported")
    value = 0
    for word in words:
        value = value << _CHUNK_BITS | _word(word.strip(), where)
    if endless:
        value |= ((1 << MAX_CPUS) - 1) >> (len(words) * _CHUNK_BITS) << (len(words) * _CHUNK_BITS)
    return tuple(_bits(value))


def _word(word: str, where: str) -> int:
    try:
        value = int(word, 16) if word else 0
    except ValueError:
        value = -1
    if not 0 <= value < 1 << _CHUNK_BITS:
        raise UsageError(
            f"{where}: {word[:40]!r} is not a 32-bit mask word", "expected a list like 0x3,00000001"
        )
    return value


def _bits(value: int) -> Iterator[int]:
    text = bin(value)[:1:-1]
    return (bit for bit, digit in enumerate(text) if digit == "1")


def own_cpuset() -> Collection[int]:
    """The cpus that this process's cpuset allows, whatever it is bound to."""
    bound = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, range(os.sysconf("SC_NPROCESSORS_CONF")))
        return os.sched_getaffinity(0)
    except OSError:
        return bound
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, bound)
