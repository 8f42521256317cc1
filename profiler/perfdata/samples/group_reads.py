"""Samples that carry their whole group's counters (`{a,b}:S`): one sample for each member, as perf has it.

Only the leader of such a group interrupts; what another member counted since its last reading becomes a
sample of that member with that period, at the leader's place. A member that counted nothing has none.
"""

import numpy as np
from numpy.typing import NDArray

from ..file import attrs as a
from .columns import Columns
from .layout import Layout
from .native import IdTable, Ints, column


class GroupReads:
    """Remembers the last reading of each counter."""

    def __init__(self) -> None:
        self._last: dict[int, int] = {}

    def expand(
        self,
        columns: Columns,
        layout: Layout,
        buffer: NDArray[np.uint8],
        rows: Ints,
        samples: Ints,
        ids: IdTable,
        swap: bool,
    ) -> None:
        """Put further rows in for samples of one layout.

        rows: where these samples stand in the columns, ascending; samples: where their records start. Where
        the ids of counters are not known nothing is changed.
        """
        if not reads_groups(layout) or not len(rows):
            return
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
            return
        counted = self._since(numbers, column(buffer, value_at, 8, swap))
        self._put(columns, rows, members, events, counted)

    def _since(self, numbers: NDArray[np.uint64], values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """What each counter counted since its last reading."""
        keys, inverse = np.unique(numbers, return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        sorted_values = values[order]
        firsts = np.searchsorted(inverse[order], np.arange(len(keys)))
        before = np.concatenate([sorted_values[:1], sorted_values[:-1]])
        before[firsts] = [self._last.get(key, 0) for key in keys.tolist()]
        lasts = sorted_values[np.append(firsts[1:], len(values)) - 1]
        self._last.update(zip(keys.tolist(), lasts.tolist(), strict=True))
        counted = np.empty_like(values)
        counted[order] = sorted_values - before
        return counted

    @staticmethod
    def _put(
        columns: Columns,
        rows: Ints,
        members: Ints,
        events: NDArray[np.int32],
        counted: NDArray[np.uint64],
    ) -> None:
        """Repeat each row for its members that counted anything, with their events and periods."""
        owner = np.repeat(np.arange(len(rows)), members)[counted > 0]
        first = int(rows[0])
        times = np.ones(columns.count - first, dtype=np.int64)
        times[rows - first] = np.bincount(owner, minlength=len(rows))
        columns.repeat(first, times)
        place = (np.cumsum(times) - times)[rows[owner] - first]
        same = np.arange(len(owner)) - np.searchsorted(owner, owner)
        columns.fill("event")[first + place + same] = events[counted > 0]
        columns.fill("period")[first + place + same] = counted[counted > 0]


def reads_groups(layout: Layout) -> bool:
    """Whether samples of this layout tell counters by their ids."""
    behind = layout.sections[1].after if len(layout.sections) > 1 else 0
    return behind == a.READ and layout.read_format & a.READ_ID != 0
