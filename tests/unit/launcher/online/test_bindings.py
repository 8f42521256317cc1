"""Whose threads are ours to move, by the masks that they have."""

import os
import threading

import pytest

from numaplan.launcher.online.bindings import Bindings


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
