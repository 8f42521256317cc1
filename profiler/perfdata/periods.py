"""How many accesses a sample stands for, by kind of event: fixed when recorded, or as the kernel chose it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..trace.schema import EVENTS
from .native_accesses import Codes, Rows, Samples, add_periods

# A fault is not one of so many accesses: there is nothing to compare its period with.
_COUNTED = ("load", "store", "llc_miss_local", "llc_miss_remote")


class PeriodCounter:
    """Adds up the periods of a recording's accesses, block by block."""

    def __init__(self) -> None:
        kinds = len(EVENTS)
        self._samples = np.zeros((0, kinds), np.int64)  # of each event and kind, those without own periods
        self._told = np.zeros((2, kinds))  # periods of those that have some, and how many do

    def add(self, samples: Samples, rows: Rows, codes: Codes) -> None:
        """Count the chosen rows of a block; codes: the kind of event of each."""
        add_periods(samples, rows, codes, *self.expect(int(samples["event"].max(initial=-1)) + 1))

    def expect(self, events: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The arrays that `add_periods` adds to, for so many events at least; good until the next call."""
        if events > len(self._samples):
            self._samples = np.pad(self._samples, ((0, events - len(self._samples)), (0, 0)))
        return self._told, self._samples

    def periods(self, attrs: Sequence[Mapping[str, Any]]) -> dict[str, int]:
        """Mean period by the name of the kind of event; empty unless it is known of all.

        attrs: the recording's events in order, with their fixed `period` (0: none).
        """
        fixed = np.array([attr["period"] for attr in attrs[: len(self._samples)]], np.float64)
        untold = self._samples[: len(fixed)][fixed == 0].sum()
        total = self._told[0] + fixed @ self._samples[: len(fixed)]
        count = self._told[1] + self._samples.sum(axis=0)
        if untold:
            return {}
        return {
            name: max(1, round(total[code] / count[code]))
            for code, name in enumerate(EVENTS)
            if name in _COUNTED and count[code]
        }


def period_facts(periods: Mapping[str, int]) -> dict[str, str]:
    """What a trace's meta table says of periods that differ from event to event."""
    return {"periods": json.dumps(dict(periods))} if len(set(periods.values())) > 1 else {}
