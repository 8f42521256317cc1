"""Memory that is in no region of its own, by pairs of threads."""

import numpy as np
import pytest

from numaplan.analyzer import counted_by_pairs, pages_by_pairs


def test_counts_of_a_pair_are_added() -> None:
    thread, toucher = np.array([0, 1, 1]), np.array([0, 0, 0])
    assert counted_by_pairs(thread, toucher, np.array([5, 2, 3]), 2).tolist() == [[5, 0], [5, 0]]


def test_each_page_counts_once_divided_as_its_accesses_are() -> None:
    page, thread = np.array([7, 7, 9, 1 << 60, 1 << 60]), np.array([0, 1, 1, 0, 2])
    toucher, made = np.array([0, 0, 0, 2, 2]), np.array([30, 10, 8, 0, 4])
    used, shared = pages_by_pairs(page, thread, toucher, made, 3)
    assert used.tolist() == [[0.75, 0, 0], [1.25, 0, 0], [0, 0, 1]]
    assert shared == pytest.approx(np.array([[0.5625, 0.1875, 0], [0.1875, 1.0625, 0], [0, 0, 1]]))


def test_no_memory_is_no_page() -> None:
    none = np.zeros(0, np.int64)
    used, shared = pages_by_pairs(none, none, none, none, 2)
    assert not used.any() and not shared.any() and used.shape == shared.shape == (2, 2)
