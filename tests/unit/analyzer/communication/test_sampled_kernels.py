"""Kernels with a known pattern, every access made here: a small sample shows the matrix of all accesses."""

from collections.abc import Callable

import numpy as np
import pytest

from numaplan.analyzer import CommunicationCounter

THREADS = 8
OWN = 1 << 16  # bytes that each role writes
SAMPLED = 50  # accesses a sample
Reads = list[tuple[int, int, int]]  # whose memory, from, to


def ring(role: int, _: int) -> Reads:
    return [((role + 1) % THREADS, 0, 8192), ((role - 1) % THREADS, OWN - 8192, OWN)]


def far(role: int, _: int) -> Reads:
    return [((role + THREADS // 2) % THREADS, 0, 16384)]


def tree(role: int, _: int) -> Reads:
    return [(child, 0, 8192) for child in (2 * role + 1, 2 * role + 2) if child < THREADS]


def pipeline(role: int, _: int) -> Reads:
    return [(role - 1, 0, OWN // 2)] if role else []


def master(role: int, _: int) -> Reads:
    return (
        [(0, role * 8192, role * 8192 + 8192)] if role else [(other, 0, 2048) for other in range(1, THREADS)]
    )


def phases(role: int, iteration: int) -> Reads:
    return [(role ^ 1, 0, 16384)] if iteration < 20 else [((role + 4) % THREADS, 0, 16384)]


def run(reads: Callable[[int, int], Reads], names: np.ndarray, iteration: int) -> tuple[np.ndarray, ...]:
    """(thread, address, is_write) of one iteration; turns of about 1000 accesses go to threads at random."""
    rng = np.random.default_rng(iteration)
    turns: list[tuple[float, int, np.ndarray, np.ndarray]] = []
    for role in range(THREADS):
        spans = [(role, 0, OWN), *reads(role, iteration)]
        addr = np.concatenate([np.arange(start, end, 8) + owner * OWN for owner, start, end in spans])
        is_write = np.arange(len(addr)) < OWN // 8
        when = 0.0
        for start in range(0, len(addr), 1000):
            when += rng.random()
            part = slice(start, start + 1000)
            turns.append((when, int(names[role]), addr[part], is_write[part]))
    turns.sort(key=lambda turn: turn[0])
    thread = np.concatenate([np.full(len(addr), name) for _, name, addr, _ in turns])
    return thread, np.concatenate([turn[2] for turn in turns]), np.concatenate([turn[3] for turn in turns])


@pytest.mark.parametrize("reads", [ring, far, tree, pipeline, master, phases])
def test_a_sample_shows_the_pattern_of_all_accesses(reads: Callable[[int, int], Reads]) -> None:
    names = np.random.default_rng(3).permutation(THREADS)
    everything, sampled = CommunicationCounter(THREADS, exact=True), CommunicationCounter(THREADS)
    rng = np.random.default_rng(4)
    for iteration in range(40):
        thread, addr, is_write = run(reads, names, iteration)
        everything.add(thread, addr, is_write)
        chosen = [np.flatnonzero(thread == name)[rng.integers(SAMPLED) :: SAMPLED] for name in range(THREADS)]
        kept = np.sort(np.concatenate(chosen))
        sampled.add(thread[kept], addr[kept], is_write[kept])
    upper = np.triu_indices(THREADS, 1)
    exact, found = everything.result().matrix[upper], sampled.result()
    assert np.corrcoef(exact, found.matrix[upper])[0, 1] > 0.95
    assert found.confidence > 0.8
