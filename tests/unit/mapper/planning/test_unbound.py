"""Threads that wake on another cpu fetch what they left in the caches of the last one."""

import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.machine import Machine, latencies
from numaplan.mapper import Plan, Workload
from numaplan.mapper.planning.cost.unbound import LEFT, WOKEN, Unbound
from numaplan.mapper.workload.use import ThreadUse
from tests.support.timed import plan_of, workload

LOCAL, REMOTE = latencies(Machine.load("2x2"))[0]


def test_a_thread_with_one_cpu_wakes_where_it_slept() -> None:
    use = ThreadUse(np.ones(2), np.zeros((2, 2)), np.ones((2, 2)), sleeps=np.array([100.0, 10.0]))
    unbound = Unbound(Machine.load("2x2"), use, np.ones(2), 4)
    assert unbound.own_lines_ns([(0,), (3,)]) == 0
    # Of two cpus of a node it is the other one half of the time, of four another node's as often.
    assert unbound.own_lines_ns([(0, 1), (3,)]) == pytest.approx(100 * WOKEN * LOCAL / 2 / 2)
    assert unbound.own_lines_ns([(0,), (0, 1, 2, 3)]) == pytest.approx(
        10 * WOKEN * (LOCAL / 2 + 2 * REMOTE) / 4
    )


def lines_ns(plan: Plan, name: str) -> float:
    return plan.predicted.candidate_parts[name]["lines_ns"]


def sleeping(times: float | None) -> Workload:
    work = workload(users=[[0], [1], [2], [3]])
    assert work.use is not None
    sleeps = None if times is None else np.full(4, times)
    return replace(work, use=replace(work.use, sleeps=sleeps))


def test_threads_that_sleep_often_are_worth_binding() -> None:
    plan, never = plan_of(sleeping(1e4)), plan_of(sleeping(0))
    assert not plan.alone and len({thread.cpus for thread in plan.threads}) == 4
    more = lines_ns(plan, "alone") - lines_ns(never, "alone")
    assert more == pytest.approx(4e4 * WOKEN * (LOCAL / 2 + 2 * REMOTE) / 4)
    assert lines_ns(plan, "bound in order") == lines_ns(never, "bound in order")
    assert never.predicted.costs == plan_of(sleeping(None)).predicted.costs


def test_threads_of_a_pool_sleep_alike() -> None:
    work = workload(users=[[0, 1, 2, 3]], keeps=False)
    assert work.use is not None
    one, all_of_them = (
        plan_of(replace(work, use=replace(work.use, sleeps=np.array(sleeps))), "4x2")
        for sleeps in ([4e3, 0, 0, 0], [1e3] * 4)
    )
    assert one.predicted.costs == pytest.approx(all_of_them.predicted.costs)


def test_lines_of_others_are_left_behind_less_where_sleeps_are_counted() -> None:
    cpus = [(0, 1, 2, 3)] * 2
    for sleeps, left in ((None, LEFT), (np.zeros(2), 0.0)):
        use = ThreadUse(np.ones(2), np.ones((2, 2)), 1 - np.eye(2), sleeps=sleeps)
        unbound = Unbound(Machine.load("2x2"), use, np.ones(2), 4)
        assert unbound.moved == 1 and unbound.left_behind(cpus) == pytest.approx(np.full((2, 2), left))
