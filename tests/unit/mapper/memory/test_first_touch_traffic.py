"""What samples tell of first touch: no more than they can."""

import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.analyzer import PageCounts
from numaplan.mapper import RegionKey
from numaplan.mapper.memory.traffic import first_touch_traffic, first_touches
from numaplan.profiler import Machine

PAGES = 4096


def sampled(period: int, rate: float, begun: bool) -> PageCounts:
    """Two threads that use all pages of a region alike, after thread 0 has written each once.

    rate: samples a page; begun: whether samples were taken while thread 0 wrote.
    """
    rng = np.random.default_rng(7)
    users = rng.poisson(rate / 2, (PAGES, 2))
    first = rng.random(PAGES) * users.sum(axis=1) >= users[:, 0]  # in any order
    before = rng.poisson(512 / period, PAGES) if begun else np.zeros(PAGES, dtype=np.int64)
    first[before > 0] = False
    page = np.repeat(np.arange(PAGES), 2)
    return PageCounts(
        regions=[RegionKey(kind="heap", name="a", bytes=PAGES * 4096)],
        region=np.zeros_like(page), page=page, thread=np.tile([0, 1], PAGES), accesses=users.reshape(-1),
        writes=np.zeros_like(page), toucher=np.repeat(first.astype(np.int64), 2),
        before=np.stack([before, 0 * before], axis=1).reshape(-1), period=period,
    )  # fmt: skip


def local_share(stats: PageCounts) -> float:
    traffic = first_touch_traffic(first_touches(stats), [0, 1], Machine.load("2x1"))
    assert traffic is not None
    return float(np.trace(traffic) / traffic.sum())


def test_one_sample_a_page_does_not_make_all_local() -> None:
    stats = sampled(period=1000, rate=0.5, begun=False)
    traffic = first_touch_traffic(stats, [0, 1], Machine.load("2x1"))
    assert traffic is not None and np.trace(traffic) > 0.85 * traffic.sum()  # as it would seem
    assert abs(local_share(stats) - 0.5) < 0.06


@pytest.mark.parametrize(("period", "uses"), [(1000, 0.5), (1000, 2), (1000, 20), (4000, 0.5), (4000, 0.125)])
def test_what_the_beginning_shows_stays(period: int, uses: float) -> None:
    """Thread 0 writes all pages, then each thread uses a half: local are the writes and one half."""
    rng = np.random.default_rng(3)
    page = np.arange(PAGES)
    before, used = rng.poisson(512 / period, PAGES), rng.poisson(uses, PAGES)
    thread = (page >= PAGES // 2).astype(np.int64)
    rows = np.flatnonzero(before + used)
    split = np.concatenate([rows, rows])  # of a page of thread 1, thread 0's writes are a row of their own
    who = np.concatenate([np.zeros(len(rows), dtype=np.int64), thread[rows]])
    region = np.zeros(len(split), dtype=np.int64)
    earlier = np.concatenate([before[rows], np.zeros(len(rows), dtype=np.int64)])
    later = np.concatenate([np.zeros(len(rows), dtype=np.int64), used[rows]])
    stats = PageCounts(
        regions=[RegionKey(kind="heap", name="a", bytes=PAGES * 4096)], region=region, page=page[split],
        thread=who, accesses=later, writes=later * 0, toucher=region * 0, before=earlier, period=period,
    )  # fmt: skip
    truth = (512 / period + uses / 2) / (512 / period + uses)
    assert abs(local_share(stats) - truth) < 0.03


def test_no_access_is_lost() -> None:
    stats = sampled(period=1000, rate=0.5, begun=True)
    assert np.isclose(first_touches(stats).all_accesses.sum(), stats.all_accesses.sum())


def test_where_every_access_is_seen_nothing_is_left_out() -> None:
    stats = replace(sampled(period=1000, rate=0.5, begun=False), period=1)
    assert first_touches(stats) is stats


def test_what_samples_cannot_show_is_not_told() -> None:
    """Of 4,096 pages written word by word, a sampler of every 500,000th access sees four words or so."""
    stats = sampled(period=500_000, rate=3, begun=False)
    assert first_touch_traffic(first_touches(stats), [0, 1], Machine.load("2x1")) is None


def test_a_sample_of_the_beginning_is_enough() -> None:
    before = np.zeros(2 * PAGES, dtype=np.int64)
    before[0] = 1
    stats = replace(sampled(period=500_000, rate=3, begun=False), before=before)
    assert first_touch_traffic(first_touches(stats), [0, 1], Machine.load("2x1")) is not None


@pytest.mark.parametrize(("apart", "known"), [(3, True), (0.5, False)])
def test_what_is_in_no_region_is_most_of_all(apart: float, known: bool) -> None:
    """Task queues in small blocks, and of the regions only the C library's own: half of all is what tells."""
    stats = sampled(period=500_000, rate=3, begun=False)
    elsewhere = np.array([[0.75, 0.0], [0.25, 0.0]]) * apart * stats.all_accesses.sum()
    found = first_touch_traffic(
        first_touches(replace(stats, elsewhere=elsewhere)), [0, 1], Machine.load("2x1")
    )
    assert (found is not None) == known
    if found is not None:
        assert np.trace(found) / found.sum() == pytest.approx(0.75)
