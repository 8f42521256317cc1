"""Siblings whose numbers are chance, as a server's: in turn on the nodes of those that work."""

import dataclasses
from collections.abc import Sequence
from itertools import groupby
from unittest.mock import Mock

import numpy as np
import pytest
from msgspec import UNSET
from msgspec.structs import replace

from numaplan.machine import Cost, Machine
from numaplan.mapper import Plan, PlanOptions, Workload, make_plan
from numaplan.mapper.planning.cost.dealing import dealt
from numaplan.mapper.planning.cost.placement import Placement
from numaplan.mapper.planning.cost.timed_task import TimedTask
from numaplan.mapper.planning.cost.unplanned import alone
from numaplan.mapper.planning.planner import plan_task
from numaplan.mapper.planning.search import candidates
from numaplan.mapper.planning.search.candidates import in_turn, judged
from numaplan.mapper.workload.larger_inputs import LargerInput
from numaplan.mapper.workload.roles.siblings import by_distance, children_by_chance, threads_by_chance
from numaplan.mapper.workload.use import ThreadUse
from tests.support.timed import nodes_of, plan_of, workload

NAMES = ["server"] * 12
SERVER = [("p0", "0"), *[(f"p0.{number}", "0") for number in range(1, 12)]]
MADE = np.array([1e5, 1e5, 2e5, 1e7, 8e6, 1e7, 1e7, 9e6, 1e7, 1e7, 1e7, 1e4])
BACKENDS = list(range(3, 11))
PAIRS = {(one, other): 1000.0 for one in BACKENDS for other in range(one + 1, 11)}


def use(made: np.ndarray = MADE, lived: np.ndarray | None = None) -> ThreadUse:
    """lived: threads of equal numbers run beside each other; all by default."""
    together = np.ones((len(made),) * 2) if lived is None else np.equal.outer(lived, lived).astype(float)
    np.fill_diagonal(together, 0.0)
    return ThreadUse(made, np.zeros_like(together), together)


def found(
    threads: list[tuple[str, str]], made: np.ndarray = MADE, names: Sequence[str] = NAMES
) -> list[list[int]]:
    return [own.busy.tolist() for own in children_by_chance(threads, names, use(made))]


def test_children_that_work_after_others_that_do_less_are_numbered_by_chance() -> None:
    assert found(SERVER) == [BACKENDS]
    shuffled = [SERVER[0], *SERVER[:0:-1]]
    assert found(shuffled, np.append(MADE[:1], MADE[:0:-1])) == [[12 - number for number in BACKENDS]]
    assert found(SERVER, np.full(12, 1e7)) == []  # a pool of workers
    assert found(SERVER, np.append(MADE[:4], np.zeros(8))) == []  # one that works
    assert found([*SERVER[:11], ("p0.3", "0.1")]) == [BACKENDS[1:]]  # with threads of its own
    assert found([(f"r{number}", "0") for number in range(12)]) == []  # ranks are numbered by MPI
    assert found([SERVER[0], *((process + "0" * 5000, path) for process, path in SERVER[1:])]) == []
    names = ("main", *["server"] * 11)
    assert found(SERVER, names=names) == [BACKENDS]
    assert found(SERVER, names=("main", "probe", "probe", *["server"] * 9)) == []
    assert found(SERVER, names=()) == found(SERVER, names=[""] * 12) == []  # they may be different programs
    assert found(SERVER, names=["server"] * 8 + [""] + ["server"] * 3) == [[b for b in BACKENDS if b != 8]]


def test_one_child_that_does_less_may_be_the_helper_of_a_pool() -> None:
    assert found(SERVER, np.where(np.arange(12) == 2, 1e7, MADE)) == []


