"""One time line for all emulated processes, and the preload library's times put on it.

Under the fair schedule the plugin counts time, a nanosecond an access (native/emulate/clock.c), each program
image from its own start. A forked process's clock goes on from its parent's; an image that replaces one by
exec begins where that one stopped; what a native program started in between (a shell) begins about where the
first process was then.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from .spool import ProcessSpool

if TYPE_CHECKING:
    from ...identity.records import Identity, ModuleRecord, ProcessRecord, RegionRecord, ThreadRecord

    Record = TypeVar("Record", ProcessRecord, ThreadRecord, RegionRecord, ModuleRecord)

Times = NDArray[np.int64]


def on_one_line(processes: Sequence[ProcessSpool]) -> list[ProcessSpool]:
    """The processes (by host start) with their `shift_ns`, which makes their own clocks one time line."""
    placed: list[ProcessSpool] = []
    for process in processes:
        origin = next((one for one in placed if (one.pid, one.start_ns) == process.origin), None)
        before = [one for one in placed if one.pid == process.pid]
        if origin:
            shift = origin.shift_ns
        elif before:
            shift = before[-1].last_ns + before[-1].shift_ns - process.first_ns
        elif placed:
            shift = int(ImageClock(placed[0])(np.array([process.start_ns]))[0]) - process.first_ns
        else:
            shift = -process.first_ns
        placed.append(replace(process, shift_ns=shift))
    return placed


class ImageClock:
    """From the host's CLOCK_MONOTONIC to the time line, for one image; host times rise with the line's.

    Exact for moments at which the program asked for the time; between them it is interpolated.
    """

    def __init__(self, process: ProcessSpool) -> None:
        first, last = process.first_ns, process.last_ns
        known = process.clock()
        order = np.lexsort((known[:, 1], known[:, 0]))
        host, ours = known[order, 0], np.clip(known[order, 1], first, last)
        self.host, self.ours = host, ours + process.shift_ns
        end = max(process.start_ns, int(host[-1]) if len(host) else 0) + 1
        self._between = np.concatenate(([process.start_ns], host, [end]))
        # A thread's own time can be behind the others' by what they did while it asked.
        self._line = np.maximum.accumulate(np.concatenate(([first], ours, [last]))) + process.shift_ns

    def __call__(self, time_ns: Times) -> Times:
        """The time line's times, of the same shape; before the image's start that of its start."""
        between = np.interp(time_ns - self._between[0], self._between - self._between[0], self._line)
        answer: Times = np.rint(between).astype(np.int64)
        if len(self.host):
            place = np.searchsorted(self.host, time_ns, side="right") - 1
            exact = (place >= 0) & (self.host[np.maximum(place, 0)] == time_ns)
            answer[exact] = self.ours[place[exact]]
        return answer


class JobClock:
    """From the host's times to the time line, for every process of a job."""

    def __init__(self, processes: Sequence[ProcessSpool]) -> None:
        self._images: dict[int, list[ProcessSpool]] = {}
        for process in processes:
            self._images.setdefault(process.pid, []).append(process)
        self._first = processes[0]
        self._clocks: dict[tuple[int, int], ImageClock] = {}

    def __call__(self, pid: int, time_ns: Times) -> Times:
        """Times of a process, which may span images; -1 (never, to the end) stays."""
        images = self._images.get(pid, [self._first])
        starts = np.array([image.start_ns for image in images])
        which = np.maximum(np.searchsorted(starts, time_ns, side="right") - 1, 0)
        answer = np.full(len(time_ns), -1, np.int64)
        for number, image in enumerate(images):
            chosen = (which == number) & (time_ns >= 0)
            if chosen.any():
                answer[chosen] = self._clock(image)(time_ns[chosen])
        return answer

    def _clock(self, image: ProcessSpool) -> ImageClock:
        key = image.pid, image.start_ns
        if key not in self._clocks:
            self._clocks[key] = ImageClock(image)
        return self._clocks[key]


def translated_identity(identity: "Identity", clock: Callable[[int, Times], Times]) -> "Identity":
    """An identity whose processes, threads, regions, modules and marks live on the time line."""

    def moved(records: "Sequence[Record]") -> "tuple[Record, ...]":
        rows: dict[int, list[int]] = {}
        for row, record in enumerate(records):
            rows.setdefault(record.pid, []).append(row)
        answer = list(records)
        for pid, numbers in rows.items():
            spans = np.array([(records[row].start_ns, records[row].end_ns) for row in numbers], np.int64)
            times = clock(pid, spans.ravel()).reshape(-1, 2).tolist()
            for row, (start, end) in zip(numbers, times, strict=True):
                answer[row] = replace(records[row], start_ns=start, end_ns=end)
        return tuple(answer)

    return replace(
        identity,
        processes=moved(identity.processes),
        threads=moved(identity.threads),
        regions=moved(identity.regions),
        modules=moved(identity.modules),
        marked={
            pid: [(int(start), int(end)) for start, end in clock(pid, np.array(spans).ravel()).reshape(-1, 2)]
            for pid, spans in identity.marked.items()
        },
    )
