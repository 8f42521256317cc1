"""The times between numaplan_begin() and numaplan_end() of each process, from what was logged."""

from collections.abc import Sequence

from .control import ProcessEntry
from .image import Image
from .log import LAST_TIME, MARK

Spans = list[tuple[int, int]]


def marked_spans(entries: Sequence[ProcessEntry], lines: Sequence[Sequence[Image]]) -> dict[int, Spans]:
    """[from, to) by pid; lines: each process's images in order.

    A begin counts until as many ends came, or its image is replaced. A forked child logs the begins that it
    was born with.
    """
    found: dict[int, Spans] = {}
    for entry, line in zip(entries, lines, strict=True):
        last = entry.end_ns if entry.end_ns >= 0 else LAST_TIME
        for image in line:
            spans = _spans(image, image.end_ns if image.end_ns >= 0 else last)
            if spans:
                found.setdefault(entry.pid, []).extend(spans)
    return found


def _spans(image: Image, end_ns: int) -> Spans:
    marks = sorted((record.time_ns, bool(record.a)) for record in image.log.records if record.kind == MARK)
    found: Spans = []
    count = since = 0
    for time, begins in marks:
        before, count = count, max(0, count + (1 if begins else -1))
        if count and not before:
            since = time
        elif before and not count:
            found.append((since, time))
    return [*found, (since, end_ns)] if count else found
