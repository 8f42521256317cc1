"""Each kind of program started many times with a plan: are its threads where the plan says, seen from
outside?

Not a speed: a count of races lost. NUMAPLAN_STARTS: how many starts (50); NUMAPLAN_KINDS: which kinds, by
comma; NUMAPLAN_NUMBA_PYTHON: a Python that has numba.
"""

import os
import sys
from typing import Any

from tests.support.outside import Built, discover, start
from tests.support.runtimes import KINDS, NotHereError


def run() -> dict[str, Any]:
    """By kind: starts, planned threads, of those seen alive in /proc, of those on the planned cpus."""
    starts = int(os.environ.get("NUMAPLAN_STARTS", "50"))
    wanted = [name for name in os.environ.get("NUMAPLAN_KINDS", "").split(",") if name]
    results: dict[str, Any] = {}
    for kind in wanted or KINDS:
        try:
            results[kind] = _measure(KINDS[kind](), starts)
        except NotHereError as missing:
            results[kind] = {"skipped": str(missing)}
        print(f"{kind}: {results[kind]}", file=sys.stderr, flush=True)
    return results


def _measure(built: Built, starts: int) -> dict[str, Any]:
    plan = discover(built)
    counts = {"starts": starts, "failed": 0, "planned": 0, "appeared": 0, "seen": 0, "right": 0}
    wrong: list[str] = []
    for _ in range(starts):
        for result in start(plan, built):
            counts["failed"] += result.code != 0
            counts["planned"] += result.planned
            counts["appeared"] += result.planned - len(result.applied["missing"])
            counts["seen"] += result.seen
            counts["right"] += result.right
            wrong += result.wrong
    share = counts["right"] / counts["seen"] if counts["seen"] else 0.0
    return {**counts, "share": share, "wrong": ", ".join(wrong[:3])}
