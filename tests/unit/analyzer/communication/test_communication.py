"""The communication matrix: counted as defined, by every rule, and right on traces whose truth is known."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from numaplan.analyzer import RULES, CommunicationCounter, communication_matrix, measure
from numaplan.analyzer.communication.blocks import BlockCounter
from numaplan.analyzer.communication.combining import Layer, combine
from numaplan.common import UsageError

THREADS = 5
Sample = tuple[int, int, bool]
traces = st.lists(st.tuples(st.integers(0, THREADS - 1), st.integers(0, 400), st.booleans()), max_size=120)


def arrays(samples: list[Sample]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    thread = np.array([sample[0] for sample in samples], np.uint16)
    addr = np.array([sample[1] for sample in samples], np.uint64)
    return thread, addr, np.array([sample[2] for sample in samples], bool)


def by_rule(samples: list[Sample], rule: str, block: int = 64, threads: int = THREADS) -> np.ndarray:
    thread, addr, is_write = arrays(samples)
    time = np.arange(len(samples))
    return communication_matrix(thread, addr, is_write, time, threads=threads, rule=rule, block=block)


def last_writer_of(samples: list[Sample], block: int) -> np.ndarray:
    """The definition, sample by sample."""
    matrix = np.zeros((THREADS, THREADS))
    writer: dict[int, int] = {}
    seen: dict[int, set[int]] = {}
    for thread, addr, is_write in samples:
        place = addr // block
        known = seen.setdefault(place, set())
        other = writer.get(place, thread)
        if other != thread and thread not in known:
            matrix[other, thread] += 1
            matrix[thread, other] += 1
        if is_write:
            writer[place] = thread
            known.clear()
        known.add(thread)
    return matrix


@given(traces, st.sampled_from([1, 16, 64, 256]))
def test_last_writer_is_counted_as_defined(samples: list[Sample], block: int) -> None:
    assert np.array_equal(by_rule(samples, "last_writer", block), last_writer_of(samples, block))


@given(traces)
def test_consecutive_rules_are_counted_as_defined(samples: list[Sample]) -> None:
    matrices = {rule: np.zeros((THREADS, THREADS)) for rule in ("any", "write", "window")}
    blocks: dict[int, list[tuple[int, Sample]]] = {}
    for time, sample in enumerate(samples):
        blocks.setdefault(sample[1] // 64, []).append((time, sample))
    for visits in blocks.values():
        for (before, (one, _, wrote)), (after, (other, _, writes)) in pairwise(visits):
            if one == other:
                continue
            step = np.zeros((THREADS, THREADS))
            step[one, other] = step[other, one] = 1
            matrices["any"] += step
            matrices["write"] += step * (wrote or writes)
            matrices["window"] += step * ((wrote or writes) and after - before <= 3)
    thread, addr, is_write = arrays(samples)
    for rule, expected in matrices.items():
        time = np.arange(len(samples))
        found = communication_matrix(thread, addr, is_write, time, threads=THREADS, rule=rule, window=3)
        assert np.array_equal(found, expected), rule


@given(traces)
def test_writer_rules_are_counted_as_defined(samples: list[Sample]) -> None:
    same, two = np.zeros((THREADS, THREADS)), np.zeros((THREADS, THREADS))
    writers: dict[int, list[int]] = {}
    for thread, addr, is_write in samples:
        known = writers.setdefault(addr // 64, [])  # latest first, each once in a row
        if known and known[0] != thread:
            same[thread, known[0]] += 1
        for writer in known[:2]:
            if writer != thread:
                two[thread, writer] += 1
        if is_write and (not known or known[0] != thread):
            known.insert(0, thread)
    assert np.array_equal(by_rule(samples, "same_line"), same + same.T)
    assert np.array_equal(by_rule(samples, "last_two_writers"), two + two.T)


@given(traces, st.sampled_from(RULES))
def test_every_matrix_is_symmetric_finite_and_has_no_diagonal(samples: list[Sample], rule: str) -> None:
    matrix = by_rule(samples, rule)
    assert np.isfinite(matrix).all() and (matrix >= 0).all()
    assert np.allclose(matrix, matrix.T) and not matrix.diagonal().any()


HALVES_AGREE_BY_ROUNDING = [
    *[(0, 0, number == 0) for number in range(6)], (0, 256, False), (0, 256, False), (1, 192, True),
    (1, 128, False), (1, 320, True), (1, 256, False), (2, 0, False), (2, 128, True), (3, 256, True),
    (3, 256, False), (0, 128, False), (0, 256, False), (0, 320, False), (2, 0, True), (2, 0, False),
    (2, 320, False), (3, 320, True), (4, 0, False), (4, 128, True), (4, 256, False), (4, 320, False),
    (3, 256, False), (3, 128, False),
]  # fmt: skip


@example(HALVES_AGREE_BY_ROUNDING, [0, 4, 2, 3, 1])
@given(traces, st.permutations(range(THREADS)))
def test_naming_threads_otherwise_only_renames_the_matrix(samples: list[Sample], names: list[int]) -> None:
    renamed = [(names[thread], addr, is_write) for thread, addr, is_write in samples]
    assert np.allclose(by_rule(renamed, "best")[np.ix_(names, names)], by_rule(samples, "best"))


@given(traces, st.integers(1, 40))
def test_blocks_of_samples_add_up_to_the_whole(samples: list[Sample], size: int) -> None:
    thread, addr, is_write = arrays(samples)
    counter = CommunicationCounter(THREADS)
    for start in range(0, len(samples), size):
        part = slice(start, start + size)
        counter.add(thread[part], addr[part], is_write[part])
    assert np.allclose(counter.result().matrix, measure(thread, addr, is_write, threads=THREADS).matrix)


def test_time_order_is_restored() -> None:
    rng = np.random.default_rng(1)
    thread, addr = rng.integers(0, 4, 3000), rng.integers(0, 4096, 3000)
    is_write, time = rng.random(3000) < 0.4, np.arange(3000)
    order = rng.permutation(3000)
    for rule in RULES:
        straight = communication_matrix(thread, addr, is_write, time, threads=4, rule=rule)
        mixed = communication_matrix(
            thread[order], addr[order], is_write[order], time[order], threads=4, rule=rule
        )
        assert np.allclose(straight, mixed), rule


def test_every_access_recorded_gives_the_exact_count() -> None:
    """Thread 2k writes 1000 lines, thread 2k+1 reads half or all of them, seven rounds."""
    samples: list[Sample] = []
    for _ in range(7):
        for writer, lines in ((0, 1000), (2, 500)):
            base = writer << 20
            samples += [(writer, base + 64 * line, True) for line in range(1000)]
            samples += [(writer + 1, base + 64 * line, False) for line in range(lines)]
    thread, addr, is_write = arrays(samples)
    found = measure(thread, addr, is_write, threads=4, period=1)
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 7000
    expected[2, 3] = expected[3, 2] = 3500
    assert np.array_equal(found.matrix, expected)
    assert found.confidence == 1.0 and not found.standard_error.any()


def ring(threads: int, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples of threads on a ring: each writes its own 64 KiB and reads the borders of both neighbours."""
    rng = np.random.default_rng(seed)
    thread = rng.integers(0, threads, count)
    own = rng.random(count) < 0.7
    where = np.where(own, thread, (thread + rng.choice([-1, 1], count)) % threads)
    offset = np.where(own, rng.integers(0, 65536, count), rng.integers(0, 8192, count))
    return (
        thread.astype(np.uint16),
        (where * 65536 + offset).astype(np.uint64),
        own & (rng.random(count) < 0.5),
    )


