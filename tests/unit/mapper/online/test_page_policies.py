"""LMMA with its preload example, next-touch, and pages in bulk."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.machine import Machine, Node
from numaplan.mapper.online.actions import MovePages
from numaplan.mapper.online.observation import MachineView, Observation, age_weight
from numaplan.mapper.online.policies.follow import surrounding
from numaplan.mapper.online.policies.lmma import Lmma, relative_latencies
from numaplan.mapper.online.policies.next_touch import _Marks
from numaplan.mapper.online.policies.page_sets import find_rows, page_keys, split_keys
from numaplan.mapper.online.registry import make_policy
from tests.support.policy_cases import ints, machine_of, observation

MACHINE = machine_of(4, 2)


def pages_case(
    pages: list[tuple[int, int, int]], touches: list[tuple[int, int, float, float]]
) -> Observation:
    """Threads 0..3 on nodes 0..3."""
    return observation(MACHINE, [0, 2, 4, 6], pages=pages, touches=touches)


def moved(actions: tuple[object, ...]) -> dict[int, list[int]]:
    return {move.node: sorted(move.pages.tolist()) for move in actions if isinstance(move, MovePages)}


def test_ageing_weighs_a_quarter_second_by_four_fifths() -> None:
    assert age_weight(np.array([0.25, 0.0, 1.0])).tolist() == [0.8, 1.0, 0.5]


def test_preload_stops_before_a_page_that_another_node_prefers() -> None:
    """The paper's example: psi(i+3) has another preferred node, so psi(i), psi(i+1) and psi(i+2) go."""
    seen = pages_case(
        [(0, 100, 0), (0, 102, 0), (0, 103, 0), (0, 900, 2)],
        [(0, 1, 10.0, 300.0), (1, 1, 1.0, 50.0), (2, 2, 1.0, 50.0), (3, 2, 200.0, 50.0), (3, 1, 100.0, 50.0)],
    )
    assert moved(Lmma().decide(seen, None).actions) == {1: [100, 101, 102]}


def test_preload_reaches_s_preload_pages() -> None:
    seen = pages_case(
        [(0, 100, 0), (0, 900, 2)], [(0, 1, 10.0, 300.0), (1, 2, 200.0, 50.0), (1, 1, 100.0, 50.0)]
    )
    assert moved(Lmma().decide(seen, None).actions) == {1: list(range(100, 109))}
    assert moved(Lmma(s_preload=0).decide(seen, None).actions) == {1: [100]}


def test_a_page_at_average_latency_stays() -> None:
    seen = pages_case([(0, 100, 0), (0, 900, 2)], [(0, 1, 100.0, 129.0), (1, 2, 100.0, 100.0)])
    assert Lmma().decide(seen, None).actions == ()


def test_pages_of_a_busy_node_go_to_the_least_busy() -> None:
    seen = pages_case(
        [(0, 100, 0), (0, 500, 1), (0, 900, 3)],
        [(0, 1, 60.0, 400.0), (1, 2, 100.0, 100.0), (2, 3, 100.0, 60.0)],
    )
    latency = relative_latencies(seen)
    assert latency.nodes[1] > 1.3
    assert np.nanargmin(latency.nodes) == 3
    assert 100 in moved(Lmma().decide(seen, None).actions)[3]


def test_pages_already_there_are_not_named() -> None:
    seen = pages_case(
        [(0, 100, 1), (0, 900, 2)], [(0, 1, 10.0, 300.0), (1, 2, 200.0, 50.0), (1, 1, 100.0, 50.0)]
    )
    assert moved(Lmma().decide(seen, None).actions) == {1: list(range(101, 109))}


def test_without_latencies_pages_go_where_most_users_are_near() -> None:
    """Node 1 works on memory of node 0 alone, and is not busy for that; what all nodes use alike stays."""
    nan = float("nan")
    seen = pages_case(
        [(0, 100, 0), (0, 500, 0), (0, 900, 1)],
        [(0, 1, 100.0, nan), (1, 0, 50.0, nan), (1, 1, 55.0, nan), (2, 1, 10.0, nan)],
    )
    assert moved(Lmma(s_preload=0).decide(seen, None).actions) == {1: [100]}


def test_nothing_without_samples() -> None:
    assert Lmma().decide(pages_case([], []), None).actions == ()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**39)), min_size=1, max_size=40))
def test_keys_hold_process_and_number(pairs: list[tuple[int, int]]) -> None:
    process, number = ints([pair[0] for pair in pairs]), ints([pair[1] for pair in pairs])
    keys = page_keys(process, number)
    assert [column.tolist() for column in split_keys(keys)] == [process.tolist(), number.tolist()]
    known = np.unique(keys)
    assert (known[find_rows(known, keys)] == keys).all()
    assert find_rows(known, ints([-5])).tolist() == [-1]


