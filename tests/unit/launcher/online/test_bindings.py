"""Whose threads are ours to move, by the masks that they have."""

import os
import threading

import pytest

from numaplan.launcher.online.bindings import Bindings
from numaplan.launcher.online.system import Cpus, LocalSystem

ALL, FIRST, SECOND = frozenset(range(4)), frozenset({0, 1}), frozenset({2, 3})
PID, MAIN, OTHER = 100, 100, 101


class Masks(LocalSystem):
    """Threads of no process here, by their masks."""

    def __init__(self, masks: dict[int, Cpus]) -> None:
        super().__init__()
        self.masks = masks

    def allowed_cpus(self, tid: int) -> Cpus | None:
        return self.masks.get(tid)

    def bind(self, tid: int, cpus: Cpus) -> None:
        self.masks[tid] = cpus


def test_bindings_leave_threads_alone_that_others_bind() -> None:
    """With a thread of our own as the victim."""
    leave, ready, tid = threading.Event(), threading.Event(), []

    def body() -> None:
        tid.append(threading.get_native_id())
        ready.set()
        leave.wait()

    thread = threading.Thread(target=body)
    thread.start()
    ready.wait()
    try:
        ours = frozenset(os.sched_getaffinity(0))
        if len(ours) < 2:
            pytest.skip("needs two cpus")
        one, other = (frozenset({cpu}) for cpu in sorted(ours)[:2])
        bindings = Bindings()
        assert bindings.movable(os.getpid(), [os.getpid(), tid[0]])[tid[0]]
        bindings.bind(tid[0], one)
        assert bindings.movable(os.getpid(), [tid[0]])[tid[0]]  # what we gave is ours to change
        os.sched_setaffinity(tid[0], other)
        assert not bindings.movable(os.getpid(), [tid[0]])[tid[0]]
        assert bindings.foreign == {tid[0]}
        assert bindings.restore() == 0  # and not ours to give back
        assert frozenset(os.sched_getaffinity(tid[0])) == other
    finally:
        leave.set()
        thread.join()


def test_children_of_a_thread_that_was_let_go_are_ours_to_move() -> None:
    """They have the mask that it had when it made them."""
    mine, me, bindings = frozenset(os.sched_getaffinity(0)), os.getpid(), Bindings()
    if len(mine) < 2:
        pytest.skip("needs two cpus")
    leave, born = threading.Event(), threading.Event()
    child = threading.Thread(target=lambda: (born.set(), leave.wait()))
    bindings.movable(me, [me])
    try:
        bindings.bind(me, frozenset({min(mine)}))
        child.start()
        born.wait()
        bindings.release(me)
        assert frozenset(os.sched_getaffinity(0)) == mine
        assert bindings.movable(me, [me, child.native_id or 0]) == {me: True, child.native_id: True}
    finally:
        os.sched_setaffinity(0, mine)
        leave.set()
        child.join()


def test_a_process_whose_first_threads_a_plan_bound_may_have_all_cpus() -> None:
    """Its main thread alone, on its planned cpu, was there at the first look."""
    one = frozenset({0})
    bindings = Bindings(frozenset({one}), Masks({MAIN: one}), ALL)
    assert bindings.movable(PID, [MAIN]) == {MAIN: True}
    assert bindings.usable_cpus(PID, SECOND) == SECOND


def test_a_process_that_a_bound_thread_made_may_have_the_cpus_of_its_parent() -> None:
    system, child = Masks({MAIN: ALL}), PID + 50
    bindings = Bindings(system=system)
    bindings.movable(PID, [MAIN])
    bindings.bind(MAIN, FIRST)
    system.masks[child] = FIRST
    assert bindings.movable(child, [child]) == {child: True}
    assert bindings.usable_cpus(child, SECOND) == SECOND


def test_threads_that_a_bound_one_made_are_let_go_in_the_end() -> None:
    """They inherited our mask; nobody else would ever free them of it. One that chose its own keeps it."""
    system, third, one = Masks({MAIN: ALL}), OTHER + 1, frozenset({1})
    bindings = Bindings(system=system)
    bindings.movable(PID, [MAIN])
    bindings.bind(MAIN, FIRST)
    system.masks |= {OTHER: FIRST, third: FIRST}
    assert bindings.movable(PID, [MAIN, OTHER, third]) == {MAIN: True, OTHER: True, third: True}
    system.masks[third] = one
    assert bindings.movable(PID, [MAIN, OTHER, third]) == {MAIN: True, OTHER: True, third: False}
    assert bindings.restore() == 2
    assert system.masks == {MAIN: ALL, OTHER: ALL, third: one}


def test_a_process_with_the_number_of_one_that_ended_is_another() -> None:
    system = Masks({MAIN: FIRST})
    bindings = Bindings(system=system)
    bindings.movable(PID, [MAIN])
    bindings.forget(set())
    system.masks[MAIN] = ALL
    assert bindings.movable(PID, [MAIN]) == {MAIN: True}
    assert bindings.usable_cpus(PID, SECOND) == SECOND
