"""Mappings: methods behind one signature, their costs, page placement, the plan file."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numaplan.mapper.metrics import Metrics
    from numaplan.mapper.plan import (
        Plan,
        PlanApp,
        PlanMachine,
        PlanRegion,
        PlanThread,
        Predicted,
        RegionKey,
        Run,
    )

_HOME = {
    "Metrics": "metrics",
    "Plan": "plan",
    "PlanApp": "plan",
    "PlanMachine": "plan",
    "PlanRegion": "plan",
    "PlanThread": "plan",
    "Predicted": "plan",
    "RegionKey": "plan",
    "Run": "plan",
}

__all__ = [
    "Metrics",
    "Plan",
    "PlanApp",
    "PlanMachine",
    "PlanRegion",
    "PlanThread",
    "Predicted",
    "RegionKey",
    "Run",
]


def __getattr__(name: str) -> object:
    """Import what is asked for when it is asked for: the commands must start fast."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"numaplan.mapper.{_HOME[name]}"), name)
