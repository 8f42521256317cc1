"""Whose fault it is that accesses cost more: that of the moves, or the program's own."""

from dataclasses import replace

import numpy as np
import pytest

from numaplan.launcher.online.actuator import ActionResult
from numaplan.launcher.online.example import example_observation
from numaplan.launcher.online.judge import Cost, PendingMoves, cost_of
from numaplan.launcher.online.samples import Interval, SampleTable
from numaplan.machine import Machine
from numaplan.mapper.online.actions import MovePages, MoveThread
from numaplan.mapper.online.observation import MachineView

PID, FIRST, SECOND = 1, 1, 2  # tids of the example_observation; they are on nodes 0 and 1
PAGES = np.array([7, 3])


def interval(
    users: list[tuple[int, int, int]],
    place: int,
    latency: float = np.nan,
    waiting: float = 0.0,
    nodes: tuple[int, ...] = (0, 1, 0, 1),
) -> Interval:
    """An interval in which (tid, node it is on, samples) touched both pages, which are on a node.

    nodes: of all threads, which ran all the time.
    """
    tid, node = (
        np.repeat([user[column] for user in users], [user[2] for user in users]) for column in (0, 1)
    )
    count = len(tid)
    fresh = SampleTable(
        time_s=np.linspace(0.0, 1.0, count),
        pid=np.full(count, PID),
        tid=tid,
        page=np.resize(PAGES, count),
        node=node,
        weight=np.ones(count),
        is_write=np.zeros(count, dtype=np.bool_),
        missed=np.ones(count, dtype=np.bool_),
        latency=np.full(count, latency),
    )
    seen = example_observation(MachineView.of(Machine.load("2x2")))
    seen = replace(seen, threads=replace(seen.threads, node=np.array(nodes)))
    return Interval(seen, fresh, np.full(count, place), waiting, 0)


def moved_pages() -> PendingMoves:
    """The pages went from node 0 to node 1."""
    pending = PendingMoves(Cost(100.0, 1.0, 100, 1.0), 0.0, np.array([FIRST, SECOND]))
    action = MovePages(PID, PAGES, 1, "")
    pending.add([ActionResult(action, 2, (), (PID, PAGES, np.array([0, 0])))], interval([], 1).observation)
    return pending


def test_what_other_threads_do_is_told_apart() -> None:
    """Of an interval's accesses, the share of threads that were there before."""
    seen = interval([(FIRST, 0, 30), (SECOND, 1, 10)], 0)
    assert seen.share_of(np.array([FIRST])) == 0.75
    assert interval([], 0).share_of(np.array([FIRST])) == 1.0


@pytest.mark.parametrize(("user", "at_fault"), [((FIRST, 0, 50), True), ((SECOND, 1, 50), False)])
def test_pages_are_at_fault_when_their_users_are_where_they_were(
    user: tuple[int, int, int], at_fault: bool
) -> None:
    """Used from node 0, they were better there; used from node 1, whatever became worse is not their move."""
    assert moved_pages().at_fault(interval([user], place=1)) is at_fault


def test_a_crowded_memory_is_at_fault_though_it_is_near() -> None:
    """Accesses within node 1 wait longer than from there to node 0 as far as is known: it is too busy."""
    assert moved_pages().at_fault(interval([(SECOND, 1, 50)], place=1, latency=500.0))


def test_a_thread_is_at_fault_when_its_memory_is_where_it_came_from() -> None:
    """And when threads wait for cpus since, whatever the memory."""
    pending = PendingMoves(Cost(100.0, 1.0, 100, 1.0), 0.0, np.array([FIRST, SECOND]))
    pending.add(
        [ActionResult(MoveThread(FIRST, 1, ""), 1, ((FIRST, frozenset({0, 1})),))],
        interval([], 0).observation,
    )
    assert pending.at_fault(interval([(FIRST, 1, 50)], place=0))
    assert not pending.at_fault(interval([(FIRST, 1, 50)], place=1))
    assert pending.at_fault(interval([(FIRST, 1, 50)], place=1, waiting=0.2, nodes=(1, 1, 0, 1)))


def test_waiting_for_cpus_that_no_placement_spares_is_nobodys_fault() -> None:
    """Two threads a node have a cpu each here: who waits does so for others, that came since."""
    seen = interval([(FIRST, 1, 50)], place=1, waiting=0.2)
    assert (seen.avoidable, cost_of(seen).waiting) == (0.0, 0.0)
    assert interval([], 0, waiting=0.2, nodes=(1, 1, 0, 1)).avoidable == 0.2
    pending = PendingMoves(Cost(100.0, 1.0, 100, 1.0), 0.0, np.array([FIRST, SECOND]))
    pending.add(
        [ActionResult(MoveThread(FIRST, 1, ""), 1, ((FIRST, frozenset({0, 1})),))],
        interval([], 0).observation,
    )
    assert not pending.at_fault(seen)


def test_no_known_page_blames_nobody() -> None:
    """Pages whose place is not known tell nothing."""
    assert not moved_pages().at_fault(interval([(FIRST, 0, 50)], place=-1))


def test_pages_that_came_from_a_node_beyond_the_machine_blame_nobody() -> None:
    """A cpuset leaves nodes out; files' pages may be there all the same."""
    pending = PendingMoves(Cost(100.0, 1.0, 100, 1.0), 0.0, np.array([FIRST, SECOND]))
    action = MovePages(PID, PAGES, 1, "")
    pending.add([ActionResult(action, 2, (), (PID, PAGES, np.array([7, 7])))], interval([], 1).observation)
    assert not pending.at_fault(interval([(FIRST, 0, 50)], place=1))
