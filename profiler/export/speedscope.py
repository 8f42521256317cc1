"""A trace as speedscope reads it: flame graphs of accesses, remote ones, and lines taken from others."""

from typing import Any

import msgspec

from numaplan.common import printable, version

from ..trace.reader import Trace
from .profile import VALUES, Row, profile_rows

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope(trace: Trace) -> bytes:
    """The document: one profile for each of VALUES; stacks are thread, calls, code, region."""
    frames: dict[tuple[str, str, int], int] = {}
    profiles: list[dict[str, Any]] = [
        {"type": "sampled", "name": name, "unit": "none", "startValue": 0, "samples": [], "weights": []}
        for name in VALUES
    ]
    for row in profile_rows(trace):
        stack = [frames.setdefault(frame, len(frames)) for frame in _stack(row)]
        for profile, value in zip(profiles, row.values, strict=True):
            if value:
                profile["samples"].append(stack)
                profile["weights"].append(value)
    for profile in profiles:
        profile["endValue"] = sum(profile["weights"])
    shown = "remote" if profiles[VALUES.index("remote")]["endValue"] else "accesses"  # not an empty graph
    document = {
        "$schema": SCHEMA,
        "exporter": f"numaplan {version()}",
        "name": " ".join(map(printable, trace.argv)) or trace.path.name,
        "activeProfileIndex": VALUES.index(shown),
        "shared": {"frames": [_frame(*frame) for frame in frames]},
        "profiles": profiles,
    }
    return msgspec.json.encode(document)


def _stack(row: Row) -> list[tuple[str, str, int]]:
    stack = [(f"thread {row.thread}", "", 0)]
    places = [*row.callers[::-1], *([] if row.place is None else [row.place])]
    stack += [(place.name, place.path, place.line) for place in places]
    if row.region:
        stack.append((row.region, "", 0))
    return stack


def _frame(name: str, path: str, line: int) -> dict[str, Any]:
    known = {"file": printable(path), "line": line} if path else {}
    return {"name": printable(name), **known}
