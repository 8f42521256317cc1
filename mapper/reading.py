"""A trace that is opened in a thread while the command still loads what it needs. Imports nothing slow."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from numaplan.common.ahead import Ahead

if TYPE_CHECKING:
    from numaplan.profiler import Trace

_CHUNK = 1 << 20  # bytes read at once: few turns of Python's lock, which the command holds meanwhile


class Opening:
    """A trace and the digest of its file, both begun at once.

    stays_open: for a command that ends when it has its answer, without taking Python apart: closing takes
    the database longer than planning, and a thread may be within it still when the command fails.
    """

    def __init__(self, path: Path, *, stays_open: bool = False) -> None:
        self._stays_open = stays_open
        self._trace = Ahead(_open, path)
        self.digest = Ahead(self._digest, path)

    def _digest(self, path: Path) -> str:
        self._trace.wait()  # which is needed earlier
        return digest(path)

    @contextmanager
    def trace(self) -> "Iterator[Trace]":
        """The open trace; raises UsageError as `Trace.open` does."""
        trace = self._trace.result()
        try:
            yield trace
        finally:
            if not self._stays_open:
                trace.close()


def _open(path: Path) -> "Trace":
    from numaplan.profiler import Trace

    trace = Trace.open(path)
    trace.read_small_tables()
    return trace


def digest(path: Path) -> str:
    """sha256 of a file, as a plan's provenance gives it."""
    import hashlib

    found, chunk = hashlib.sha256(), memoryview(bytearray(_CHUNK))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(chunk):
            found.update(chunk[:count])
    return f"sha256:{found.hexdigest()}"
