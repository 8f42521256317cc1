"""Decode what `perf record -o -` writes while it writes it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .file.source import PerfDataError, Source
from .processes.records import RecordReader
from .reader import Reader
from .samples.columns import Columns

_HEADER_BYTES = 16
_MOST_PENDING = 1 << 20  # no record is longer than 64 KiB: what does not end within this is no recording


@dataclass(frozen=True)
class Piece:
    """What came since the last piece. samples: columns as in `Decoded.samples`; events: names of all events
    so far; lost: events lost in it.
    """

    samples: dict[str, NDArray[Any]]
    events: tuple[str, ...]
    lost: int


class StreamDecoder:
    """Takes the bytes of a pipe as they come, in pieces of any size."""

    def __init__(self) -> None:
        self._pending = b""
        self._reader: _PieceReader | None = None

    def feed(self, data: bytes) -> None:
        """Decode further bytes; raises PerfDataError, with the offset, for what perf did not write."""
        self._pending += data
        if self._reader is None:
            if len(self._pending) < _HEADER_BYTES:
                return
            self._reader = _PieceReader(_Bytes(self._pending[:_HEADER_BYTES]))
            self._pending = self._pending[_HEADER_BYTES:]
        used = self._reader.read_some(np.frombuffer(self._pending, dtype=np.uint8))
        self._pending = self._pending[used:]
        if len(self._pending) > _MOST_PENDING:
            raise PerfDataError("perf's pipe: a record does not end", "record again")

    def take(self) -> Piece:
        """What was decoded since the last call."""
        if self._reader is None:
            return Piece(dict(Columns().finish()), (), 0)
        return self._reader.take()


class _Bytes(Source):
    """A source that is in memory."""

    def __init__(self, data: bytes) -> None:
        self.name = "perf's pipe"
        self.data = np.frombuffer(data, dtype=np.uint8)
        self._map = None


class _PieceReader(Reader):
    """A reader that gives away what it has read so far, so that it can go on for days."""

    def read_some(self, buffer: NDArray[np.uint8]) -> int:
        """Read whole records; returns the bytes taken, all but a record that goes on in the next piece."""
        self._settle_events()
        return self._walk_inflated(buffer)

    def take(self) -> Piece:
        """The samples so far, and forget them."""
        samples = dict(self.samples.columns.finish())
        lost = sum(events for _time, events in self.records.losses)
        self.samples.columns = Columns()
        self.records = RecordReader(self._order)
        self._events_changed = True
        return Piece(samples, tuple(self.events.names(self.header)), lost)
