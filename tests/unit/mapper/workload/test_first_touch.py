"""Who touched pages first, told from some of them."""

import numpy as np
import pytest

from numaplan.mapper.workload.pages import first_touchers

PAGES, USERS = 400, 4


def rows_of(before: np.ndarray) -> tuple[np.ndarray, ...]:
    """One region: main's accesses by page from before the threads start; then each page has one user."""
    page = np.concatenate([np.arange(PAGES), np.flatnonzero(before)])
    thread = np.concatenate([1 + np.arange(PAGES) % USERS, np.zeros(int((before > 0).sum()), int)])
    amount = np.concatenate([np.zeros(PAGES, int), before[before > 0]])
    first = np.where(before[page] > 0, 0, thread)
    order = np.lexsort([thread, page])
    return np.zeros(len(page), int), page[order], amount[order], first[order]


@pytest.mark.parametrize("rate", [0.1, 0.5, 3.0])
def test_pages_between_those_that_main_was_seen_on_are_main_s(rate: float) -> None:
    before = np.random.default_rng(1).poisson(rate, PAGES)
    region, page, amount, first = rows_of(before)
    assert (first[amount == 0] > 0).any()
    found = first_touchers(region, page, amount, first)
    assert (found == 0).mean() > 0.95


def test_only_the_stretch_that_main_went_over_is_main_s() -> None:
    before = np.zeros(PAGES, int)
    before[100:200] = np.random.default_rng(2).poisson(0.7, 100)
    found = first_touchers(*rows_of(before))
    _, page, _, first = rows_of(before)
    assert (found[(page >= 105) & (page < 195)] == 0).all()
    apart = (page < 95) | (page >= 205)
    assert np.array_equal(found[apart], first[apart])


@pytest.mark.parametrize("pages", [[7], [7, 390], [0, 1, 2, 399]])
def test_a_few_pages_say_nothing_of_the_rest(pages: list[int]) -> None:
    before = np.zeros(PAGES, int)
    before[pages] = 20
    region, page, amount, first = rows_of(before)
    assert np.array_equal(first_touchers(region, page, amount, first), first)


def test_regions_are_told_apart_and_none_is_fine() -> None:
    before = np.random.default_rng(3).poisson(0.5, PAGES)
    one = rows_of(before)
    other = rows_of(np.zeros(PAGES, int))
    both = [np.concatenate(pair) for pair in zip(one, other, strict=True)]
    both[0][len(one[0]) :] = 1
    found = first_touchers(*both)
    assert np.array_equal(found[: len(one[0])], first_touchers(*one))
    assert np.array_equal(found[len(one[0]) :], other[3])
    nothing = np.zeros(0, int)
    assert not len(first_touchers(nothing, nothing, nothing, nothing))
