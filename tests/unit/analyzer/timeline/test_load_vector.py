"""Timeline, phases and load vector: the paper's steps on series worked out by hand."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.analyzer import (
    Timeline,
    access_load_vector,
    access_timeline,
    change_points,
    cycles_to_ns,
    describe_phases,
    divide_phases,
    expected_misses,
    remove_outliers,
)
from numaplan.analyzer.timeline.timeline import TimelineCounter
from numaplan.common import UsageError


def as_printed(series: list[float], min_width: int) -> list[list[float]]:
    """Algorithm 1 line by line, but for the overrun of its last turn."""
    num = int(len(series) * 0.05)
    low_value = float(np.mean(sorted(series)[:num]))
    left = right = 0
    phases = []
    while right < len(series):
        if series[right] <= low_value and right - left >= min_width:
            phases.append(series[left : right + 1])
            left = right
        right += 1
    return phases


@given(st.lists(st.integers(0, 20), min_size=20, max_size=400), st.integers(1, 60))
def test_phases_are_those_of_the_printed_algorithm(series: list[int], width: int) -> None:
    found = divide_phases(series, width, complete=False)
    assert [series[start:end] for start, end in found] == as_printed([*map(float, series)], width)


@given(st.lists(st.floats(0, 1e9), max_size=300), st.integers(1, 60))
def test_phases_cover_the_series_and_share_only_borders(series: list[float], width: int) -> None:
    found = divide_phases(series, width)
    if not series:
        assert found == []
        return
    assert found[0][0] == 0 and found[-1][1] == len(series)
    for (_, end), (start, _) in pairwise(found):
        assert start == end - 1
    assert all(end - start > width for start, end in found[:-1])


def test_three_humps_are_three_phases() -> None:
    """Worked out: the lowest 22 of 450 values average 12.6: slices beside a valley are low too."""
    hump = np.concatenate([np.linspace(10, 200, 75), np.linspace(200, 10, 75)])
    series = np.concatenate([hump, hump, hump])
    assert np.flatnonzero(series <= np.mean(np.sort(series)[:22])).tolist() == [
        *(0, 1, 148, 149, 150, 151, 298, 299, 300, 301, 448, 449)
    ]
    assert divide_phases(series) == [(0, 149), (148, 299), (298, 450)]


def test_low_slices_in_a_row_do_not_make_small_phases() -> None:
    series = np.full(400, 50.0)
    series[120:140] = 0
    assert divide_phases(series) == [(0, 121), (120, 400)]
    assert divide_phases(series, 300) == [(0, 400)]


def test_what_follows_the_last_border_joins_it_when_short() -> None:
    series = np.full(250, 9.0)
    series[200] = 0
    assert divide_phases(series) == [(0, 250)]
    assert divide_phases(series, complete=False) == [(0, 201)]


def test_outliers_are_replaced_by_interpolation() -> None:
    series = np.full(40, 10.0)
    series[[7, 8]] = [100, 400]
    series[6], series[9] = 4, 10
    cleaned = remove_outliers(series)
    assert cleaned[[7, 8]].tolist() == [6, 8]
    assert np.array_equal(np.delete(cleaned, [7, 8]), np.delete(series, [7, 8]))
    assert remove_outliers([3.0, 9.0]).tolist() == [3, 9]


def test_load_vector_weights_phases_by_their_accesses_a_slice() -> None:
    cells = np.zeros((300, 2))
    cells[:100, 0] = 4  # 4 a slice, thread 0
    cells[100:, 1] = 1  # 1 a slice, thread 1
    phases = describe_phases(cells, [(0, 100), (100, 300)])
    assert [phase.weight for phase in phases] == [4, 1]
    assert [phase.loads.tolist() for phase in phases] == [[400, 0], [0, 200]]
    assert access_load_vector(cells, [(0, 100), (100, 300)]).tolist() == [4 * 400, 1 * 200]


@given(
    st.lists(st.tuples(st.integers(0, 10**10), st.integers(0, 3)), min_size=1, max_size=200),
    st.integers(10**6, 10**9),
)
def test_timeline_keeps_every_access(events: list[tuple[int, int]], width: int) -> None:
    time, thread = (np.array(column) for column in zip(*events, strict=True))
    line = access_timeline(time, thread, threads=4, slice_ns=width)
    assert line.per_thread.sum(axis=0).tolist() == np.bincount(thread, minlength=4).tolist()
    assert line.start_ns == time.min()
    for stamp, number in events[:20]:
        assert line.per_thread[(stamp - line.start_ns) // line.slice_ns, number] > 0


def test_a_long_run_widens_its_slices_instead_of_filling_memory() -> None:
    line = access_timeline([0, 10**15], [0, 1], threads=1024, slice_ns=1)
    assert line.per_thread.size <= 1 << 25
    assert line.per_thread.sum() == 2


def test_clock_conversion_is_equation_1() -> None:
    assert cycles_to_ns([0, 2_100_000], 2_100_000).tolist() == [0, 1_000_000]
    with pytest.raises(UsageError, match="clock frequency"):
        cycles_to_ns([1], 0)


def test_misuse_is_said() -> None:
    with pytest.raises(UsageError, match="differ in length"):
        access_timeline([1, 2], [0], threads=1)
    with pytest.raises(UsageError, match=r"not in 0\.\.1"):
        access_timeline([1], [5], threads=2)
    with pytest.raises(UsageError, match="finite"):
        divide_phases([1.0, float("nan")])
    assert len(access_timeline([], [], threads=2).per_thread) == 0


def rates(seed: int, *phases: tuple[int, list[float]]) -> np.ndarray:
    """Poisson counts of threads: for each phase its slices and each thread's rate."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.poisson(rate, (slices, len(rate))) for slices, rate in phases])