@given(st.data())
def test_lmma_names_only_pages_near_hot_ones(data: st.DataObject) -> None:
    numbers = sorted(data.draw(st.sets(st.integers(0, 60), min_size=1, max_size=30)))
    pages = [(0, number, data.draw(st.integers(0, 3))) for number in numbers]
    touches = [
        (row, data.draw(st.integers(0, 3)), data.draw(st.floats(0.5, 50)), data.draw(st.floats(10, 900)))
        for row in range(len(pages))
        if data.draw(st.booleans())
    ]
    seen = pages_case(pages, touches)
    hot = np.flatnonzero(relative_latencies(seen).pages > 1.3)
    near = {numbers[row] + ahead for row in hot.tolist() for ahead in range(9)}
    named = [page for list_ in moved(Lmma().decide(seen, None).actions).values() for page in list_]
    assert set(named) <= near
    assert len(named) == len(set(named))


@given(st.data())
def test_each_page_goes_with_the_nearest_sampled_one(data: st.DataObject) -> None:
    """K/2 pages on each side; where two reach the same page, the nearer has it, then the more accessed."""
    places = sorted(
        data.draw(st.sets(st.tuples(st.integers(0, 1), st.integers(0, 40)), min_size=1, max_size=9))
    )
    k = data.draw(st.integers(0, 30))
    goals = ints(data.draw(st.lists(st.integers(0, 3), min_size=len(places), max_size=len(places))))
    weight = np.array(data.draw(st.permutations(range(len(places)))), dtype=np.float64)
    seen = pages_case([(*place, 0) for place in places], [])
    wanted: dict[tuple[int, int], int] = {}
    for distance in range(k // 2 + 1):
        for row in np.argsort(-weight).tolist():
            process, number = places[row]
            for page in {number - distance, number + distance}:
                if page >= 0:
                    wanted.setdefault((process, page), int(goals[row]))
    keys, nodes = surrounding(seen, np.arange(len(places)), goals, weight, k)
    found = zip(*(column.tolist() for column in split_keys(keys)), strict=True)
    assert dict(zip(found, nodes.tolist(), strict=True)) == wanted
    assert (np.diff(keys) > 0).all()


def test_next_touch_moves_pages_after_their_thread_moved_when_touched() -> None:
    policy = make_policy("nimar+next-touch")
    accesses = [[10.0, 90.0, 0, 0], [100.0, 0, 0, 0], [0, 100.0, 0, 0], [0, 0, 0, 100.0]]
    pages, touches = [(0, 50, 0), (0, 51, 0)], [(0, 0, 5.0, 100.0), (1, 1, 5.0, 100.0)]
    first = observation(
        MACHINE, [0, 1, 2, 6], accesses=accesses, operations=[64, 640, 640, 640], latency=[200, 90, 90, 90],
        pages=pages, touches=touches,
    )  # fmt: skip
    decision = policy.decide(first, None)
    assert [(move.tid, move.node) for move in decision.actions] == [
        (0, 1)
    ]  # no page yet: none was touched since
    after = observation(
        MACHINE, [2, 1, 3, 6], accesses=[[100.0, 0, 0, 0]] * 4, operations=[640] * 4, latency=[90] * 4,
        pages=pages, touches=touches, time_s=2.0,
    )  # fmt: skip
    decision = policy.decide(after, decision.state)
    assert moved(decision.actions) == {1: [50]}  # page 51 was another thread's
    assert moved(policy.decide(after, decision.state).actions) == {}  # the mark is gone


@pytest.mark.parametrize("name", ["lmma", "nimar+lmma", "numaplan", "dino", "excl+next-touch"])
def test_policies_stand_an_empty_observation(name: str) -> None:
    assert make_policy(name).decide(observation(MACHINE, []), None).actions == ()


def without_memory(seen: Observation) -> Observation:
    """The same where the last two nodes have no memory, or none that may be used, node 1 is next to node 3,
    and threads stay."""
    distances = np.where(np.eye(4, dtype=bool), 10.0, 30.0)
    distances[3, 1] = distances[1, 3] = distances[2, 0] = distances[0, 2] = 15.0
    nodes = tuple(
        Node(id=node, cpus=(2 * node, 2 * node + 1), memory_bytes=(node < 2) << 30) for node in range(4)
    )
    machine = Machine(nodes=nodes, distances=tuple(map(tuple, distances.tolist())))
    threads = replace(seen.threads, movable=np.zeros(4, dtype=bool))
    return replace(seen, machine=MachineView.of(machine), threads=threads)


@pytest.mark.parametrize("policy", ["lmma", "dino", "numaplan"])
def test_pages_go_to_nodes_that_have_memory(policy: str) -> None:
    """Their only user is on node 3, which has none: on node 1 they are as near as can be."""
    seen = pages_case([(0, 100, 0), (0, 5000, 1)], [(0, 3, 2e7, np.nan), (1, 3, 2e7, np.nan)])
    goals = moved(make_policy(policy).decide(without_memory(seen), None).actions)
    assert goals.keys() == {1}
    assert 100 in goals[1] and 5000 not in goals[1]


def test_the_next_touch_is_near_memory() -> None:
    policy = make_policy("first-fit+next-touch")
    seen = pages_case([(0, 100, 0)], [(0, 3, 10.0, 100.0)])
    marked = _Marks(seen.processes.pid[:1], ints([100]), seen.threads.tid[3:4], np.array([True]))
    decided = policy.decide(without_memory(seen), (None, marked))
    assert moved(decided.actions) == {1: [100]}
