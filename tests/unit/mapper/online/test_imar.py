"""CIMAR and NIMAR: 3DyRM performance, the points q1 to q4, which migrations are chosen ([IMAR])."""

from dataclasses import replace

import numpy as np
import pytest

from numaplan.mapper.online.observation import Observation
from numaplan.mapper.online.policies.imar import Cimar, Nimar
from numaplan.mapper.online.policies.performance import performance, preferred_nodes, relative_performance
from tests.support.policy_cases import by_tid, ints, machine_of, observation

MACHINE = machine_of(2, 2)


def case(
    cpus: list[int], accesses: list[list[float]], operations: list[float], **more: object
) -> Observation:
    return observation(MACHINE, cpus, accesses=accesses, operations=operations, **more)  # type: ignore[arg-type]


def test_performance_is_operations_times_intensity_over_latency() -> None:
    """P = O · (O / (A · 64)) / L."""
    seen = case([0, 1], [[100, 0], [50, 50]], [6400, 3200], latency=[50, 100])
    assert performance(seen).tolist() == [6400 * 1.0 / 50, 3200 * 0.5 / 100]
    assert relative_performance(np.array([128.0, 16.0, 5.0]), ints([0, 0, 1]), 2).tolist() == [
        128 / 72, 16 / 72, 1.0
    ]  # fmt: skip


def test_without_latencies_those_of_the_machine_are_taken() -> None:
    seen = case([0, 0], [[100, 0], [0, 100]], [6400, 6400])
    near, far = performance(seen).tolist()
    assert near / far == pytest.approx(143 / 84)  # of distances 21 and 10, in the cost of placements


def test_idle_threads_are_not_judged() -> None:
    seen = case([0, 1, 2], [[1, 0], [0, 0], [1, 0]], [1, 1, 1], latency=[1, 1, 1], busy=[1, 1, 0])
    assert np.isnan(performance(seen)).tolist() == [False, True, True]


def test_preferred_node_is_where_most_accesses_go() -> None:
    assert preferred_nodes(np.array([[3.0, 4.0], [4.0, 4.0], [0.0, 0.0]])).tolist() == [1, 0, -1]


# Thread 0 is on node 0, its memory on node 1; thread 1 is on node 0 with its memory; node 1 is empty or not.
BAD = [[10.0, 90.0], [100.0, 0.0]]


def test_score_table_of_a_free_seat() -> None:
    """q1 = 2, q2 = 4 · 21 / 10, q3 = 2 without a record; staying: 4 + 2."""
    policy = Nimar()
    facts = policy.facts(case([0, 1], BAD, [64, 640], latency=[200, 90]), {})
    assert policy.score(facts, 0, 1, free=True) == pytest.approx(2 + 8.4 + 2)
    assert policy.score(facts, 0, 0) == pytest.approx(4 + 2)
    assert policy.score(facts, 1, 1, free=True) == pytest.approx(2 + 4 * 10 / 21 + 2)


@pytest.mark.parametrize(("before", "points"), [(1e9, 4), (1e-9, 1), (None, 2), ("same", 2)])
def test_q3_compares_with_the_last_performance_there(before: float | str | None, points: float) -> None:
    policy = Cimar()
    seen = case([0, 1], BAD, [64, 640], latency=[200, 90])
    now = float(performance(seen)[0])
    record = {} if before is None else {(0, 1): now if before == "same" else float(before)}
    facts = policy.facts(seen, record)  # type: ignore[arg-type]
    assert policy.score(facts, 0, 1) == pytest.approx(8.4 + points)


def test_q4_rewards_a_swap_with_another_bad_performer() -> None:
    accesses = [[10.0, 90.0], [100.0, 0.0], [90.0, 10.0], [0.0, 100.0]]
    seen = case([0, 1, 2, 3], accesses, [64, 640, 64, 640], latency=[200, 90, 200, 90])
    policy = Nimar()
    facts = policy.facts(seen, {})
    assert policy.score(facts, 0, 1, partner=2) == pytest.approx(8.4 + 2 + 3)
    assert policy.score(facts, 0, 1, partner=3) == pytest.approx(8.4 + 2)


