"""What the samples of an event are, by the event's name."""

import re
from collections.abc import Sequence

import numpy as np

from ..trace.schema import EVENT_CODE
from .native_accesses import NONE, Codes

# What an event's samples are, by its name; the first that matches counts.
_KINDS = (
    (r"mem-loads-aux|^dummy|context-switch", ""),
    (r"faults", "fault"),
    (r"remote_(dram|hitm|fwd|pmm|cache)|node-load-misses", "llc_miss_remote"),
    (r"local_(dram|pmm)|node-loads", "llc_miss_local"),
    (r"mem-stores|all_stores|\bstores\b", "store"),
    (r"mem-loads|mem_trans_retired|all_loads|\bloads\b|ibs_op|arm_spe", "load"),
)


def event_codes(events: Sequence[str]) -> Codes:
    """The event code of each event by its name, 255 for those that say nothing of memory."""
    found = []
    for name in events:
        kind = next((kind for pattern, kind in _KINDS if re.search(pattern, name, re.IGNORECASE)), "")
        found.append(EVENT_CODE[kind] if kind else NONE)
    return np.array(found, dtype=np.uint8)
