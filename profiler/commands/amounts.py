"""Times and numbers of accesses as they are given on a command line."""

import re

from numaplan.common import UsageError

_SECONDS = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ms|s|m|h|)")
_SECONDS_OF = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
_ACCESSES = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)([KMG])")
_ACCESSES_OF = {"K": 10**3, "M": 10**6, "G": 10**9}
_MOST_SECONDS = 1e9  # thirty years: what waits can still be told so much


def seconds(option: str, text: str) -> float:
    """Of `10`, `10s`, `500ms`, `2m`, `1h`; raises UsageError for none, for 0 and for too long."""
    match = _SECONDS.fullmatch(text)
    found = float(match[1]) * _SECONDS_OF[match[2]] if match else 0.0
    if not 0 < found <= _MOST_SECONDS:
        raise UsageError(f"{option} {text}: not a time", "give seconds, or for example 500ms, 10s, 2m")
    return found


def time_or_accesses(option: str, text: str) -> tuple[float, int]:
    """Seconds of `10s`, or accesses of `20M`; the other is 0, as both are for nothing given.

    Raises UsageError for a number without a unit, which could be either.
    """
    if not text:
        return 0.0, 0
    if match := _ACCESSES.fullmatch(text):
        accesses = round(float(match[1]) * _ACCESSES_OF[match[2]])
        if accesses:
            return 0.0, accesses
    elif not text[-1:].isdecimal():
        return seconds(option, text), 0
    raise UsageError(f"{option} {text}: neither a time nor accesses", "give for example 2s, 500ms or 20M")