def test_candidates_are_the_m_worst_up_to_delta_perf() -> None:
    seen = case([0, 1, 2, 3], [[100.0, 0.0]] * 4, [100, 30, 50, 99], latency=[90] * 4)
    assert Nimar().candidates(Nimar().facts(seen, {})).tolist() == [1, 2]
    assert Nimar(m=1).candidates(Nimar().facts(seen, {})).tolist() == [1]
    assert Nimar(delta_perf=0.05).candidates(Nimar().facts(seen, {})).tolist() == []


def test_nimar_moves_to_a_free_seat_of_the_preferred_node() -> None:
    decision = Nimar().decide(case([0, 1], BAD, [64, 640], latency=[200, 90]), None)
    (move,) = decision.actions
    assert (move.tid, move.node, move.cpu) == (0, 1, None)


def test_cimar_names_the_core_and_swaps_where_none_is_free() -> None:
    accesses = [[10.0, 90.0], [100.0, 0.0], [90.0, 10.0], [0.0, 100.0]]
    seen = case([0, 1, 2, 3], accesses, [64, 640, 64, 640], latency=[200, 90, 200, 90])
    moves = by_tid(Cimar().decide(seen, None).actions)
    assert {tid: (move.node, move.cpu, move.partner) for tid, move in moves.items()} == {
        0: (1, 2, 2), 2: (0, 0, 0)
    }  # fmt: skip
    (single,) = Cimar().decide(case([0, 1], BAD, [64, 640], latency=[200, 90]), None).actions
    assert single.cpu in (2, 3)


def test_what_is_well_placed_stays() -> None:
    accesses = [[100.0, 0.0], [100.0, 0.0], [0.0, 100.0], [0.0, 100.0]]
    seen = case([0, 1, 2, 3], accesses, [64, 640, 64, 640], latency=[90] * 4)
    assert Nimar().decide(seen, None).actions == ()
    assert Cimar().decide(seen, None).actions == ()


def test_a_seat_and_a_thread_are_used_once() -> None:
    machine = machine_of(2, 3)
    accesses = [[0.0, 100.0]] * 3 + [[0.0, 100.0]] * 2
    seen = observation(
        machine,
        [0, 1, 2, 3, 4],
        accesses=accesses,
        operations=[10, 20, 30, 640, 640],
        latency=[200] * 3 + [90] * 2,
    )
    moves = Nimar().decide(seen, None).actions
    assert [(move.tid, move.node) for move in moves] == [(0, 1)]


def test_the_record_is_kept_by_thread_and_node() -> None:
    first = case([0, 1], BAD, [64, 640], latency=[200, 90])
    state = Nimar().decide(first, None).state
    second = case([2, 1], BAD, [64, 640], latency=[100, 90])
    state = Nimar().decide(second, state).state
    assert set(state) == {(0, 0), (0, 1), (1, 0)}
    assert state[0, 1] == 2 * state[0, 0]
    gone = case([1], [[1.0, 0.0]], [64], latency=[90], tids=[1])
    assert set(Nimar().decide(gone, state).state) == {(1, 0)}


def test_intervals_of_different_length_compare() -> None:
    """Twice the operations and accesses in twice the time are the same performance."""
    short = observation(machine_of(2, 2), [0, 2], accesses=[[9, 1], [2, 8]], operations=[100, 80])
    long = observation(machine_of(2, 2), [0, 2], accesses=[[18, 2], [4, 16]], operations=[200, 160])
    assert performance(replace(long, interval_s=2.0)).tolist() == performance(short).tolist()


def test_where_nothing_counts_operations_a_thread_that_takes_longer_is_no_better() -> None:
    """Accesses stand for operations: P = A / (64 · L), however long a thread was busy with them."""
    seen = case([0, 2], [[10, 0], [10, 0]], [0, 0], latency=[50, 100], busy=[0.5, 1.0])
    assert performance(seen).tolist() == [10 / 64 / 50, 10 / 64 / 100]
