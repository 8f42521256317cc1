"""The interval that a benchmark of twins reports, against the binomial distribution it comes from."""

from math import comb

import pytest

from benchmarks.medians import median_interval


def _covered(count: int, low: int) -> float:
    """How likely the median of all is not beyond the values of ranks `low` and count - 1 - low."""
    return 1.0 - 2.0 * sum(comb(count, rank) for rank in range(low + 1)) / 2**count


@pytest.mark.parametrize("count", [6, 7, 9, 15, 25, 100])
def test_the_interval_is_the_narrowest_that_holds_the_median_in_95_of_100_cases(count: int) -> None:
    low, high = median_interval(count)
    assert high == count - 1 - low
    assert _covered(count, low) >= 0.95 > _covered(count, low + 1)


def test_of_few_values_it_is_all() -> None:
    assert [median_interval(count) for count in (1, 2, 5)] == [(0, 0), (0, 1), (0, 4)]