@pytest.mark.parametrize("seed", range(5))
def test_changes_are_found_within_two_slices(seed: int) -> None:
    """The second border leaves the sum of all threads as it is: Algorithm 1 cannot see it."""
    cells = rates(seed, (150, [20, 0, 0, 0]), (200, [10, 10, 10, 10]), (150, [16, 4, 16, 4]))
    found = change_points(cells)
    assert len(found) == 2
    assert abs(found[0] - 150) <= 2 and abs(found[1] - 350) <= 2


@pytest.mark.parametrize("seed", range(5))
def test_no_change_is_seen_in_chance(seed: int) -> None:
    assert change_points(rates(seed, (1000, [3, 5, 0.1, 8]))) == []
    assert change_points(np.zeros((50, 2))) == change_points(np.zeros((0, 3))) == change_points([[1.0]]) == []


def test_a_long_timeline_is_cut_at_merged_slices() -> None:
    cells = rates(1, (20_000, [2, 1]), (20_000, [1, 2]))
    (place,) = change_points(cells)
    assert abs(place - 20_000) <= 50


def misses_of(seed: int, rates: list[float], slices: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """(missed, accesses) samples of threads that access memory alike and miss at their own rates."""
    rng = np.random.default_rng(seed)
    accesses = np.full((slices, len(rates)), 25.0)
    return rng.binomial(25, rates, accesses.shape).astype(float), accesses


def test_misses_of_threads_that_do_alike_are_drawn_together() -> None:
    """8 threads with 100 misses each: counts scatter by 10, what is expected of them by a tenth of that."""
    scatter = []
    for seed in range(20):
        missed, accesses = misses_of(seed, [0.01] * 8)
        found = expected_misses(missed, accesses)
        scatter.append((missed.sum(axis=0).std(), found.total.std()))
        assert found.total.sum() == pytest.approx(missed.sum())
    counted, expected = np.median(scatter, axis=0)
    assert counted > 7 and expected < 2


def test_threads_that_miss_otherwise_keep_their_misses() -> None:
    missed, accesses = misses_of(1, [0.02, 0.02, 0.2, 0.2])
    assert expected_misses(missed, accesses).total == pytest.approx(missed.sum(axis=0), rel=0.02)


def test_misses_of_a_stretch_go_to_who_was_active_in_it() -> None:
    """All miss while threads 0 and 1 work, none does while 2 and 3 work: no thread is drawn to the others."""
    early, late = [30.0, 30.0, 0.0, 0.0], [0.0, 0.0, 30.0, 30.0]
    accesses = np.concatenate([np.tile(early, (200, 1)), np.tile(late, (200, 1))])
    missed = np.random.default_rng(3).binomial(accesses.astype(int), 0.01) * (np.arange(400) < 200)[:, None]
    found = expected_misses(missed, accesses)
    assert found.total[2:] == pytest.approx([0, 0], abs=1)
    assert found.total[:2] == pytest.approx(np.full(2, missed.sum() / 2), rel=0.1)
    assert found.between(0, 200) + found.between(200, 400) == pytest.approx(found.total)


def test_weighed_samples_are_as_sure_as_their_number() -> None:
    missed, accesses = misses_of(2, [0.01] * 6)
    once, thrice = expected_misses(missed, accesses), expected_misses(3 * missed, 3 * accesses, 3.0)
    assert thrice.counted == pytest.approx(once.counted)
    assert thrice.total == pytest.approx(3 * once.total)


@pytest.mark.parametrize("threads", [1, 3])
def test_misses_that_nothing_is_known_of(threads: int) -> None:
    none = np.zeros((5, threads))
    some = none.copy()
    some[2, 0] = 4
    assert expected_misses(none, none).total.tolist() == [0] * threads
    assert expected_misses(none, some).total.tolist() == [0] * threads
    assert expected_misses(some, none).total.tolist() == some.sum(axis=0).tolist()
    assert expected_misses(some, some).total.tolist() == some.sum(axis=0).tolist()


def test_sampled_loads_are_those_of_all_accesses(shared_fixtures: Path) -> None:
    """Eq. 3's vector of samples against exact totals, and misses against exact ones."""
    judged = []
    for path in sorted((shared_fixtures / "traces").glob("*.npz")):
        data = np.load(path)
        thread, time, missed = data["thread"], data["time"], data["level"] >= 2
        exact, misses = (data["loads"] + data["stores"]).astype(float), data["l2_misses"].astype(float)
        line = access_timeline(time, thread, threads=len(exact), slice_ns=int(data["accesses"]) // 1000)
        vector = access_load_vector(line.per_thread, divide_phases(line.smoothed))
        if exact.std() > 0.01 * exact.mean():
            assert np.corrcoef(vector, exact)[0, 1] >= 0.99, path.name
        else:  # threads as good as equal: what is left of their differences is the sampler's chance
            assert vector / vector.mean() == pytest.approx(exact / exact.mean(), abs=0.02), path.name
        rare = timeline_like(line, time[missed], thread[missed])
        expected = expected_misses(rare.per_thread, line.per_thread)
        judged.append(float(np.corrcoef(expected.total, misses)[0, 1]))
        ranges = divide_phases(rare.smoothed)
        weighed = access_load_vector(rare.per_thread, ranges, expected.between)
        assert np.corrcoef(weighed, misses)[0, 1] >= 0.87, path.name
    assert np.mean(judged) >= 0.97 and np.sum(np.array(judged) >= 0.95) >= 13
    assert min(judged) >= 0.87


def timeline_like(line: Timeline, time: np.ndarray, thread: np.ndarray) -> Timeline:
    """Other samples in the slices of a timeline."""
    slices, threads = line.per_thread.shape
    counter = TimelineCounter(
        threads, line.start_ns, line.start_ns + slices * line.slice_ns - 1, line.slice_ns
    )
    counter.add(time.astype(np.int64), thread)
    return counter.result()