def test_who_is_gone_before_the_others_work_is_none_of_them() -> None:
    """And one that does far more does not make the others idle."""
    lived = np.array([0, 0, 0, 1, *[0] * 8])
    (own,) = children_by_chance(SERVER, NAMES, use(lived=lived))
    assert own.busy.tolist() == BACKENDS[1:] and not len(own.idle)  # it did as much as these
    assert children_by_chance(SERVER, NAMES, use(lived=np.arange(12))) == []  # one after another
    first = np.where(np.arange(12) == 1, 4e7, 1e7)
    assert found(SERVER, first) == []  # a pool, of which the first does more
    busy = np.where(np.arange(12) == 5, 4e7, MADE)
    assert found(SERVER, busy) == [[number for number in BACKENDS if number != 5]]


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([0] * 4 + [2] * 4, [0, 2] * 4),
        ([1] * 6 + [0] * 2, [1, 0, 1, 1, 1, 0, 1, 1]),
        ([3] * 8, [3] * 8),
    ],
)
def test_as_many_as_before_are_on_each_node_in_turn(places: list[int], expected: list[int]) -> None:
    before = np.array([0, 5, 6, *places, 7])
    answer = dealt([np.array(BACKENDS)], before, np.arange(8))
    assert answer[3:11].tolist() == expected
    pinned = dealt([np.array(BACKENDS[6:])], before, np.arange(8))  # the others are
    assert sorted(pinned[9:11]) == sorted(before[9:11]) and pinned[3:9].tolist() == before[3:9].tolist()
    assert answer[[0, 1, 2, 11]].tolist() == [0, 5, 6, 7]


def test_turns_go_by_nodes_and_then_by_their_caches() -> None:
    """Places 0 and 1 are caches of one node, 2 and 3 of another."""
    rows, own = np.array([0, 0, 1, 1]), [np.arange(8)]
    assert dealt(own, np.array([0, 0, 1, 1, 2, 2, 3, 3]), rows).tolist() == [0, 2, 1, 3, 0, 2, 1, 3]
    one_node = np.array([0, 0, 0, 0, 0, 1, 1, 1])
    assert dealt(own, one_node, rows).tolist() == one_node.tolist()


def server(threads: list[tuple[str, str]]) -> Workload:
    work = workload(12, lines=PAIRS)
    assert work.use is not None
    return replace(work, threads=threads, names=NAMES, use=replace(work.use, accesses=MADE))


def longest(nodes: list[int]) -> int:
    """How many of those that work follow one another on one node, at most."""
    assert len(set(nodes[3:11])) == 2
    return max(len(list(run)) for _, run in groupby(nodes[3:11]))


def test_who_hardly_ran_just_before_may_be_the_first_to_work() -> None:
    def before(*beside: int) -> list[int]:
        lived = np.where(np.isin(np.arange(12), [*BACKENDS, *beside]), 0, np.arange(12) + 1)
        (own,) = children_by_chance(SERVER, NAMES, use(np.where(np.arange(12) == 2, 1e6, MADE), lived))
        return [int(thread) for thread in own.idle]

    assert before() == [1, 2]
    assert before(1) == [2]
    assert before(2) == before(1, 2) == []


def test_one_child_more_or_less_leaves_as_many_on_each_node() -> None:
    assert longest(nodes_of(plan_of(server(SERVER), "2x4"))) <= 2
    pinned = plan_of(server(SERVER), "2x4", pins={"p0.3:0": "0"})
    assert longest(nodes_of(pinned)) <= 3 and nodes_of(pinned)[3] == 0


def test_idle_children_are_where_those_after_them_would_go_on() -> None:
    """In a run with one child less at the start, one of them is the first to work."""
    own = threaded(PAIRS).use
    assert own is not None
    work = replace(server(SERVER), use=own)
    plan = plan_of(work, "2x4")
    nodes = nodes_of(plan)
    assert longest(nodes) <= 2 and nodes[1:3] == nodes[9:11]
    cpus = [node.cpus for node in plan.machine.nodes]
    assert [plan.threads[idle].cpus for idle in (1, 2)] == [cpus[node] for node in nodes[1:3]]
    one_node = plan_of(work, "2x8")
    (node,) = {one_node.threads[thread].node for thread in (1, 2, *BACKENDS)}
    assert [thread.cpus for thread in one_node.threads[1:3]] == [one_node.machine.nodes[node].cpus] * 2