def test_a_sampled_ring_is_recognised_with_confidence() -> None:
    found = measure(*ring(12, 60_000), threads=12)
    near = np.roll(np.eye(12), 1, axis=1) + np.roll(np.eye(12), -1, axis=1)
    assert np.corrcoef(found.matrix[np.triu_indices(12, 1)], near[np.triu_indices(12, 1)])[0, 1] > 0.98
    assert found.confidence > 0.9
    assert sum(found.weights.values()) == pytest.approx(1)


def test_threads_that_spin_on_a_flag_do_not_hide_who_communicates() -> None:
    """Four samples in five are of one word that all read, and now and then write, as they wait."""
    thread, addr, is_write = ring(12, 30_000)
    rng = np.random.default_rng(5)
    place = np.sort(rng.integers(0, len(thread), 4 * len(thread)))
    spun = (
        np.insert(thread, place, rng.integers(0, 12, len(place)).astype(np.uint16)),
        np.insert(addr, place, np.uint64(12 << 16)),
        np.insert(is_write, place, rng.random(len(place)) < 0.01),
    )
    near = np.roll(np.eye(12), 1, axis=1) + np.roll(np.eye(12), -1, axis=1)
    upper = np.triu_indices(12, 1)
    found, any_access = (
        measure(*spun, threads=12).matrix,
        communication_matrix(*spun, np.arange(len(spun[0])), threads=12, rule="any", block=4096),
    )
    assert np.corrcoef(found[upper], near[upper])[0, 1] > 0.99
    assert np.corrcoef(any_access[upper], near[upper])[0, 1] < 0.8


