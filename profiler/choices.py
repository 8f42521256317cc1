"""What `nprof record` was asked for besides the program: the options that only recording with perf has."""

import re
from collections.abc import Sequence

from numaplan.common import UsageError
from numaplan.profiler.backends.base import PerfChoices

_SIZE = re.compile(r"([0-9]{1,12})([KMGT]?)B?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SECONDS = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ms|s|m|h|)")
_SECONDS_OF = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
_LEAST_BYTES = 1 << 20  # perf overshoots by what its buffers hold
_LARGEST_PID = 1 << 22


def read_choices(
    *,
    freq: int = 0,
    duration: str = "",
    pids: Sequence[str] = (),
    all_cpus: bool = False,
    max_size: str = "",
    events: Sequence[str] = (),
    phys: bool = False,
) -> PerfChoices:
    """The options as a backend takes them; raises UsageError naming the one that is wrong.

    duration: `10`, `10s`, `500ms`, `2m`, `1h`; max_size: `64M`, `2G`; pids: numbers, also with commas.
    """
    return PerfChoices(
        freq=freq,
        duration=_seconds(duration) if duration else 0.0,
        pids=tuple(_pid(word) for words in pids for word in words.split(",")),
        all_cpus=all_cpus,
        max_bytes=_bytes(max_size) if max_size else 0,
        events=tuple(_event(event) for event in events),
        phys=phys,
    )


def _seconds(text: str) -> float:
    match = _SECONDS.fullmatch(text)
    seconds = float(match[1]) * _SECONDS_OF[match[2]] if match else 0.0
    if seconds <= 0:
        raise UsageError(f"--duration {text}: not a time", "give seconds, or such as 500ms, 10s, 2m")
    return seconds


def _bytes(text: str) -> int:
    match = _SIZE.fullmatch(text)
    size = int(match[1]) * _UNITS[match[2].upper()] if match else 0
    if not _LEAST_BYTES <= size < 1 << 62:
        raise UsageError(f"--max-size {text}: not a size of at least 1M", "give such as 64M or 2G")
    return size


def _pid(word: str) -> int:
    if not (word.isascii() and word.isdecimal() and 0 < int(word[:9]) <= _LARGEST_PID and len(word) < 9):
        raise UsageError(f"--pid {word}: not a process", "give the number of a running one")
    return int(word)


def _event(event: str) -> str:
    if not event or event.startswith("-"):
        raise UsageError(f"--events {event}: not an event", "see 'perf list'")
    return event
