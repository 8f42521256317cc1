"""What `--online` was asked for."""

import re
from dataclasses import dataclass

from numaplan.common import UsageError

SAMPLE_PERIOD = 1000  # of a hardware sampler
_BUDGET = re.compile(r"(moves|mb)=([0-9]{1,9}(?:\.[0-9]{1,6})?)")


@dataclass(frozen=True)
class OnlineOptions:
    """policy: its name; settings: of `--set`; moves, megabytes: the budget a second; journal, save: files, or
    ""; backend: which sampler; overhead: share of all cpus' time that the loop may take; quiet: no summary.
    """

    policy: str
    settings: tuple[str, ...] = ()
    moves: float = 8.0
    megabytes: float = 256.0
    journal: str = ""
    save: str = ""
    backend: str = "auto"
    overhead: float = 0.01
    quiet: bool = False


def read_budget(text: str) -> tuple[float, float]:
    """`moves=8,mb=256` (either, or both) as (moves, megabytes) a second; raises UsageError."""
    found = {"moves": 8.0, "mb": 256.0}
    for limit in text.split(",") if text else ():
        match = _BUDGET.fullmatch(limit.strip())
        if match is None:
            raise UsageError(
                f"--budget {text}: not a budget", "write for example moves=8,mb=256 (per second)"
            )
        found[match[1]] = float(match[2])
    return found["moves"], found["mb"]
