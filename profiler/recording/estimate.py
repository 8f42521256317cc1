"""How long a recording will take, by a run without recording."""

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

from numaplan.common import UsageError, ended_by, find_program, started_as

from ..backends.choice import HARDWARE

# Emulated accesses take some 20 ns each; a program makes 0.8 to 4 a ns of its processors' time.
_EMULATED = (15.0, 90.0)
_PERF = (1.0, 1.3)
_START_SECONDS = 1.0


@dataclass(frozen=True)
class Estimate:
    """seconds: the program's own; least, most: of the recording."""

    seconds: float
    least: float
    most: float

    @property
    def span(self) -> str:
        """Such as `60-90 s`."""
        unit, scale = ("min", 60.0) if self.least >= 120 else ("s", 1.0)
        return f"{_rounded(self.least / scale)}-{_rounded(self.most / scale)} {unit}"


def estimate(argv: Sequence[str], backend: str) -> Estimate:
    """Run a program natively, without input and with its output thrown away, and judge by the time it took.

    Raises UsageError when it cannot be started or fails: that would say nothing of a good run.
    """
    find_program(argv)
    before, began = os.times(), time.monotonic()
    none = subprocess.DEVNULL
    try:
        code = subprocess.run(started_as(argv), stdin=none, stdout=none, stderr=none, check=False).returncode
    except OSError as error:
        raise UsageError(
            f"{argv[0]}: {error.strerror}", "give a program that runs on this machine"
        ) from error
    if code:
        number = ended_by(128 - code)
        ended = f"was ended by {number.name}" if number else f"ended with {code}"
        raise UsageError(
            f"--estimate: {argv[0]} {ended} without input",
            "leave --estimate out, or give a command line that works without",
        )
    after, seconds = os.times(), time.monotonic() - began
    # Each difference by itself: of their sum rounding can leave less than nothing.
    used = (after.children_user - before.children_user) + (after.children_system - before.children_system)
    return judged(seconds, used, backend)


def judged(seconds: float, processor_seconds: float, backend: str) -> Estimate:
    """By the time of a native run, and that of all its threads together: emulated ones take turns."""
    if backend in ("emulate", "lab"):
        waiting = max(0.0, seconds - processor_seconds)
        least, most = (processor_seconds * factor + waiting + _START_SECONDS for factor in _EMULATED)
    else:
        start = _START_SECONDS if backend in HARDWARE else 0.0
        least, most = (seconds * factor + start for factor in _PERF)
    return Estimate(seconds, least, most)


def _rounded(number: float) -> str:
    """With two digits that count."""
    return f"{float(f'{number:.2g}'):g}" if number < 100 else f"{round(number, -1):.0f}"
