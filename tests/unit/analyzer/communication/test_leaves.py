"""Communication in leaves of halved memory: against the definition, in pieces, and what it is good for."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.analyzer import CommunicationCounter
from numaplan.analyzer.communication.leaves import RAISED, LeafCounter, LeafCounts

THREADS, GROUPS, WINDOW = 4, 2, 7
ROOT = 1 << 20
Sample = tuple[int, int, bool]
# A few lines next to each other, far apart in one root, and in other roots.
places = st.sampled_from(
    [64 * line for line in (0, 1, 2, 3, 9, 4000, 16383)] + [3 * ROOT, 3 * ROOT + 65, 1 << 47]
)
traces = st.lists(st.tuples(st.integers(0, THREADS - 1), places, st.booleans()), max_size=90)


def counter(budgets: tuple[int, ...], most: int = 1 << 20) -> LeafCounter:
    return LeafCounter(THREADS, budgets, groups=GROUPS, event_window=3, pair_window=WINDOW, most=most)


def give(to: LeafCounter, samples: list[Sample]) -> None:
    thread, addr, wrote = zip(*samples, strict=True) if samples else ((), (), ())
    to.add(np.array(addr, np.uint64), np.array(thread, np.uint16), np.array(wrote, np.uint8))


def leaves_of(samples: list[tuple[int, Sample]], budget: int, size: int) -> list[list[tuple[int, Sample]]]:
    """The definition: halve while more than `budget` samples are by others than the main thread."""
    by_thread = Counter(thread for _, (thread, _, _) in samples)
    if size == 64 or len(samples) - max(by_thread.values(), default=0) <= budget:
        return [samples]
    halves = [[one for one in samples if one[1][1] // (size // 2) % 2 == side] for side in (0, 1)]
    return [leaf for half in halves for leaf in leaves_of(half, budget, size // 2)]


def defined(samples: list[Sample], budget: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(N, N) symmetric events and transfers, and the mean of these over where blocks begin."""
    raised = ([(thread, addr + by, wrote) for thread, addr, wrote in samples] for by in RAISED)
    found = [_with_blocks(one, budget) for one in raised]
    return *found[0], np.mean([transfers for _, transfers in found], axis=0)


