"""Whether memory has the same users in another run."""

from collections.abc import Sequence

import numpy as np

from numaplan.analyzer import PageCounts, same_users
from numaplan.profiler import RegionKey

THREADS = [("p0", path) for path in ("0", "0.1", "0.2", "0.3")]
PAGES = 120


def run(users: Sequence[int], *, name: str = "r", made_by: str = "0") -> PageCounts:
    """Pages that these threads use in turns, a part each."""
    page = np.arange(PAGES)
    thread = np.array(users)[page * len(users) // PAGES]
    key = RegionKey(kind="heap", name=name, bytes=PAGES * 4096, process="p0", thread=made_by, sequence=1)
    return PageCounts([key], 0 * page, page, thread, 0 * page + 10, 0 * page)


def test_threads_that_use_the_same_part_again_are_the_same_users() -> None:
    assert same_users(run([1, 2, 3]), run([1, 2, 3]), THREADS).tolist() == [-1, 1, 1, 1]


def test_threads_that_swap_their_parts_are_not() -> None:
    assert same_users(run([1, 2, 3]), run([1, 3, 2]), THREADS).tolist() == [-1, 1, 0, 0]


def test_memory_of_one_run_only_or_of_the_thread_itself_tells_nothing() -> None:
    assert same_users(run([1, 2, 3]), run([1, 2, 3], name="other"), THREADS).tolist() == [-1] * 4
    again = same_users(run([1, 2, 3], made_by="0.1"), run([1, 3, 2], made_by="0.1"), THREADS)
    assert again.tolist() == [-1, -1, 0, 0]


def test_what_all_use_alike_has_no_user() -> None:
    page = np.repeat(np.arange(PAGES), 4)
    table = run([0])
    key = table.regions[0]
    counts = PageCounts([key], 0 * page, page, np.tile(np.arange(4), PAGES), 0 * page + 10, 0 * page)
    assert same_users(counts, counts, THREADS).tolist() == [-1] * 4
