"""What a trace says about threads and memory: arrays in, arrays out.

The public names are loaded when first used, so that a command pays only for what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numaplan.analyzer.communication import RULES as RULES
    from numaplan.analyzer.communication import communication_matrix as communication_matrix
    from numaplan.analyzer.communication import measure as measure
    from numaplan.analyzer.counter import Communication as Communication
    from numaplan.analyzer.counter import CommunicationCounter as CommunicationCounter

_WHERE = {
    "RULES": "communication",
    "communication_matrix": "communication",
    "measure": "communication",
    "Communication": "counter",
    "CommunicationCounter": "counter",
}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
