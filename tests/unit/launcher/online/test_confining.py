"""Threads bound to the node they are on: let go when others ended and the kernel would even out."""

import os
from dataclasses import fields, replace

import pytest

from numaplan.launcher.online.actuator import Actuator, Budget
from numaplan.launcher.online.bindings import Bindings
from numaplan.launcher.online.example import example_observation
from numaplan.mapper.online.actions import MoveThread
from numaplan.mapper.online.observation import MachineView, Observation, Threads
from numaplan.profiler import Machine


def observed(only_first_node: bool) -> Observation:
    """Four busy threads, two a node, of which this process's is the one that may be moved."""
    seen = example_observation(MachineView.of(Machine.load("2x2")))
    tids = seen.threads.tid.copy()
    tids[0] = os.getpid()
    threads = replace(seen.threads, tid=tids, movable=tids == tids[0])
    if only_first_node:
        stay = threads.node == 0
        threads = Threads(**{each.name: getattr(threads, each.name)[stay] for each in fields(threads)})
    return replace(seen, threads=threads)


@pytest.mark.parametrize("placed", [False, True])
def test_confined_threads_of_the_fuller_node_are_let_go_when_others_ended(placed: bool) -> None:
    """But for those of processes whose threads a policy moved; a look later all are confined again."""
    mine = frozenset(os.sched_getaffinity(0))
    if len(mine) < 2:
        pytest.skip("needs two cpus")
    one, me, bindings = frozenset({min(mine)}), os.getpid(), Bindings()
    bindings.movable(me, [me])
    actuator = Actuator({0: one}, bindings, Budget(), {me: me})
    try:
        if placed:
            actuator.apply([MoveThread(me, 0, "test")])
        for seen, bound in ((observed(False), one), (observed(True), one if placed else mine)):
            actuator.confine(seen)
            assert frozenset(os.sched_getaffinity(0)) == bound
        actuator.confine(observed(True))
        assert frozenset(os.sched_getaffinity(0)) == one
    finally:
        os.sched_setaffinity(0, mine)