def test_of_many_idle_children_few_may_work_and_the_others_are_a_crowd() -> None:
    made = np.where(np.arange(12) < 9, 1e4, 1e7)
    works = np.arange(12) > 8
    together = (np.logical_and.outer(works, works) & ~np.eye(12, dtype=bool)).astype(float)
    work = workload(12, lines={(9, 10): 1000.0, (10, 11): 1000.0})
    assert work.use is not None
    own = replace(work.use, accesses=made, together=together)
    plan = plan_of(replace(work, threads=SERVER, names=NAMES, use=own), "2x4")
    plan = Plan.from_json(plan.to_json())  # which looks whether cpus are of a thread's node, or a pool's
    nodes = nodes_of(plan)
    assert nodes[8] == nodes[11] and plan.threads[8].cpus == plan.machine.nodes[nodes[8]].cpus
    assert {plan.threads[idle].pool for idle in range(8)} == {1} and plan.threads[8].pool == UNSET


THREADS = [("p0", f"0.{number}" if number else "0") for number in range(12)]


def test_threads_that_work_after_others_that_do_not_are_numbered_by_chance() -> None:
    """Those just before them that idled may be the first to work in the next run."""

    def of(made: np.ndarray, pools: Sequence[np.ndarray] = ()) -> list[tuple[list[int], list[int]]]:
        groups = threads_by_chance(THREADS, NAMES, use(made), pools)
        return [(one.busy.tolist(), one.idle.tolist()) for one in groups]

    assert of(MADE) == [(BACKENDS, [1, 2])]
    helper = np.where(np.arange(12) == 1, 1e6, MADE)
    assert of(helper) == [(BACKENDS, [2])]
    assert of(np.full(12, 1e7)) == []  # a team of workers
    assert of(MADE, [np.arange(4, 11)]) == [(BACKENDS, [])]  # of a pool: they are where that is anyway
    few = np.where(np.arange(12) < 9, 1e4, MADE)
    few[8] = 1e7
    assert of(few) == [([8, 9, 10], [1, 2, 3, 4, 5, 6, 7])]


def threaded(lines: dict[tuple[int, int], float]) -> Workload:
    """A server's threads, of which those run that work."""
    work = workload(12, lines=lines)
    assert work.use is not None
    works = np.isin(np.arange(12), BACKENDS)
    together = np.logical_and.outer(works, works) & ~np.eye(12, dtype=bool)
    own = replace(work.use, accesses=MADE, together=together.astype(float), exact=True)
    return replace(work, threads=THREADS, names=NAMES, use=own)


def test_threads_are_in_turn_where_that_costs_nothing() -> None:
    plan = plan_of(threaded(PAIRS), "2x4")
    nodes = nodes_of(plan)
    assert longest(nodes) <= 2 and nodes[1:3] == nodes[9:11]
    cpus = [set(node.cpus) for node in plan.machine.nodes]
    assert [set(plan.threads[idle].cpus) for idle in (1, 2)] == [cpus[node] for node in nodes[1:3]]
    assert nodes[11] == nodes[3]  # the turns go on
    pinned = nodes_of(plan_of(threaded(PAIRS), "2x4", pins={"0.3": "0", "0.10": "0"}))
    assert longest(pinned) <= 3 and pinned[1:3] == pinned[8:10]
    neighbours = {(one, one + 1): 1000.0 for one in BACKENDS[:-1]}
    assert longest(nodes_of(plan_of(threaded(neighbours), "2x4"))) > 2


