"""The line that is shown while a recording runs."""

import time
from collections import deque

_REMEMBERED = 8


def live_line(rate: float, samples: int, size: int, lost: int, threads: int) -> str:
    """What is shown while a recording runs; size: bytes; lost: events; threads: 0 when unknown."""
    parts = [f"{rate:,.0f} samples/s", f"{samples:,} in all", f"{size / 1e6:.1f} MB", f"{lost:,} lost"]
    return ", ".join(parts if not threads else [*parts, f"{threads} threads"])


class Rate:
    """A second's increase over the last few calls, since samples come in bursts."""

    def __init__(self) -> None:
        self._history = deque([(time.monotonic(), 0)], maxlen=_REMEMBERED)

    def of(self, count: int) -> float:
        """The rate, with the count that is reached now."""
        began, before = self._history[0]
        now = time.monotonic()
        self._history.append((now, count))
        return (count - before) / max(now - began, 1e-3)
