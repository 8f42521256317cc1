"""What is done to every sample before it is counted, against numpy."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.analyzer.samples.preparing import choose, count_in_slices, count_kinds, count_threads


@given(st.integers(0, 1 << 30), st.integers(0, 400), st.integers(1, 40), st.booleans(), st.booleans())
def test_samples_in_slices_are_those_of_numpy(
    seed: int, count: int, width: int, weighed: bool, some: bool
) -> None:
    rng = np.random.default_rng(seed)
    time, thread = rng.integers(-50, 300, count), rng.integers(0, 3, count).astype(np.int32)
    weight = rng.random(count) if weighed else None
    chosen = rng.random(count) < 0.5 if some else None
    cells = np.ones((20, 3))
    count_in_slices(cells, 10, width, time, thread, weight, chosen)
    expected = np.ones((20, 3))
    use = np.ones(count, bool) if chosen is None else chosen
    at = np.clip((time - 10) // width, 0, 19)
    np.add.at(expected, (at[use], thread[use]), 1.0 if weight is None else weight[use])
    assert np.allclose(cells, expected)


def test_what_does_not_fit_the_slices_is_refused() -> None:
    cells, two = np.zeros((4, 2)), np.array([1, 2])
    for thread in (np.array([0]), np.array([0, 2]), np.array([-1, 0])):
        with pytest.raises(ValueError, match=r"length|range"):
            count_in_slices(cells, 0, 1, two, thread)
    assert not cells.any()


@given(st.integers(0, 1 << 30), st.integers(0, 400))
def test_kinds_and_threads_are_those_of_numpy(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    event, level = (rng.integers(0, 256, count).astype(np.uint8) for _ in range(2))
    kinds = event.astype(int) * 12 + level
    found = count_kinds(event, level, 12)
    assert np.array_equal(found, np.bincount(kinds, minlength=len(found)))
    thread, chosen = rng.integers(0, 7, count).astype(np.int32), rng.random(count) < 0.5
    counts = np.ones(7, np.int64)
    count_threads(counts, thread)
    count_threads(counts, thread, chosen)
    both = np.concatenate([thread, thread[chosen]])
    assert np.array_equal(counts, 1 + np.bincount(both, minlength=7))


def test_kinds_and_threads_that_do_not_fit_are_refused() -> None:
    for thread in (np.array([0, 7]), np.array([-1])):
        with pytest.raises(ValueError, match="range"):
            count_threads(np.zeros(7, np.int64), thread)
    with pytest.raises(ValueError, match="length"):
        count_threads(np.zeros(7, np.int64), np.array([1]), np.ones(2, bool))
    with pytest.raises(ValueError, match="length"):
        count_kinds(np.zeros(1, np.uint8), np.zeros(2, np.uint8), 12)


def test_chosen_samples_are_those_of_numpy() -> None:
    rng = np.random.default_rng(4)
    for count in (0, 1, 1000):
        time, thread = rng.integers(0, 99, count), rng.integers(0, 2048, count).astype(np.int32)
        key, is_write = rng.integers(0, 1 << 60, count).astype(np.uint64), rng.random(count) < 0.3
        for chosen in (rng.random(count) < 0.5, np.ones(count, bool), np.zeros(count, bool)):
            found = choose(time, thread, key, is_write, chosen)
            for one, all_of_them in zip(found, (time, thread, key, is_write), strict=True):
                assert np.array_equal(one, all_of_them[chosen])
