"""Threads of a pool count as their mean, and nothing is lost or made by that."""

import numpy as np
import pytest

from numaplan.analyzer import PageCounts
from numaplan.mapper import RegionKey
from numaplan.mapper.workload.pools import exchanged_matrix, exchanged_pages, pools_of

POOL = np.array([1, 2, 3])


def test_pools_are_threads_of_one_creator_without_roles() -> None:
    threads = [("p0", path) for path in ("0", "0.1", "0.2", "0.1.1", "0.1.2")]
    found = pools_of(threads, [True, False, True, False, False])
    assert [pool.tolist() for pool in found] == [[1, 3, 4]]  # with the one that made them
    assert pools_of(threads, [True, False, True, True, True]) == []


def test_between_threads_of_a_pool_all_is_alike_and_as_much_as_it_was() -> None:
    matrix = np.random.default_rng(1).random((4, 4))
    np.fill_diagonal(matrix, 0.0)
    found = exchanged_matrix(matrix, [POOL])
    assert found.sum() == pytest.approx(matrix.sum())
    assert len(set(np.round(found[1:, 1:][~np.eye(3, dtype=bool)], 12))) == 1
    assert len(set(np.round(found[0, 1:], 12))) == 1


def test_accesses_stay_as_many_and_what_was_before_stays_with_its_thread() -> None:
    columns = np.array([(0, 0, 0), (0, 0, 1), (0, 1, 2), (0, 2, 3)]).T
    apart = np.random.default_rng(2).random((4, 4))
    pages = PageCounts(
        [RegionKey(kind="heap", name="r", bytes=3 * 4096)],
        *columns,
        np.array([5, 6, 9, 3]),
        np.array([1, 2, 3, 0]),
        toucher=np.zeros(4, np.int64),
        before=np.array([0, 4, 0, 0]),
        elsewhere=apart,
    )
    found = exchanged_pages(pages, [POOL])
    assert found.accesses.sum() == 23 and found.writes.sum() == pytest.approx(6)
    assert np.bincount(found.thread, found.accesses).tolist() == pytest.approx([5, 6, 6, 6])
    assert found.before is not None and found.elsewhere is not None
    assert np.bincount(found.thread, found.before).tolist() == [0, 4, 0, 0]
    assert found.elsewhere.sum() == pytest.approx(apart.sum())
    assert np.trace(found.elsewhere) == pytest.approx(np.trace(apart))
