"""How long lines take between threads that may run on several cpus."""

import numpy as np
import pytest

from numaplan.machine import Machine, transfers
from numaplan.mapper import PlanOptions
from numaplan.mapper.planning.cost.lines import line_ways, ways_anywhere
from numaplan.mapper.planning.cost.timed_task import TimedTask
from numaplan.mapper.planning.cost.unbound import LEFT
from numaplan.mapper.planning.cost.unplanned import alone
from numaplan.mapper.planning.planner import plan_task
from numaplan.mapper.workload.use import ThreadUse
from tests.support.timed import workload

MACHINE = Machine.load("2x4")
WITHIN = float(transfers(MACHINE, [0, 1])[0, 1])
APART = float(transfers(MACHINE, [0, 4])[0, 1])
NODE = (0, 1, 2, 3)


def ways(*cpus: tuple[int, ...], seats: tuple[int, ...]) -> np.ndarray:
    within = np.array([WITHIN, WITHIN])
    return line_ways(MACHINE, MACHINE.node_of_cpu, within, list(cpus), [(seat,) for seat in seats])


def test_threads_on_one_cpu_exchange_for_nothing() -> None:
    assert ways((0,), (0,), seats=(0, 0)).tolist() == [[0, 0], [0, 0]]


def test_threads_with_cpus_of_their_own_exchange_from_cpu_to_cpu() -> None:
    found = ways((0,), (1,), (4,), seats=(0, 1, 4))
    assert np.array_equal(found, transfers(MACHINE, [0, 1, 4]))


@pytest.mark.parametrize("other", [NODE, (0,), (2,)])
def test_threads_with_one_seat_are_seldom_on_one_cpu_where_they_may_leave_it(other: tuple[int, ...]) -> None:
    seat = other[0]
    found = ways(NODE, other, seats=(seat, seat))
    assert found[0, 1] == found[1, 0] == pytest.approx(0.75 * WITHIN)


def test_threads_that_may_be_on_several_nodes_are_on_that_of_their_seat() -> None:
    every = (*NODE, 4, 5, 6, 7)
    found = ways(every, every, every, seats=(1, 1, 5))
    assert found[0, 1] == pytest.approx(0.75 * WITHIN)
    assert found[0, 2] == APART


def test_a_crowded_node_is_no_cheaper_for_pairs_that_share_a_seat() -> None:
    """Of five threads on four cpus, any of which each may have, ten pairs exchange a million lines."""
    everyone = {(one, other): 1e6 for one in range(5) for other in range(one)}
    work = workload(5, lines=everyone, together=0.0)
    task = TimedTask(plan_task(work, Machine.load("2x4"), PlanOptions(objective="time"))[0])
    seats = task.cpus.seats(np.zeros(5, np.int64))
    shared = task.cost([NODE] * 5, seats, np.zeros((5, 2))).lines_ns
    assert shared == pytest.approx(WITHIN * 1e6 * 9.75)


@pytest.mark.parametrize(("machine", "bound", "more"), [("2x4", 0, 1.0), ("2x4", 1, 0.875), ("1x8", 0, 0.0)])
def test_who_may_be_anywhere_leaves_lines_behind(machine: str, bound: int, more: float) -> None:
    """Each two of eight exchange as much; pairs of the bound one, a quarter, leave half."""
    everyone = {(one, other): 1e6 for one in range(8) for other in range(one)}
    task = TimedTask(plan_task(workload(8, lines=everyone), Machine.load(machine), PlanOptions())[0])
    seats, every = [(cpu,) for cpu in range(8)], tuple(range(8))
    own = task.cost(seats, seats, np.zeros((8, len(task.machine.nodes)))).lines_ns
    free = [*seats[:bound], *[every] * (8 - bound)]
    left = task.cost(free, seats, np.zeros((8, len(task.machine.nodes)))).lines_ns
    assert left == pytest.approx(own * (1 + LEFT * more))


@pytest.mark.parametrize("kept", [0.0, 0.5, 1.0])
def test_a_line_between_threads_anywhere_takes_the_mean_of_all_pairs_of_cpus(kept: float) -> None:
    """As the mean over all orders of the cpus, where two on a node take only so much of their lines."""
    lines = 100 * (1 - np.eye(3))
    use = ThreadUse(np.ones(3), lines, 1 - np.eye(3), kept=(1 - kept) * lines)
    every = transfers(MACHINE, list(MACHINE.cpus))
    node = np.array([MACHINE.node_of_cpu[cpu] for cpu in MACHINE.cpus])
    taken = np.where(np.equal.outer(node, node), kept, 1.0) * every
    found = ways_anywhere(use, MACHINE, MACHINE.node_of_cpu)
    assert found[0, 1] == pytest.approx(taken.sum() / (8 * 7))


@pytest.mark.parametrize("apart", [1, 4])
def test_whose_partner_comes_how_much_later_is_nothing_that_the_kernel_goes_by(apart: int) -> None:
    """Pairs of threads made next to each other, or half of all threads later, which the kernel deals out."""
    pairs = {(one, one + apart): 1e6 for one in range(8) if one % (2 * apart) < apart}
    task = TimedTask(plan_task(workload(8, lines=pairs), MACHINE, PlanOptions())[0])
    expected = 4e6 * (WITHIN * 3 + APART * 4) / 7 * (1 + LEFT)
    assert alone(task, interleaved=True).cost.lines_ns == pytest.approx(expected)
    assert alone(task).cost.lines_ns == pytest.approx(expected), "AutoNUMA moves no page of so short a run"
