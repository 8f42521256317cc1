"""Siblings count as their mean in what they exchange with whom they all work for."""

import numpy as np
import pytest

from numaplan.mapper import PlanOptions
from numaplan.mapper.planning.cost.timed_task import TimedTask
from numaplan.mapper.planning.cost.unbound import LEFT
from numaplan.mapper.planning.planner import plan_task
from numaplan.mapper.planning.search.candidates import choose
from numaplan.mapper.planning.search.order import in_order_of_creation
from numaplan.mapper.workload.roles.siblings import siblings_of
from numaplan.profiler import Machine
from tests.support.timed import workload

THREADS = [("p0", "0"), *[("p0", f"0.{number}") for number in range(1, 5)]]


def exchanged(pairs: dict[tuple[int, int], float], threads: int = 5) -> np.ndarray:
    matrix = np.zeros((threads, threads))
    for (one, other), lines in pairs.items():
        matrix[one, other] = matrix[other, one] = lines
    return matrix


def test_workers_of_one_thread_are_siblings_but_for_one_that_does_something_else() -> None:
    lines = exchanged({(0, 1): 10, (0, 2): 13, (0, 3): 8, (0, 4): 100})
    assert [group.tolist() for group in siblings_of(THREADS, lines)] == [[1, 2, 3]]


def test_threads_that_talk_to_each_other_have_no_siblings() -> None:
    chain = exchanged({(one, one + 1): 10 for one in range(4)})
    assert siblings_of(THREADS, chain) == []
    pairs = exchanged({(1, 2): 10, (3, 4): 12})
    assert siblings_of(THREADS, pairs) == []
    assert siblings_of(THREADS, np.zeros((5, 5))) == []


def test_siblings_have_one_creator_one_name_and_one_partner() -> None:
    lines = exchanged({(0, number): 10 for number in range(1, 5)})
    threads = [*THREADS[:3], ("p0", "0.1.1"), ("p0", "0.1.2")]
    assert [group.tolist() for group in siblings_of(threads, lines)] == [[1, 2], [3, 4]]
    names = ["main", "reader", "worker-1", "worker-2", "worker-3"]
    assert [group.tolist() for group in siblings_of(THREADS, lines, names)] == [[2, 3, 4]]


@pytest.mark.parametrize(
    ("places", "ordered"),
    [([0, 0, 1, 1], True), ([1, 0, 0, 2], True), ([0, 1, 0, 1], False), ([0, 0, 0, 0], False)],
)
def test_in_order_of_creation(places: list[int], ordered: bool) -> None:
    assert in_order_of_creation(np.array(places)) is ordered


def test_no_placement_parts_workers_by_which_of_them_took_more() -> None:
    """Of six workers on the nodes that the maker of them is not on, none belongs anywhere by its lines."""
    work = workload(lines={(0, number): 1700 - 700 * (number % 2) for number in range(1, 8)}, threads=8)
    task, _ = plan_task(work, Machine.load("4x2"), PlanOptions(objective="time"))
    found = choose(TimedTask(task))
    assert found.tried[0].places.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    lines = [one.cost.lines_ns for one in (found.alone, found.tried[0])]
    assert lines[0] == pytest.approx(
        (1 + LEFT) * lines[1]
    )  # the kernel has them nowhere else, but moves them
