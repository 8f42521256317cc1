"""Options with several values: NAME=VALUE, and processes."""

from collections.abc import Sequence

from ..errors import UsageError

_LARGEST_PID = 1 << 22


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
