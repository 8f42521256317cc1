"""Threads that do not all run at a time: how long they wait for cpus, and how that is kept short."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from numaplan.analyzer import PageCounts
from numaplan.machine import Machine
from numaplan.mapper import Plan, PlanOptions, Workload, make_plan
from numaplan.mapper.planning.waiting import waiting, waiting_in_stretches
from numaplan.mapper.workload.use import ThreadUse

Floats = NDArray[np.float64]


@pytest.mark.parametrize("cpus", [1, 2, 3, 5])
def test_how_many_wait_is_the_mean_over_all_who_may_run(cpus: int) -> None:
    beside = np.random.default_rng(7).random((3, 6))
    expected = np.zeros(3)
    for running in product((0, 1), repeat=6):
        chance = np.where(np.array(running, bool), beside, 1 - beside).prod(axis=1)
        expected += chance * max(1 + sum(running) - cpus, 0)
    assert waiting(beside, cpus) == pytest.approx(expected)


def test_nobody_waits_where_there_is_a_cpu_for_each() -> None:
    assert waiting(np.full((4, 3), 0.9), 4) == pytest.approx(np.zeros(4))
    assert (waiting(np.full((5, 4), 0.9), 4) > 0).all()  # at times all five run, but 4.6 do in the mean


@pytest.mark.parametrize("cpus", [1, 2, 3, 5, 6])
def test_all_wait_in_a_stretch_as_long_as_each_of_them_would(cpus: int) -> None:
    running = np.random.default_rng(7).random((3, 6))
    each = np.zeros(3)
    for thread in range(6):
        others = np.delete(running, thread, axis=1)
        each += running[:, thread] * waiting(others, cpus)
    assert waiting_in_stretches(running, cpus) * running.sum(axis=1) == pytest.approx(each)


def test_who_runs_with_many_others_waits_for_their_mean_number() -> None:
    assert waiting(np.full((1, 1000), 0.5), 16) == pytest.approx([485.0])


def workload(teams: list[list[int]], lines: dict[tuple[int, int], float]) -> Workload:
    """Threads of a team run at the same time, and no others."""
    threads = sum(len(team) for team in teams)
    comm, together = np.zeros((threads, threads)), np.zeros((threads, threads))
    for (one, other), count in lines.items():
        comm[one, other] = comm[other, one] = count
    for team in teams:
        together[np.ix_(team, team)] = 1.0
    np.fill_diagonal(together, 0.0)
    none = np.zeros(0, np.int64)
    pages = PageCounts([], none, none, none, none, none)
    return Workload(
        [("p0", f"0.{i}" if i else "0") for i in range(threads)],
        comm,
        np.ones(threads),
        {},
        pages=pages,
        use=ThreadUse(np.full(threads, 1e8), comm / 2, together, exact=True),
        keeps=(True,) * threads,
    )


def plan_of(work: Workload, machine: str) -> Plan:
    return make_plan(work, Machine.load(machine), PlanOptions()).plan


def most_at_a_time(plan: Plan, teams: list[list[int]]) -> int:
    """Threads of one team on one node."""
    nodes = np.array([thread.node for thread in plan.threads])
    return max(int(np.bincount(nodes[team]).max()) for team in teams)


def test_threads_that_run_at_the_same_time_are_not_on_too_few_cpus() -> None:
    teams = [[0, 2, 4, 6], [1, 3, 5, 7], [8, 9, 10, 11]]
    # All of a team take some lines from one another, and pairs of it many.
    inner = {(a, b): 1e4 for team in teams for a in team for b in team if a < b}
    pairs = {(team[0], team[2]): 2e5 for team in teams} | {(team[1], team[3]): 2e5 for team in teams}
    plan = plan_of(workload(teams, {**inner, **pairs}), "2x2")
    nodes = [thread.node for thread in plan.threads]
    assert len(nodes) == 12
    assert most_at_a_time(plan, teams) == 2
    assert plan.predicted.cost_parts["cpu_ns"] == 0
    assert all(nodes[a] == nodes[b] for a, b in pairs)


def test_more_threads_than_cpus_sit_together_where_they_take_turns() -> None:
    """One after the other they need one cpu only, and have a node's caches to themselves."""
    teams = [[0], [1], [2], [3], [4], [5]]
    lines = {(a, b): 1e5 for a in range(6) for b in range(a)}
    plan = plan_of(workload(teams, lines), "2x2")
    assert len({thread.node for thread in plan.threads}) == 1
