"""A recording of what lies in some spans of time: gaps are closed, its time is that of the part."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..backends.base import Recording
from ..backends.emulation.clock import translated_identity

if TYPE_CHECKING:
    from ..identity.records import Identity
    from ..page_use_block import PageUseBlock
    from ..running_block import RunningBlock
    from ..sample_block import SampleBlock
    from ..transfer_block import TransferBlock

Spans = Sequence[tuple[int, int]]
Times = NDArray[np.int64]


def union(spans: Spans) -> list[tuple[int, int]]:
    """The same times as ascending spans that do not touch."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        elif end > start:
            found.append((start, end))
    return found


def common(one: Spans, other: Spans) -> list[tuple[int, int]]:
    """The times that are in both."""
    pairs = ((max(a, c), min(b, d)) for a, b in one for c, d in other)
    return union([(start, end) for start, end in pairs if end > start])


class GaplessLine:
    """From times of the host to the time within the spans that had passed then."""

    def __init__(self, spans: Spans) -> None:
        borders = np.array(union(spans), np.int64).reshape(-1, 2)
        lengths = borders[:, 1] - borders[:, 0]
        self._host = borders.ravel()
        before = np.concatenate([[0], np.cumsum(lengths)])
        self._line = np.column_stack([before[:-1], before[1:]]).ravel()

    def __call__(self, times: Times) -> Times:
        """Of the same shape; -1 (never, to the end) stays."""
        place = np.searchsorted(self._host, times, side="right") - 1
        at = np.maximum(place, 0)
        inside = place % 2 == 0  # after a start, and before the end that follows
        passed = np.where(inside, times - self._host[at], 0)
        answer: Times = np.where(place < 0, 0, self._line[at] + passed)
        return np.where(times < 0, -1, answer)

    def of(self, time: int) -> int:
        """The same of one time."""
        return int(self(np.array([time], np.int64))[0])


def cut(
    recording: Recording, identity: "Identity", spans: Spans, by_process: Mapping[int, Spans] | None = None
) -> tuple[Recording, "Identity"]:
    """What lies in the spans, from time 0 on.

    by_process: spans of each process alone, by pid; samples of others, and outside of theirs, are left out.
    """
    line = GaplessLine(spans)
    return replace(
        recording,
        start_ns=0,
        blocks=_CutBlocks(recording.blocks, line, spans, by_process),
        threads=[
            replace(t, start_ns=line.of(t.start_ns), end_ns=line.of(t.end_ns)) for t in recording.threads
        ],
        losses=[(line.of(time), events) for time, events in recording.losses],
        counters=[(line.of(row[0]), *row[1:]) for row in recording.counters],
        # Else they are of whole stretches of time.
        transfers=_moved(recording.transfers, line) if recording.counted_spans else None,
        page_use=_used(recording.page_use, line) if recording.counted_spans else None,
        # An emulator's clock leaves out what is not recorded.
        running=_looked(recording.running, line, spans) if recording.counted_spans else (),
    ), translated_identity(identity, _clock(line))


def _moved(blocks: "Iterable[TransferBlock] | None", line: GaplessLine) -> "Iterator[TransferBlock] | None":
    """On the line of the spans."""
    if blocks is None:
        return None
    return (
        replace(
            block,
            start_ns=line.of(block.start_ns),
            end_ns=max(line.of(block.end_ns), line.of(block.start_ns) + 1),
            writer_ns=line(block.writer_ns),
            reader_ns=line(block.reader_ns),
            late_ns=tuple(map(line.of, block.late_ns)),
        )
        for block in blocks
    )


def _used(blocks: "Iterable[PageUseBlock] | None", line: GaplessLine) -> "Iterator[PageUseBlock] | None":
    if blocks is None:
        return None
    return (
        replace(
            block,
            start_ns=line(block.start_ns),
            end_ns=np.maximum(line(block.end_ns), line(block.start_ns) + 1),
            first_ns=line(block.first_ns),
            alive_ns=line(block.alive_ns),
            late_ns=tuple(line(late) for late in block.late_ns),
        )
        for block in blocks
    )


def _looked(blocks: "Iterable[RunningBlock]", line: GaplessLine, spans: Spans) -> "Iterator[RunningBlock]":
    for block in blocks:
        kept = _within(block.time_ns, spans)
        yield replace(
            block,
            time_ns=line(block.time_ns[kept]),
            tid=block.tid[kept],
            alive_ns=line(block.alive_ns[kept]),
        )


def _clock(line: GaplessLine) -> Callable[[int, Times], Times]:
    return lambda _pid, times: line(times)


class _CutBlocks:
    """Blocks of samples; walked as often as those that they are of."""

    def __init__(
        self,
        blocks: "Iterable[SampleBlock]",
        line: GaplessLine,
        spans: Spans,
        by_process: Mapping[int, Spans] | None,
    ) -> None:
        self._blocks, self._line = blocks, line
        self._spans, self._by_process = spans, by_process

    def __iter__(self) -> "Iterator[SampleBlock]":
        for block in self._blocks:
            kept = _within(block.time_ns, self._spans)
            if self._by_process is not None:
                kept &= self._own(block, self._by_process)
            chosen = block if kept.all() else block.chosen(kept)
            if len(chosen):
                yield replace(chosen, time_ns=self._line(chosen.time_ns))

    @staticmethod
    def _own(block: "SampleBlock", by_process: Mapping[int, Spans]) -> NDArray[np.bool_]:
        kept = np.zeros(len(block), np.bool_)
        for pid in np.unique(block.pid).tolist():
            own = block.pid == pid
            kept[own] = _within(block.time_ns[own], by_process.get(pid, ()))
        return kept


def _within(times: Times, spans: Spans) -> NDArray[np.bool_]:
    borders = np.array(union(spans), np.int64).ravel()
    inside: NDArray[np.bool_] = np.searchsorted(borders, times, side="right") % 2 == 1
    return inside
