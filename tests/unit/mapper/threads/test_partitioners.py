"""The partitioners of others: seats are exact, and a missing package is said in one line."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.common import MachineLacksError
from numaplan.mapper import METHODS, map_threads
from numaplan.mapper.threads.methods.partitioners import repair
from numaplan.mapper.threads.problem import new_problem
from numaplan.profiler import Machine
from tests.support.properties import examples

PARTITIONERS = [name for name, method in METHODS.items() if method.needs]


@examples(40)
@given(threads=st.integers(1, 24), nodes=st.integers(1, 5), seed=st.integers(0, 99))
def test_repair_gives_exact_seats(threads: int, nodes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    comm = np.triu(rng.random((threads, threads)), 1)
    problem = new_problem(comm + comm.T, None, Machine.load(f"{nodes}x8"))
    places = repair(problem, rng.integers(0, nodes, threads))
    assert np.bincount(places, minlength=nodes).tolist() == problem.sizes.tolist()


def test_repair_moves_who_talks_least_there() -> None:
    comm = np.zeros((4, 4))
    comm[0, 1] = comm[1, 0] = 9
    comm[2, 3] = comm[3, 2] = 5
    problem = new_problem(comm, None, Machine.load("2x2"))
    places = repair(problem, np.array([0, 0, 0, 1]))
    assert places.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("name", PARTITIONERS)
def test_partitioner_works_or_says_what_to_install(name: str) -> None:
    ring = np.roll(np.eye(16), 1, axis=0) + np.roll(np.eye(16), -1, axis=0)
    if METHODS[name].installed:
        assert np.bincount(map_threads(ring, None, "4x4", name)).tolist() == [4, 4, 4, 4]
    else:
        with pytest.raises(MachineLacksError, match=f"pip install {METHODS[name].needs}"):
            map_threads(ring, None, "4x4", name)
