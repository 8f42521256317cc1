"""How many accesses a sample stands for, by kind of event: fixed when recorded, or as the kernel chose it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numaplan.profiler.trace.schema import EVENTS

# A fault is not one of so many accesses: there is nothing to compare its period with.
_COUNTED = ("load", "store", "llc_miss_local", "llc_miss_remote")


class PeriodCounter:
    """Adds up the periods of a recording's accesses, block by block."""

    def __init__(self) -> None:
        self._samples = np.zeros((len(EVENTS), 0), np.int64)  # of each kind, by event without own periods
        self._told = np.zeros((2, len(EVENTS)))  # periods of those that have some, and how many do

    def add(
        self, samples: Mapping[str, NDArray[Any]], rows: NDArray[np.intp], codes: NDArray[np.uint8]
    ) -> None:
        """Count the chosen rows of a block; codes: the kind of event of each."""
        kinds = len(EVENTS)
        event, period = samples["event"][rows], samples["period"][rows]
        if period.any():
            own = period > 0
            self._told[0] += np.bincount(codes[own], period[own].astype(np.float64), minlength=kinds)
            self._told[1] += np.bincount(codes[own], minlength=kinds)
            event, codes = event[~own], codes[~own]
        events = max(int(event.max(initial=-1)) + 1, self._samples.shape[1])
        found = np.bincount(event * kinds + codes, minlength=events * kinds).reshape(events, kinds).T
        found[:, : self._samples.shape[1]] += self._samples
        self._samples = found

    def periods(self, attrs: Sequence[Mapping[str, Any]]) -> dict[str, int]:
        """Mean period by the name of the kind of event; empty unless it is known of all.

        attrs: the recording's events in order, with their fixed `period` (0: none).
        """
        fixed = np.array([attr["period"] for attr in attrs[: self._samples.shape[1]]], np.float64)
        untold = self._samples[:, : len(fixed)][:, fixed == 0].sum()
        total = self._told[0] + (self._samples[:, : len(fixed)] * fixed).sum(axis=1)
        count = self._told[1] + self._samples.sum(axis=1)
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
