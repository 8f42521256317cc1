"""Samples that carry their whole group's counters (`{a,b}:S`): one sample for each member, as perf has it.

Only the leader of such a group interrupts; what another member counted since its last reading becomes a
sample of that member with that period, at the leader's place. A member that counted nothing has none.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..file import attrs as a
from .columns import Column, Columns
from .layout import Layout
from .native import IdTable, Ints, column


class Grouped(NamedTuple):
    """Samples of one layout. rows: where they stand in the columns, ascending; samples: where their records
    start.
    """

    layout: Layout
    rows: Ints
    samples: Ints


class _Counted(NamedTuple):
    """What members counted: the row of the sample that told it, the event, and how much (not 0)."""

    row: Ints
    event: NDArray[np.int32]
    period: NDArray[np.uint64]


class GroupReads:
    """Remembers the last reading of each counter, by its id and its thread (0 where all have the same)."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, int], int] = {}

    def expand(
        self,
        columns: Columns,
        buffer: NDArray[np.uint8],
        groups: Sequence[Grouped],
        ids: IdTable,
        swap: bool,
    ) -> None:
        """Put further rows in for samples, those of each layout in which groups are read.

        Where the ids of counters are not known nothing is changed.
        """
        rows, parts = [], []
        for one in groups:
            if not len(one.rows):
                continue
            tids = (
                columns.fill("tid")[one.rows] if one.layout.by_thread else np.zeros(len(one.rows), np.int64)
            )
            if part := self._counted(buffer, one, tids, ids, swap):
                rows.append(one.rows)
                parts.append(part)
        if parts:
            together = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            _put(columns, np.concatenate(rows), _Counted(*together))

    def _counted(
        self, buffer: NDArray[np.uint8], group: Grouped, tids: Column, ids: IdTable, swap: bool
    ) -> _Counted | None:
        """What the members of one layout's groups counted; None where their ids are not known."""
        layout, rows, samples = group
        at = samples + layout.sections[0].size
        form = layout.read_format
        times = 8 * ((form & a.READ_TIME_ENABLED != 0) + (form & a.READ_TIME_RUNNING != 0))
        width = 24 if form & a.READ_LOST else 16
        if form & a.READ_GROUP:
            members = column(buffer, at, 8, swap).astype(np.int64)
            base = at + 8 + times
            inside = np.arange(int(members.sum())) - np.repeat(np.cumsum(members) - members, members)
            places = np.repeat(base, members) + width * inside
            value_at, id_at = places, places + 8
        else:
            members = np.ones(len(rows), dtype=np.int64)
            value_at, id_at = at, at + 8 + times
        numbers = column(buffer, id_at, 8, swap)
        events = ids.find(numbers)
        if not len(events) or (events < 0).any() or (numbers == 0).any():
            return None
        counted = self._since(numbers, np.repeat(tids, members), column(buffer, value_at, 8, swap))
        some = counted > 0
        return _Counted(np.repeat(rows, members)[some], events[some], counted[some])

    def _since(
        self, numbers: NDArray[np.uint64], tids: Column, values: NDArray[np.uint64]
    ) -> NDArray[np.uint64]:
        """What each counter counted since its last reading. One that fell began anew."""
        order = np.lexsort((tids, numbers))
        numbers, tids, sorted_values = numbers[order], tids[order], values[order]
        changes = (numbers[1:] != numbers[:-1]) | (tids[1:] != tids[:-1])
        firsts = np.flatnonzero(np.concatenate([[True], changes]))
        keys = list(zip(numbers[firsts].tolist(), tids[firsts].tolist(), strict=True))
        before = np.concatenate([sorted_values[:1], sorted_values[:-1]])
        before[firsts] = [self._last.get(key, 0) for key in keys]
        lasts = sorted_values[np.append(firsts[1:], len(values)) - 1]
        self._last.update(zip(keys, lasts.tolist(), strict=True))
        counted = np.empty_like(values)
        counted[order] = np.where(sorted_values >= before, sorted_values - before, sorted_values)
        return counted


def _put(columns: Columns, rows: Ints, found: _Counted) -> None:
    """Repeat each row for its members that counted anything, with their events and periods."""
    order = np.argsort(found.row, kind="stable")
    owner = found.row[order]
    first = int(rows.min())
    times = np.ones(columns.count - first, dtype=np.int64)
    times[rows - first] = np.bincount(owner - first, minlength=len(times))[rows - first]
    columns.repeat(first, times)
    place = (np.cumsum(times) - times)[owner - first]
    same = np.arange(len(owner)) - np.searchsorted(owner, owner)
    columns.fill("event")[first + place + same] = found.event[order]
    columns.fill("period")[first + place + same] = found.period[order]


def reads_groups(layout: Layout) -> bool:
    """Whether samples of this layout tell counters by their ids."""
    behind = layout.sections[1].after if len(layout.sections) > 1 else 0
    return behind == a.READ and layout.read_format & a.READ_ID != 0
