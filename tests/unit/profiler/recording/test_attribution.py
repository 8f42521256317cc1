"""The interval index against the obvious loop."""

import numpy as np
from hypothesis import given, strategies as st

from numaplan.profiler.identity.records import RegionRecord
from numaplan.profiler.recording.attribution import IntervalIndex, RegionFinder

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


def test_what_is_left_of_the_heap_is_no_stack_that_was_there_as_soon() -> None:
    """As in a part of a run, in which all that was there before is born at 0."""

    def region(kind: str, start: int, length: int, died: int) -> RegionRecord:
        return RegionRecord("p0", 1, kind, "name", "b", start, length, "", 0, 0, died)

    finder = RegionFinder([region("stack", 100, 50, 20), region("small", 0, 1000, -1)])
    addr, time = np.array([120, 120, 300], np.uint64), np.array([10, 30, 10])
    assert finder.find(np.full(3, 1, np.int32), addr, time).tolist() == [0, 1, 1]
