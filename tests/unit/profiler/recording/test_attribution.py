"""The interval index against the obvious loop."""

import numpy as np
from hypothesis import given, strategies as st

from numaplan.profiler.recording.attribution import IntervalIndex

interval = st.tuples(
    st.integers(0, 40), st.integers(0, 40), st.integers(0, 30), st.one_of(st.just(-1), st.integers(0, 30))
)


def slow(rows: list[tuple[int, int, int, int]], position: int, time: int) -> int:
    best = (-1, -1)
    for row, (start, end, born, died) in enumerate(rows):
        if start <= position < end and born <= time and (died < 0 or time < died):
            best = max(best, (born, row))
    return best[1]


@given(st.lists(interval, max_size=12))
def test_find_agrees_with_a_search_of_all_rows(rows: list[tuple[int, int, int, int]]) -> None:
    columns = np.array(rows, np.int64).reshape(-1, 4)
    index = IntervalIndex(*columns.T)
    position, time = (grid.ravel() for grid in np.meshgrid(np.arange(42), np.arange(32)))
    expected = [slow(rows, int(p), int(t)) for p, t in zip(position, time, strict=True)]
    assert index.find(position, time).tolist() == expected


def test_addresses_at_the_top_of_the_space() -> None:
    index = IntervalIndex([2**64 - 8192], [2**64 - 1], [0], [-1])
    assert index.find(np.array([2**64 - 2, 5], np.uint64), np.array([1, 1])).tolist() == [0, -1]
