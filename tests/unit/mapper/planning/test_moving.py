"""Threads that do not all run at a time: how long they wait for cpus, and how that is kept short."""

from itertools import product

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from numaplan.analyzer import PageCounts
from numaplan.machine import Machine
from numaplan.mapper import Plan, PlanOptions, Workload, make_plan
from numaplan.mapper.planning.cost.timed_task import TimedTask
from numaplan.mapper.planning.cost.waiting import (
    waiting,
    waiting_in_stretches,
    waiting_of,
    waiting_where_dealt,
)
from numaplan.mapper.planning.planner import plan_task
from numaplan.mapper.planning.search import move_waits
from numaplan.mapper.planning.search.move_waits import MoveWaits
from numaplan.mapper.planning.search.moving import _Moves
from numaplan.mapper.threads.problem import Nodes
from numaplan.mapper.workload.activity import Activity
from numaplan.mapper.workload.use import ThreadUse
from tests.support import timed

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


@pytest.mark.parametrize("cpus", [1, 2, 3, 4, 6, 7])
def test_threads_left_where_they_were_dealt_wait_for_those_on_their_cpu_alone(cpus: int) -> None:
    """The mean over all ways in which six threads can be dealt to as many cpus as evenly as possible."""
    running = np.random.default_rng(7).random((3, 6))
    waited, ways = np.zeros(3), 0
    for on in product(range(cpus), repeat=6):
        if np.ptp(np.bincount(on, minlength=cpus)) > 1:
            continue
        same = np.equal.outer(on, on) & ~np.eye(6, dtype=bool)
        waited += np.einsum("si,sj,ij->s", running, running, same)
        ways += 1
    # In a thread's own time, as many wait for one of the cpus as others are on its own, times the cpus.
    expected = waited / ways * cpus / running.sum(axis=1)
    assert waiting_where_dealt(running, cpus) == pytest.approx(expected)


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


def task_of(seed: int, threads: int, machine: str, kind: str) -> TimedTask:
    """Threads that run at random, and take as many lines from each other."""
    rng = np.random.default_rng(seed)
    running = (rng.random((40, threads)) < rng.uniform(0.2, 0.8)).astype(np.float64)
    if kind == "in part":
        running *= rng.random(running.shape)
    lasts = rng.uniform(0.1, 1.0, len(running))
    together = (running.T * lasts) @ running / np.maximum(lasts @ running, 1e-9)[:, None]
    lines = rng.random((threads, threads)) * 10.0 ** rng.integers(2, 6)
    for apart in (together, lines):
        np.fill_diagonal(apart, 0.0)
    work = timed.workload(threads, users=[[thread] for thread in range(threads)])
    use = ThreadUse(
        rng.uniform(1e6, 2e6, threads),
        (lines + lines.T) / 2,
        np.minimum(together, 1.0),
        exact=True,
        activity=None if kind == "pairs" else Activity(lasts, running, True),
    )
    return TimedTask(plan_task(replace(work, use=use), Machine.load(machine), PlanOptions())[0])


class OneByOne(_Moves):
    """Of each move it is told exactly who waits then."""

    def _best(self) -> tuple[int, int] | None:
        prices, waits, best = self._prices(), self._waits, (self._least, np.inf, 0)
        moves = [(int(thread), place) for thread in self._free for place in range(self._count)]
        answer = None
        for number, (thread, place) in enumerate(moves):
            at = int(self.places[thread])
            saved = float(prices[thread, at] - prices[thread, place])
            saved += waits.now[at] - waits.changed(thread, at)
            gain = saved + waits.now[place] - waits.changed(thread, place)
            if place != at and (gain, saved, -number) > best:
                best, answer = (gain, saved, -number), (thread, place)
        return answer


@pytest.mark.parametrize("kind", ["looks", "in part", "pairs"])
@pytest.mark.parametrize("seed", range(6))
def test_moves_are_those_that_are_found_if_all_are_told_exactly(kind: str, seed: int) -> None:
    task = task_of(seed, 5 + 2 * seed, ["2x2", "4x1", "3x2"][seed % 3], kind)
    free = np.arange(task.problem.threads)
    for start in (task.placed("", task.mapped("compact")), task.first_touched("", task.mapped("scatter"))):
        expected = OneByOne(task, start, free).search()
        assert _Moves(task, start, free).search().tolist() == expected.tolist()


@pytest.mark.parametrize("kind", ["looks", "in part"])
def test_no_less_is_waited_than_is_told_at_least(kind: str) -> None:
    task = task_of(1, 12, "2x2", kind)
    assert task.use.activity is not None
    free, places = np.arange(12), np.arange(12) % 2
    waits = MoveWaits(task.use, [2, 3], task.use.accesses, free)
    for place in range(2):
        waits.look_at(place, np.flatnonzero(places == place))
    exact = np.array([[waits.changed(thread, place) for place in range(2)] for thread in range(12)])
    assert (waits.least <= exact + waits.rounded).all() and waits.least.max() > 0
    if kind == "looks":  # who runs, runs: the mean is all
        assert waits.least == pytest.approx(exact)


def test_of_few_moves_all_looks_are_gone_through(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []

    def counted(use: ThreadUse, threads: Nodes, cpus: int) -> Floats:
        told.append(len(threads))
        return waiting_of(use, threads, cpus)

    monkeypatch.setattr(move_waits, "waiting_of", counted)
    task = task_of(3, 40, "2x4", "looks")
    start = task.first_touched("", task.mapped("compact"))
    found = _Moves(task, start, np.arange(40)).search()
    moves = int((found != start.places).sum())
    assert moves > 0 and len(told) < 10 * (moves + 1)  # of 40 threads each