def _with_blocks(samples: list[Sample], budget: int) -> tuple[np.ndarray, np.ndarray]:
    """Sample by sample, with blocks that begin at multiples of their size."""
    events, transfers = np.zeros((2, THREADS, THREADS))
    numbered = list(enumerate(samples))
    roots = {addr // ROOT for _, (_, addr, _) in numbered}
    for root in roots:
        for leaf in leaves_of([one for one in numbered if one[1][1] // ROOT == root], budget, ROOT):
            writer, known = -1, set()
            of = Counter(thread for _, (thread, _, _) in leaf)
            lines, windows, met = defaultdict(set), defaultdict(set), Counter()
            for number, (thread, addr, wrote) in leaf:
                if writer not in (-1, thread) and thread not in known:
                    pair = min(writer, thread), max(writer, thread)
                    met[pair] += 1
                    lines[pair].add(addr // 64)
                    windows[pair].add(number // WINDOW)
                if wrote:
                    writer, known = thread, set()
                known.add(thread)
            one_line = len({addr // 64 for _, (_, addr, _) in leaf}) == 1
            for pair, count in met.items():
                events[pair] += count
                apart = len(windows[pair]) / min(of[thread] for thread in pair)
                transfers[pair] += count**0.75 if one_line else len(lines[pair]) * apart**0.25
    return events + events.T, transfers + transfers.T


def symmetric(counts: LeafCounts) -> list[np.ndarray]:
    """(budgets, N, N) events and transfers of all groups, and the mean over where blocks begin."""
    whole = [counts.events.sum(axis=1).astype(float), counts.transfers.sum(axis=1), counts.total]
    return [part + part.transpose(0, 2, 1) for part in whole]


@given(traces, st.integers(0, 20))
def test_leaves_are_counted_as_defined(samples: list[Sample], budget: int) -> None:
    one = counter((budget, budget + 5))
    give(one, samples)
    events, *transfers = symmetric(one.counts())
    for column, allowed in enumerate((budget, budget + 5)):
        expected = defined(samples, allowed)
        assert np.array_equal(events[column], expected[0])
        for found, right in zip(transfers, expected[1:], strict=True):
            np.testing.assert_allclose(found[column], right, rtol=1e-12)


@given(traces, st.integers(1, 30))
def test_blocks_of_samples_add_up_and_asking_changes_nothing(samples: list[Sample], size: int) -> None:
    whole, pieces = counter((3,)), counter((3,))
    give(whole, samples)
    for start in range(0, len(samples), size):
        give(pieces, samples[start : start + size])
        pieces.counts()
    for one, other in zip(whole.counts(), pieces.counts(), strict=True):
        assert np.array_equal(one, other)


@given(traces, st.integers(1, 30))
def test_more_than_is_kept_is_counted_in_parts(samples: list[Sample], most: int) -> None:
    """Each part begins anew, but for the numbers of samples, by which they are grouped."""
    one = counter((3,), most)
    give(one, samples)
    expected = np.zeros((3, THREADS, THREADS))
    for start in range(0, len(samples), most):
        shifted: list[Sample] = [(0, 1 << 60, False)] * start + samples[start : start + most]
        expected += defined(shifted, 3)
    np.testing.assert_allclose([part[0] for part in symmetric(one.counts())], expected, rtol=1e-12)


def test_events_are_grouped_by_time() -> None:
    one = counter((100,))
    give(one, [(0, 0, True), (1, 0, False), (2, 0, False), (3, 0, False)])
    events = one.counts().events[0]
    assert events[0, 0, 1] == events[0, 0, 2] == 1
    assert events[1, 0, 3] == 1
    assert events.sum() == 3


def test_what_is_found_hardly_depends_on_where_memory_begins() -> None:
    """Two pairs share as much at the border of their parts: one where blocks end, the other not."""
    sums, part = np.zeros((4, 4)), 1 << 18
    for seed in range(12):
        rng = np.random.default_rng(seed)
        thread = rng.integers(0, 4, 4000)
        border = np.where(thread < 2, 1 << 40, (1 << 41) + (1 << 20) // 3)
        place = border + np.where(thread % 2, -1, 1) * rng.integers(-part // 64, part, len(thread))
        found = CommunicationCounter(4)
        found.add(thread, place, rng.random(len(thread)) < 0.5)
        sums += found.result().matrix
    assert 0.9 < sums[0, 1] / sums[2, 3] < 1.1


def test_blocks_of_no_two_places_end_alike() -> None:
    for size in (1 << shift for shift in range(8, 21)):
        assert len({raised % size for raised in RAISED}) == len(RAISED)


def test_chance_is_not_believed() -> None:
    """Samples that are in several blocks, as these begin at three places, do not agree with themselves."""
    rng = np.random.default_rng(4)
    for reach in (400 * 64, 1 << 30):
        found = CommunicationCounter(16)
        addr = rng.integers(0, reach, 20_000)
        found.add(rng.integers(0, 16, len(addr)), addr, rng.random(len(addr)) < 0.3)
        assert found.result().confidence < 0.4


def test_hot_memory_is_told_apart_finely_and_sparse_memory_still_seen() -> None:
    """Beside each other: lines used often by pairs of threads, and a table that two others hardly touch."""
    rng = np.random.default_rng(1)
    count = 40_000
    hot = rng.random(count) < 0.9
    line = rng.integers(0, 64, count)
    thread = np.where(hot, line % 4 // 2 * 2 + rng.integers(0, 2, count), 4 + rng.integers(0, 2, count))
    addr = np.where(hot, line * 64, 8192 + rng.integers(0, 1 << 19, count) // 64 * 64)
    found = CommunicationCounter(6)
    found.add(thread, addr, rng.random(count) < 0.5)
    matrix = found.result().matrix
    pairs = {(0, 1), (2, 3), (4, 5)}
    inside = min(matrix[pair] for pair in pairs)
    outside = max(matrix[i, j] for i in range(6) for j in range(i + 1, 6) if (i, j) not in pairs)
    assert inside > 20 * outside


@pytest.mark.parametrize("threads", [1, 2, 2048])
def test_any_number_of_threads_is_counted(threads: int) -> None:
    one = LeafCounter(threads, (8,), groups=1, event_window=512, pair_window=512)
    thread = np.arange(4 * threads, dtype=np.uint16) % threads
    one.add(np.zeros(len(thread), np.uint64), thread, np.ones(len(thread), np.uint8))
    counts = one.counts().events[0, 0]
    ring = np.roll(np.eye(threads), 1, axis=1) if threads > 1 else np.zeros((1, 1))
    assert np.array_equal(counts > 0, ring > 0)
    assert counts.sum() == (4 * threads - 1 if threads > 1 else 0)


def test_columns_that_would_harm_are_refused() -> None:
    one = counter((3,))
    addr, thread, wrote = np.zeros(3, np.uint64), np.zeros(3, np.uint16), np.zeros(3, np.uint8)
    for bad in ((addr[:2], thread, wrote), (addr, thread + 4, wrote), (addr[::2], thread[::2], wrote[::2])):
        with pytest.raises(ValueError, match=r"length|range|contiguous"):
            one.add(*bad)
    assert not one.counts().events.any()


def test_events_weigh_by_the_kind_of_access_that_sees_them() -> None:
    one = LeafCounter(THREADS, (3,), groups=1, event_window=512, pair_window=512, weights=(5, 2))
    give(one, [(0, 0, True), (1, 0, False), (2, 0, True)])
    counts = one.counts()
    events, transfers = counts.events[0, 0], counts.transfers[0, 0]
    assert events[0, 1] == 5 and events[0, 2] == 2
    assert transfers[0, 1] == transfers[0, 2] == 1


def test_lines_count_and_not_how_often_each_is_read() -> None:
    """A row of a grid and a column, read as often: eight words of a line, and a single one."""
    rng = np.random.default_rng(3)
    grid = 1 << 11  # words, eight in a line
    row, column = np.arange(grid // 8), np.arange(0, grid, 8)
    step = [(0, np.arange(grid), True), (1, row, False), (2, column, False)]
    whole = [
        (np.full(len(words), thread), (1 << 30) + 8 * words, np.full(len(words), wrote))
        for _ in range(200)
        for thread, words, wrote in step
    ]
    columns = [np.concatenate(parts) for parts in zip(*whole, strict=True)]
    exact, sampled = CommunicationCounter(3, exact=True), CommunicationCounter(3)
    exact.add(*columns)
    chosen = np.flatnonzero(rng.random(len(columns[0])) < 0.005)
    sampled.add(*(values[chosen] for values in columns))
    truth, found = exact.result().matrix, sampled.result().matrix
    assert truth[0, 2] == 8 * truth[0, 1]
    assert found[0, 2] > 2.5 * found[0, 1]


@pytest.mark.parametrize("budgets", [(1025,), (8, 4), tuple(range(9))])
def test_budgets_that_the_native_part_does_not_take_are_refused(budgets: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="budgets"):
        counter(budgets)