def test_only_where_lines_were_counted_threads_are_by_chance() -> None:
    """Else neighbours may exchange more than is seen."""
    work = threaded(PAIRS)
    assert work.use is not None
    assert [own.tolist() for own in task(work).by_chance] == [BACKENDS]
    assert task(replace(work, use=replace(work.use, exact=False))).by_chance == []


def test_no_pages_are_placed_for_threads_in_turn_that_come_in_another_order_each_time() -> None:
    found = task(replace(threaded(PAIRS), unordered=True))
    halves = np.repeat([0, 1], [7, 5])
    assert not found.may_place_pages
    assert {one.pages for one in in_turn(found, [found.first_touched("first", halves)])} == {None}


def test_a_method_s_places_stay() -> None:
    plans = [plan_of(server(SERVER), "2x6", method="compact", objective=kind) for kind in ("time", "hop")]
    assert nodes_of(plans[0]) == nodes_of(plans[1]) == [0] * 6 + [1] * 6


def test_pairs_exchange_what_those_as_many_numbers_apart_do() -> None:
    """Neighbours stay neighbours when each is a number later."""
    lines = np.zeros((6, 6))
    lines[1, 2], lines[3, 2], lines[2, 3], lines[3, 4], lines[4, 1], lines[0, 5] = 6, 3, 3, 0, 8, 7
    answer = by_distance(lines, [np.array([1, 2, 3, 4])], SERVER)
    assert answer[1, 2] == answer[2, 3] == answer[3, 4] == 3
    assert answer[2, 1] == answer[3, 2] == answer[4, 3] == 1
    assert answer[4, 1] == 8 and answer[0, 5] == 7 and answer.sum() == lines.sum()


def test_a_child_that_is_missing_is_between_the_others_all_the_same() -> None:
    lines = np.zeros((12, 12))
    lines[3, 4], lines[4, 6], lines[6, 7] = 5, 8, 7
    answer = by_distance(lines, [np.array([3, 4, 6, 7])], SERVER)
    assert answer[3, 4] == answer[6, 7] == 6 and answer[4, 6] == 8


def task(work: Workload, machine: str = "2x4") -> TimedTask:
    return TimedTask(plan_task(work, Machine.load(machine), PlanOptions())[0])


def test_pages_of_children_in_turn_are_found_as_those_of_the_first() -> None:
    found = task(server(SERVER))
    halves = np.repeat([0, 1], [7, 5])
    for spread in ("reads", "shared", "all"):
        turned, touched = in_turn(found, [found.placed("first", halves, spread)])
        assert (turned.spread, turned.pages is None, touched.pages) == (spread, False, None)
        assert longest(turned.places.tolist()) <= 2


def test_what_is_worth_having_is_not_refused_as_children_in_turn_cost_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = task(server(SERVER))
    halves = np.repeat([0, 1], [7, 5])
    first = found.placed("first", halves)
    (turned, _) = in_turn(found, [first])
    usual = alone(found).cost.total_ns

    def priced(one: Placement, total: float) -> Placement:
        return dataclasses.replace(one, cost=Cost(total, 0.0, 0.0, 0.0, 0.0))

    for unsure, expected in ((0.4, turned.name), (0.48, "first"), (0.6, "alone")):
        monkeypatch.setattr(candidates, "doubt", Mock(return_value=unsure * usual))
        chosen = judged(found, [priced(first, 0.5 * usual), priced(turned, 0.54 * usual)])
        assert chosen.chosen.name == expected and bool(chosen.reason) == (unsure == 0.6)


def test_children_are_dealt_for_larger_inputs_too() -> None:
    """Else a placement that gives each node neighbours would seem to be better there."""
    work = server(SERVER)
    assert work.pages is not None
    work = replace(work, larger=(LargerInput(256, 1 << 30, work.pages),))
    made = make_plan(work, Machine.load("2x4"), PlanOptions())
    assert longest(nodes_of(made.plan)) <= 2
    (there,) = made.larger
    assert not there.changes and there.best.startswith("children in turn")
