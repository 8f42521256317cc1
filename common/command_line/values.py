"""Values of options: NAME=VALUE, processes, sizes."""

import re
from collections.abc import Sequence

from ..errors import UsageError

_LARGEST_PID = 1 << 22
_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?([KMGT]?)(?:I?B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def read_assignments(option: str, words: Sequence[str], example: str) -> dict[str, str]:
    """`["T=2"]` -> {"t": "2"}; raises UsageError for a word without name or value, or a name given twice."""
    read: dict[str, str] = {}
    for word in words:
        name, _, value = (part.strip() for part in word.partition("="))
        if not name or not value:
            raise UsageError(f"{option} {word!r} is not NAME=VALUE", f"write for example {option} {example}")
        if name.lower() in read:
            raise UsageError(f"{option} {name}: given twice", "give it once")
        read[name.lower()] = value
    return read


def read_pids(option: str, texts: Sequence[str]) -> tuple[int, ...]:
    """Process ids, also with commas between, each once; raises UsageError."""
    pids = []
    for text in ",".join(texts).split(",") if texts else ():
        if not (text.isascii() and text.isdecimal() and 0 < int(text[:9]) <= _LARGEST_PID and len(text) < 9):
            raise UsageError(
                f"{option} {','.join(texts)}: {text!r} is no process",
                "give ids of running processes, with commas between",
            )
        pids.append(int(text))
    return tuple(dict.fromkeys(pids))


def read_size(option: str, text: str, *, least: int = 0, most: int = 1 << 61) -> int:
    """Bytes of `500`, `64K`, `1.5M`, `2GiB`; raises UsageError for none and for one out of bounds."""
    match = _SIZE.fullmatch(text.strip())
    size = round(float(match[1]) * _UNITS[match[2].upper()]) if match else -1
    if least <= size <= most:
        return size
    bound = f" of at most {_word(most)}" if size > most else f" of at least {_word(least)}" if least else ""
    raise UsageError(f"{option} {text}: not a size{bound}", "give for example 64K, 1500M or 2.5G")


def _word(size: int) -> str:
    unit = max((unit for unit, value in _UNITS.items() if size % value == 0), key=_UNITS.__getitem__)
    return f"{size // _UNITS[unit]}{unit}"