def test_fewer_samples_give_less_confidence_and_larger_relative_errors() -> None:
    many, few = measure(*ring(12, 60_000), threads=12), measure(*ring(12, 600), threads=12)
    assert few.confidence < many.confidence
    used = many.matrix > many.matrix.max() / 2
    relative = [
        float((found.standard_error[used] / found.matrix[used].mean()).mean()) for found in (many, few)
    ]
    assert relative[0] < relative[1]


def test_standard_errors_tell_how_far_other_runs_are_off() -> None:
    runs = [measure(*ring(6, 20_000, seed), threads=6) for seed in range(12)]
    matrices = np.array([run.matrix / run.matrix.sum() for run in runs])
    scatter = matrices.std(axis=0, ddof=1)
    told = np.mean([run.standard_error / run.matrix.sum() for run in runs], axis=0)
    near = np.roll(np.eye(6), 1, axis=1) > 0
    assert 0.4 < np.median(told[near]) / np.median(scatter[near]) < 2.5


def test_memory_stays_bounded_and_the_matrix_right() -> None:
    thread, addr, is_write = ring(8, 200_000)
    spread = addr * np.uint64(37)  # more lines than the small table holds
    counter = CommunicationCounter(8, most=1 << 15)
    counter.add(thread, spread, is_write)
    whole = measure(thread, spread, is_write, threads=8)
    upper = np.triu_indices(8, 1)
    assert np.corrcoef(counter.result().matrix[upper], whole.matrix[upper])[0, 1] > 0.9
    small = BlockCounter(8, 6, table_bytes=1 << 18)
    small.add(spread, thread, is_write.view(np.uint8))
    followed, stands_for = small.blocks()
    assert stands_for > 1 and followed * 16 < 1 << 18
    lines = len(np.unique(spread >> np.uint64(6)))
    assert 0.8 < followed * stands_for / lines < 1.25


@pytest.mark.parametrize("threads", [1, 2, 3, 48, 49, 64, 65])
@pytest.mark.parametrize("writes", [False, True])
def test_degenerate_input_gives_no_nan(threads: int, writes: bool) -> None:
    for count in (0, 1, 2, 300):
        thread = np.arange(count) % threads
        found = measure(thread, np.full(count, 4096), np.full(count, writes), threads=threads)
        assert found.matrix.shape == (threads, threads)
        assert np.isfinite(found.matrix).all() and np.isfinite(found.standard_error).all()
        assert 0 <= found.confidence <= 1
        assert found.matrix.any() == (writes and threads > 1 and count > 1)


