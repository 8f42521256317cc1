"""How many accesses a sample represents, by the trace's metadata. All that count samples ask here."""

from collections.abc import Collection, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.common import BAD_JSON
from numaplan.profiler import EVENT_CODE, Trace

EVENTS = tuple(EVENT_CODE)  # by code
MOST_PERIOD = 1 << 40


def event_weights(meta: Mapping[str, str], present: Collection[int]) -> tuple[int, NDArray[np.float64]]:
    """(least period, (events,) period of each event over it) of a trace, from its facts.

    meta: `periods`, a JSON object of periods by event name, where they differ; else `period` for all.
    present: codes of the events that have samples; others weigh 1. The period is 0 where it is not known;
    what cannot be right is not known (`periods_note`).
    """
    text = meta.get("period", "")
    common = int(text) if text.isascii() and text.isdecimal() else 0
    weights = np.ones(len(EVENTS))
    named = _named(meta) or {}
    known = {event: named.get(EVENTS[event], common) for event in present}
    if not known or not all(0 < period < MOST_PERIOD for period in known.values()):
        return common if common < MOST_PERIOD else 0, weights
    least = min(known.values())
    for event, period in known.items():
        weights[event] = period / least
    return round(least), weights


def weighed_counts(trace: Trace) -> tuple[str, str]:
    """SQL of how many samples `s` of a group there are, and of writes among them, weighed by their events."""
    if "periods" not in trace.meta:
        return "count(*)", "count(*) FILTER (s.is_write)"
    present = [int(row[0]) for row in trace.rows("SELECT DISTINCT enum_code(event) FROM samples")]
    _, weights = event_weights(trace.meta, present)
    cases = " ".join(f"WHEN {event} THEN {float(weights[event])!r}" for event in present)
    weight = f"CASE enum_code(s.event) {cases} ELSE 1 END" if cases else "1"
    return f"sum({weight})", f"coalesce(sum({weight}) FILTER (s.is_write), 0)"


def periods_note(meta: Mapping[str, str]) -> list[str]:
    """What to say where the periods by event cannot be right."""
    if _named(meta) is not None:
        return []
    return ["the trace's periods by event cannot be right: all events count equally"]


def _named(meta: Mapping[str, str]) -> dict[str, float] | None:
    """Periods by event name; None where they cannot be right."""
    try:
        named = msgspec.json.decode(meta.get("periods", "{}"), type=dict[str, float])
    except BAD_JSON:
        return None
    return named if all(0 < period < MOST_PERIOD for period in named.values()) else None
