"""How many pages AutoNUMA is expected to move."""

import numpy as np
import pytest

from numaplan.analyzer import PageCounts
from numaplan.mapper import RegionKey
from numaplan.mapper.memory.page_moves import MOVED, pages_moved

PAGE = 4096
APART, TOGETHER = np.eye(2), np.ones((2, 2))


def stats(pages: int, samples: int, user: int, toucher: int = 0) -> PageCounts:
    """Samples that fall anywhere in a region of so many pages."""
    page, count = np.unique(np.random.default_rng(1).integers(0, pages, samples), return_counts=True)
    same = np.zeros(len(page), np.int64)
    key = RegionKey(kind="heap", name="r", bytes=pages * PAGE)
    return PageCounts([key], same, page, same + user, count, count, toucher=same + toucher)


@pytest.mark.parametrize("samples", [500, 1000, 5000])
def test_pages_that_samples_do_not_show_move_too(samples: int) -> None:
    assert pages_moved(stats(1000, samples, 1), APART) == pytest.approx(1000 * MOVED, rel=0.1)


def test_what_is_used_where_it_is_stays() -> None:
    assert pages_moved(stats(1000, 5000, 0), APART) == 0
    assert pages_moved(stats(1000, 5000, 1), TOGETHER) == 0
    assert pages_moved(stats(1000, 5000, 1, toucher=-1), APART) == 0
    often = pages_moved(stats(1000, 5000, 1), np.array([[1.0, 0.25], [0.25, 1.0]]))
    assert often == pytest.approx(0.75 * pages_moved(stats(1000, 5000, 1), APART))
