"""Our policy beside the best of the others in the same experiment, seed by seed."""

from benchmarks.papers.experiments import PLACEMENTS
from benchmarks.papers.measured import Measured
from benchmarks.papers.rows import Row, claim_row

_WHAT = {"wall": "wall time", "tasks": "mean task time"}
_PLACED = "placed by who knew the programs before they started: no first touch to repair, no sampling"


def our_rows(measured: Measured, what: str, why: str = "") -> list[Row]:
    """numaplan over the best policy and, where some were tried, over the best placement made at the start.

    why: what it is, should another policy be better.
    """
    others = [name for name in measured.outcomes if name != "numaplan"]
    groups = {
        "policy": ([name for name in others if name not in PLACEMENTS], why),
        "fixed placement": ([name for name in others if name in PLACEMENTS], _PLACED),
    }
    found = []
    for kind, (names, reason) in groups.items():
        best = min(names, key=lambda name: sum(measured.values(name, what)))
        found.append(
            claim_row(
                "ours",
                measured.experiment.name,
                f"numaplan over the best {kind} ({best}), {_WHAT[what]}",
                "at least as good",
                measured.ratios("numaplan", best, what),
                1.0,
                reason,
                within=True,
            )
        )
    return found
