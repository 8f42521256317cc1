"""A trace that is opened while a command still loads what it needs. Imports nothing slow."""

from pathlib import Path

from numaplan.common import BackgroundCall
from numaplan.profiler import Trace


class TraceOpening:
    """Begins at once to open a trace, outside of Python's lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._trace = BackgroundCall(_open, path)

    def trace(self) -> Trace:
        """The open trace, to be closed by the caller; raises UsageError as `Trace.open` does."""
        return self._trace.result()


def _open(path: Path) -> Trace:
    trace = Trace.open(path)
    trace.read_small_tables()
    return trace
