"""The progress of a recording by perf, read from the file that perf is writing."""

import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from ...perfdata.processes.records import LOST
from ...perfdata.samples import native
from ..live_line import Rate, live_line

_DATA_OFFSET_AT, _HEADER_BYTES = 40, 56
_EVENTS_LOST_AT, _LOST_BYTES = 16, 24  # of records of losses: where they count, size
_RECORDS = 1 << 14  # at a time
_MOST_BYTES = 32 << 20  # to read in one call; the rest comes with the next


class Meter:
    """Samples a second, losses, size and threads, by walking over what is new in the file."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._at = 0
        self._rate = Rate()
        self.samples = 0
        self.lost = 0
        treatment = [native.SKIP] * native.COUNTED_TYPES
        treatment[LOST] = native.REPORT
        self._walker = native.Walker(treatment, swap=False, room=_RECORDS)

    def line(self, pids: Sequence[int]) -> str:
        """One line for people; pids: whose threads to count."""
        size = self.read()
        return live_line(self._rate.of(self.samples), self.samples, size, self.lost, _threads(pids))

    def read(self) -> int:
        """Take in what perf wrote since the last call; returns the size of its file."""
        try:
            with self._output.open("rb") as file:
                head = file.read(_HEADER_BYTES)
                size = file.seek(0, 2)
                if len(head) < _HEADER_BYTES:
                    return size
                self._at = self._at or min(size, struct.unpack_from("<Q", head, _DATA_OFFSET_AT)[0])
                file.seek(self._at)
                data = np.frombuffer(file.read(_MOST_BYTES), np.uint8)
        except OSError:
            return 0
        at, outcome = 0, native.FULL
        while outcome == native.FULL:
            outcome, at, samples, losses = self._walker.walk(data, at, len(data))
            self.samples += len(samples.positions)
            whole = losses[losses + _LOST_BYTES <= at]
            self.lost += int(native.column(data, whole + _EVENTS_LOST_AT, 8, swap=False).sum())
        self._at += at
        return size


def _threads(pids: Sequence[int]) -> int:
    """Living threads of these processes and of all that they started."""
    waiting, seen, count = list(pids), set[int](), 0
    while waiting:
        pid = waiting.pop()
        if pid in seen:
            continue
        seen.add(pid)
        for task in _entries(Path(f"/proc/{pid}/task")):
            count += 1
            with suppress(OSError, ValueError):
                waiting += map(int, (task / "children").read_text().split())
    return count


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
