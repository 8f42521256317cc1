"""How a recording by perf comes along, read from the file that perf is writing."""

import struct
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

_RECORD = struct.Struct("<IHH")
_LOST = struct.Struct("<2Q")
_SAMPLE, _LOST_KIND = 9, 2
_REMEMBERED = 8
_DATA_OFFSET_AT, _HEADER_BYTES = 40, 56
_MOST_BYTES = 32 << 20  # to look at in one call (about half a second); the rest comes with the next


class Meter:
    """Samples a second, losses, size and threads, by walking over what is new in the file."""

    def __init__(self, output: Path, pids: Sequence[int]) -> None:
        self.target = f"process {', '.join(map(str, pids))}" if pids else "all cpus"
        self._output = output
        self._pids = pids
        self._at = 0
        self._history = deque([(time.monotonic(), 0)], maxlen=_REMEMBERED)
        self.samples = 0
        self.lost = 0

    def line(self) -> str:
        """One line for people; the rate is that of the last few calls, since perf writes in bursts."""
        size = self.read()
        began, before = self._history[0]
        now = time.monotonic()
        self._history.append((now, self.samples))
        rate = (self.samples - before) / max(now - began, 1e-3)
        parts = [f"{rate:,.0f} samples/s", f"{self.samples:,} in all", f"{size / 1e6:.1f} MB"]
        if self.lost:
            parts.append(f"{self.lost:,} lost")
        if self._pids:
            parts.append(f"{self._threads()} threads")
        return f"{self.target}: {', '.join(parts)}; Ctrl-C ends it"

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

    def _threads(self) -> int:
        return sum(_entries(Path(f"/proc/{pid}/task")) for pid in self._pids)


def _entries(folder: Path) -> int:
    try:
        return sum(1 for _ in folder.iterdir())
    except OSError:
        return 0


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
