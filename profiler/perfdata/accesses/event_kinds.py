"""What the samples of an event are, by the event's name, and how many accesses each stands for."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...trace.schema import EVENT_CODE, EVENTS
from .native import NEVER_AN_ACCESS, NOT_AN_ACCESS, Codes

# What an event's samples are, by its name; the first that matches counts.
_KINDS = (
    (r"mem-loads-aux|^dummy|context-switch", "never"),
    (r"faults", "fault"),
    (r"remote_(dram|hitm|fwd|pmm|cache)|node-load-misses", "llc_miss_remote"),
    (r"local_(dram|pmm)|node-loads", "llc_miss_local"),
    (r"mem-stores|all_stores|\bstores\b", "store"),
    (r"mem-loads|mem_trans_retired|all_loads|\bloads\b|ibs_op|arm_spe", "load"),
)
# perf makes a sample of an operation of ARM's SPE for each of these that it had.
_OF_SPE = re.compile(r"(l1d|llc|tlb)-(access|miss)|remote-access|branch(-miss)?|instructions")
_ALL_OF_SPE = "memory"  # of each load and store
_CODES = {**EVENT_CODE, "never": NEVER_AN_ACCESS}
# A fault is not one of so many accesses: there is nothing to compare its period with.
_COUNTED = ("load", "store", "llc_miss_local", "llc_miss_remote")


def event_codes(events: Sequence[str]) -> Codes:
    """The event code of each event by its name, or a code of what is no access (accesses.native)."""
    found = []
    if _ALL_OF_SPE in events:
        events = ["dummy" if _OF_SPE.fullmatch(name) else name for name in events]
    for name in events:
        kind = next((kind for pattern, kind in _KINDS if re.search(pattern, name, re.IGNORECASE)), "")
        found.append(_CODES.get(kind, NOT_AN_ACCESS))
    return np.array(found, dtype=np.uint8)


def tell_alike(events: Sequence[str]) -> bool:
    """Whether several of the events have a sample each of the same operation."""
    return _ALL_OF_SPE not in events and len([name for name in events if _OF_SPE.fullmatch(name)]) > 1


def of_amd(events: Sequence[str]) -> NDArray[np.bool_]:
    """Which events AMD's IBS samples, by their names."""
    return np.array(["ibs_op" in name for name in events], np.bool_)


class PeriodCounter:
    """Adds up the periods of a recording's accesses, fixed or as the kernel chose them, block by block."""

    def __init__(self) -> None:
        kinds = len(EVENTS)
        self._without = np.zeros((0, kinds), np.int64)  # by event and kind: samples that tell no period
        self._sums = np.zeros((2, kinds))  # by kind: periods that samples tell, and how many do

    def arrays(self, events: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The arrays that a Collector adds to, for so many events at least; valid until the next call."""
        if events > len(self._without):
            self._without = np.pad(self._without, ((0, events - len(self._without)), (0, 0)))
        return self._sums, self._without

    def periods(self, attrs: Sequence[Mapping[str, Any]]) -> dict[str, int]:
        """Mean period by the name of the kind of event; empty unless it is known of all.

        attrs: the recording's events in order, with their fixed `period` (0: none).
        """
        fixed = np.array([attr["period"] for attr in attrs[: len(self._without)]], np.float64)
        unknown = self._without[: len(fixed)][fixed == 0].sum()
        total = self._sums[0] + fixed @ self._without[: len(fixed)]
        count = self._sums[1] + self._without.sum(axis=0)
        if unknown:
            return {}
        return {
            name: max(1, round(total[code] / count[code]))
            for code, name in enumerate(EVENTS)
            if name in _COUNTED and count[code]
        }


def period_facts(periods: Mapping[str, int]) -> dict[str, str]:
    """What a trace's meta table says of periods that differ from event to event."""
    return {"periods": json.dumps(dict(periods))} if len(set(periods.values())) > 1 else {}
