"""A row of the table: one program on one machine, what was counted and what its plan predicted."""

from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from .measuring import Place, digest_of, load
from .program import Program

_PLACEMENTS = {  # to names of what a plan tried, the likest first
    "default": ("alone",),
    "compact": ("bound in order", "{filled} nodes in order, first touch", "compact, first touch"),
    "interleave": ("alone, interleaved", "scatter, interleaved", "compact, interleaved"),
}


class Counted(msgspec.Struct, frozen=True):
    """What the lab counted of one configuration; medians where it had several runs.

    imbalance: the busiest controller over the mean of all; busiest_cpu: likewise.
    """

    local: float
    memory_local: float
    lines: float
    imbalance: float
    busiest_cpu: float
    cost: float
    seconds: float
    runs: int = 1


class Predicted(msgspec.Struct, frozen=True):
    """What a plan expects; NaN-free: what is not known is missing.

    costs: by configuration of the lab, as far as the plan tells.
    """

    local: float | None = None
    memory_local: float | None = None
    costs: dict[str, float] = {}
    alone: bool = False


@dataclass(frozen=True)
class Row:
    """One program on one machine; failed: what went wrong, by configuration or `""` for all."""

    program: str
    kind: str
    homes: bool
    machine: str
    counted: dict[str, Counted] = field(default_factory=dict)
    predicted: Predicted | None = None
    failed: dict[str, str] = field(default_factory=dict)


def read_row(program: Program, folder: Path, machine: str) -> Row:
    """What is kept of a program on a machine, but counts of another plan than the one that is there."""
    place = Place(folder / program.name, machine)
    plan, kept = load(place.plan), load(place.counts)
    failed = {"": place.failed.read_text().strip()} if place.failed.exists() else kept.get("failed", {})
    current = bool(plan) and kept.get("plan") == digest_of(plan)
    counted = {
        name: _counted(runs) for name, runs in kept.get("configs", {}).items() if name != "plan" or current
    }
    predicted = _predicted(plan) if plan else None
    return Row(program.name, program.kind, program.homes, machine, counted, predicted, failed)


def _counted(runs: list[dict[str, Any]]) -> Counted:
    names = {
        "local": "local_share",
        "memory_local": "memory_local_share",
        "lines": "lines_between_nodes",
        "imbalance": "memory_imbalance",
        "busiest_cpu": "busiest_cpu",
        "cost": "cost",
        "seconds": "seconds",
    }
    found = {ours: float(median(run[theirs] for run in runs)) for ours, theirs in names.items()}
    return Counted(**found, runs=len(runs))


def _filled(plan: dict[str, Any]) -> int:
    """How many nodes a cpu for each thread takes, node after node."""
    nodes = plan.get("machine", {}).get("nodes", [])
    most = max((len(node.get("cpus", [])) for node in nodes), default=0)
    return -(-len(plan["threads"]) // most) if most else 0


def _predicted(plan: dict[str, Any]) -> Predicted:
    found = plan["predicted"]
    tried = found.get("costs", {})
    costs = {}
    for ours, theirs in _PLACEMENTS.items():
        names = [name.format(filled=_filled(plan)) for name in theirs]
        if known := [tried[name] for name in names if name in tried]:
            costs[ours] = known[0]
    if found.get("cost", -1.0) >= 0:
        costs["plan"] = found["cost"]
    shares = {
        ours: found[theirs]
        for ours, theirs in {"local": "local_share", "memory_local": "memory_share"}.items()
        if found.get(theirs, -1.0) >= 0
    }
    return Predicted(**shares, costs=costs, alone=bool(plan.get("alone")))
