"""The progress of a recording by perf, read from the file that perf is writing."""

import struct
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_RECORD = struct.Struct("<IHH")
_LOST = struct.Struct("<2Q")
_SAMPLE, _LOST_KIND = 9, 2
_REMEMBERED = 8
_DATA_OFFSET_AT, _HEADER_BYTES = 40, 56
_MOST_BYTES = 32 << 20  # to look at in one call (about half a second); the rest comes with the next


class Meter:
    """Samples a second, losses, size and threads, by walking over what is new in the file."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._at = 0
        self._rate = Rate()
        self.samples = 0
        self.lost = 0

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
                data = file.read(_MOST_BYTES)
        except OSError:
            return 0
        samples, lost, used = _count(data)
        self.samples += samples
        self.lost += lost
        self._at += used
        return size


def live_line(rate: float, samples: int, size: int, lost: int, threads: int) -> str:
    """What is shown while a recording runs; size: bytes; lost: events; threads: 0 when unknown."""
    parts = [f"{rate:,.0f} samples/s", f"{samples:,} in all", f"{size / 1e6:.1f} MB", f"{lost:,} lost"]
    return ", ".join(parts if not threads else [*parts, f"{threads} threads"])


class Rate:
    """A second's increase over the last few calls, since samples come in bursts."""

    def __init__(self) -> None:
        self._history = deque([(time.monotonic(), 0)], maxlen=_REMEMBERED)

    def of(self, count: int) -> float:
        """The rate, with the count that is reached now."""
        began, before = self._history[0]
        now = time.monotonic()
        self._history.append((now, count))
        return (count - before) / max(now - began, 1e-3)


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


def _count(data: bytes) -> tuple[int, int, int]:
    """(samples, events lost, bytes of whole records) in a stretch that begins with a record."""
    at = samples = lost = 0
    while at + _RECORD.size <= len(data):
        kind, _misc, size = _RECORD.unpack_from(data, at)
        if size < _RECORD.size or at + size > len(data):
            break
        if kind == _SAMPLE:
            samples += 1
        elif kind == _LOST_KIND and size >= _RECORD.size + _LOST.size:
            lost += _LOST.unpack_from(data, at + _RECORD.size)[1]
        at += size
    return samples, lost, at
