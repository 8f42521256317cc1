"""A trace that is opened while a command still loads what it needs. Imports nothing slow."""

from contextlib import suppress
from pathlib import Path

from numaplan.common import BackgroundCall
from numaplan.profiler import Trace


class TraceOpening:
    """Begins at once to open a trace, outside of Python's lock; use as a context manager.

    At its end nobody is within the database any more: Python must not be taken apart then.
    """

    def __init__(self, path: Path) -> None:
        self._trace = BackgroundCall(_open, path)

    def __enter__(self) -> "TraceOpening":
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):  # who asked for the trace was told
            self._trace.result().close()

    def trace(self) -> Trace:
        """The open trace; raises UsageError as `Trace.open` does."""
        return self._trace.result()


def _open(path: Path) -> Trace:
    trace = Trace.open(path)
    trace.read_small_tables()
    return trace
