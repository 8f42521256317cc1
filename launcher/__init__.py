"""Launch a program with its plan: threads bound at birth, memory placed before first touch, both verified."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numaplan.launcher.launch import LaunchRequest, launch_program
    from numaplan.launcher.remap import remap_plan
    from numaplan.launcher.report import Applied

_HOME = {"Applied": "report", "LaunchRequest": "launch", "launch_program": "launch", "remap_plan": "remap"}

__all__ = ["Applied", "LaunchRequest", "launch_program", "remap_plan"]


def __getattr__(name: str) -> object:
    """Import what is asked for when it is asked for: the command must start fast."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"numaplan.launcher.{_HOME[name]}"), name)
