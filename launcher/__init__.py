"""Launch a program with its plan: threads bound at birth, memory placed before first touch, both verified."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numaplan.launcher.launch import LaunchRequest, launch_program
    from numaplan.launcher.remap import remap_plan
    from numaplan.launcher.report import Applied
    from numaplan.launcher.touching import How, include_folder, next_touch, next_touch_counts

_HOME = {
    "Applied": "report",
    "How": "touching",
    "LaunchRequest": "launch",
    "include_folder": "touching",
    "launch_program": "launch",
    "next_touch": "touching",
    "next_touch_counts": "touching",
    "remap_plan": "remap",
}

__all__ = [
    "Applied",
    "How",
    "LaunchRequest",
    "include_folder",
    "launch_program",
    "next_touch",
    "next_touch_counts",
    "remap_plan",
]


def __getattr__(name: str) -> object:
    """Import what is asked for when it is asked for: the command must start fast."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"numaplan.launcher.{_HOME[name]}"), name)