def test_a_thousand_threads() -> None:
    thread, addr, is_write = ring(1024, 100_000)
    found = measure(thread, addr, is_write, threads=1024)
    near = np.roll(np.eye(1024), 1, axis=1) + np.roll(np.eye(1024), -1, axis=1)
    assert np.isfinite(found.matrix).all() and np.isfinite(found.standard_error).all()
    # Its parts begin where blocks do at the first place: that alone would find all, by luck.
    assert found.matrix[near > 0].sum() > 0.85 * found.matrix.sum()


def test_misuse_is_said() -> None:
    one = np.zeros(3, int)
    with pytest.raises(UsageError, match="differ in length"):
        communication_matrix(one, one[:2], one, one, threads=2)
    with pytest.raises(UsageError, match=r"not in 0\.\.1"):
        communication_matrix(one + 2, one, one, one, threads=2)
    with pytest.raises(UsageError, match="no rule 'nearest'"):
        communication_matrix(one, one, one, one, threads=2, rule="nearest")
    with pytest.raises(UsageError, match="block of 100 bytes"):
        communication_matrix(one, one, one, one, threads=2, rule="any", block=100)
    with pytest.raises(UsageError, match="0 threads"):
        communication_matrix(one[:0], one[:0], one[:0], one[:0], threads=0)


def layer(name: str, groups: np.ndarray) -> Layer:
    return Layer(name, groups, groups, groups.sum(axis=0))


def test_what_is_chance_among_blocks_of_a_size_weighs_little() -> None:
    """Two layers of as many events; one sees the same ring in all parts of the run, one others each time."""
    near = np.roll(np.eye(12), 1, axis=1) + np.roll(np.eye(12), -1, axis=1)
    rng = np.random.default_rng(1)
    chance = np.array([near[np.ix_(order, order)] for order in (rng.permutation(12) for _ in range(8))])
    steady = np.repeat(near[None], 8, axis=0)
    found = combine([layer("steady", steady), layer("chance", chance)])
    assert found.weights["steady"] > 3 * found.weights["chance"]
    nothing = np.zeros_like(chance)
    alone = combine([layer("chance", chance), layer("empty", nothing)])
    assert alone.weights == {"chance": 1.0, "empty": 0.0}


def test_every_tenth_sample_still_tells_who_communicates(shared_fixtures: Path) -> None:
    found = []
    for path in sorted((shared_fixtures / "traces").glob("*.npz")):
        data = np.load(path)
        exact, keep = data["exact_write_app"], ~data["stack"]
        thread = data["thread"][keep]
        chosen = np.zeros(len(thread), bool)
        for one in range(len(exact)):
            chosen[np.flatnonzero(thread == one)[::10]] = True
        columns = [data[name][keep][chosen] for name in ("thread", "addr", "is_write", "time")]
        upper = np.triu_indices(len(exact), 1)
        matrix = communication_matrix(*columns, threads=len(exact))
        found.append(float(np.corrcoef(matrix[upper], exact[upper])[0, 1]))
    assert np.mean(found) >= 0.863


def test_real_codes_correlate_with_their_exact_matrices(shared_fixtures: Path) -> None:
    found: dict[str, list[float]] = {"best": [], "last_writer": [], "same_line": []}
    for path in sorted((shared_fixtures / "traces").glob("*.npz")):
        data = np.load(path)
        exact, keep = data["exact_write_app"], ~data["stack"]
        columns = [data[name][keep] for name in ("thread", "addr", "is_write", "time")]
        upper = np.triu_indices(len(exact), 1)
        for rule, values in found.items():
            matrix = communication_matrix(*columns, threads=len(exact), rule=rule)
            values.append(float(np.corrcoef(matrix[upper], exact[upper])[0, 1]))
    assert np.mean(found["best"]) >= 0.93
    assert min(found["best"]) >= 0.75
    assert np.mean(found["best"]) > np.mean(found["last_writer"]) + 0.1
    assert np.mean(found["best"]) > np.mean(found["same_line"]) + 0.1
