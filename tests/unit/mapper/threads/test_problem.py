"""What the mapper refuses, and how it counts."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.common import UsageError
from numaplan.mapper import PlanOptions, evaluate, make_plan, map_threads
from numaplan.mapper.threads.problem import node_sizes
from numaplan.mapper.workload.workload import workload_of_files
from numaplan.profiler import Machine


def changed(row: int, column: int, value: float, *, both: bool = True) -> np.ndarray:  # type: ignore[type-arg]
    comm = np.ones((4, 4))
    comm[row, column] = value
    if both:
        comm[column, row] = value
    return comm


@pytest.mark.parametrize(
    "comm,words",
    [
        (changed(1, 3, np.nan), "nan at row 1, column 3"),
        (changed(0, 2, -2.0), "-2 at row 0, column 2"),
        (changed(2, 3, np.inf), "inf at row 2, column 3"),
        (changed(1, 2, 7.0, both=False), "not symmetric: 7 at row 1, column 2 but 1 at row 2, column 1"),
        (np.ones((3, 4)), "3 x 4, not square"),
        (np.ones(4), "4, not square"),
        (np.zeros((0, 0)), "0 threads"),
        ([[1, 2], [3]], "N rows of N numbers"),
        ("text", "N rows of N numbers"),
    ],
)
def test_bad_matrices_are_refused(comm: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        map_threads(comm, None, "2x2")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=words):
        evaluate(comm, None, "2x2", [0, 0, 1, 1])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "loads,words",
    [
        ([1, 2, 3], "3 loads for 4 threads"),
        ([1, 2, np.nan, 4], "nan at row 2"),
        ([1, -1, 1, 1], "-1 at row 1"),
    ],
)
def test_bad_loads_are_refused(loads: list[float], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        map_threads(np.ones((4, 4)), loads, "2x2")


def test_the_diagonal_and_rounding_are_ignored() -> None:
    comm = np.array([[5.0, 0.1 + 0.2], [0.3, 9.0]])
    costs = evaluate(comm, None, "2x1", [0, 1])
    assert costs.remote_comm == pytest.approx(0.3)
    assert costs.remote_share == 1.0


def test_costs_by_hand() -> None:
    comm = np.array([[0, 4, 1], [4, 0, 2], [1, 2, 0]])
    costs = evaluate(comm, [1, 2, 5], "2x2", [0, 0, 1])
    assert (costs.remote_comm, costs.remote_share) == (3.0, 3 / 7)
    assert costs.hop_cost == 4 * 10 + 3 * 21
    assert (costs.load_std, costs.load_std_mean) == (1.0, (5 - 1.5) / 2)
    assert costs.node_loads == (3.0, 5.0)


def test_tiny_remote_beside_huge_local_is_not_lost() -> None:
    comm = np.zeros((4, 4))
    comm[0, 1] = comm[1, 0] = 1e300
    comm[1, 2] = comm[2, 1] = 1e-300
    assert evaluate(comm, None, "2x2", [0, 0, 1, 1]).remote_comm == 1e-300


def test_nodes_that_are_not_there_are_refused() -> None:
    with pytest.raises(UsageError, match="no node 5"):
        evaluate(np.ones((2, 2)), None, "2x2", [0, 5])
    with pytest.raises(UsageError, match="1 nodes for 2 threads"):
        evaluate(np.ones((2, 2)), None, "2x2", [0])


@given(threads=st.integers(1, 500), seats=st.lists(st.integers(1, 64), min_size=1, max_size=16))
def test_sizes_are_fair_and_within_the_seats(threads: int, seats: list[int]) -> None:
    array = np.array(seats)
    sizes = node_sizes(threads, array)
    assert sizes.sum() == threads
    assert (np.abs(sizes - threads * array / array.sum()) < 1).all()
    if threads <= sum(seats):
        assert (sizes <= array).all()


def test_equal_nodes_get_one_more_from_the_front() -> None:
    assert node_sizes(10, np.array([4, 4, 4, 4])).tolist() == [3, 3, 2, 2]
    assert node_sizes(2, np.array([4, 4, 4])).tolist() == [1, 1, 0]


@pytest.mark.parametrize("threads,remarks", [(1, 0), (3, 2)])
def test_a_single_thread_is_not_called_unbalanced_or_silent(
    tmp_path: Path, threads: int, remarks: int
) -> None:
    np.savetxt(tmp_path / "comm.csv", np.zeros((threads, threads)), delimiter=",")
    made = make_plan(workload_of_files(tmp_path / "comm.csv", None), Machine.load("2x4"), PlanOptions())
    assert len(made.notes) == remarks
