"""numaplan: what pays back moves, what does not stays, and looks that find nothing become rare."""

import math
from dataclasses import replace

import numpy as np
import pytest

from numaplan.machine import ACCESS_NS, OVERLAP, Machine, memory_waits, placement_cost
from numaplan.mapper.online.actions import MovePages, MoveThread
from numaplan.mapper.online.observation import Observation
from numaplan.mapper.online.policies.numaplan.huge_pages import SMALL_PAGES, as_one
from numaplan.mapper.online.policies.numaplan.knowledge import NONE, Uses, in_rows, learn
from numaplan.mapper.online.policies.numaplan.outlook import Outlook, fit_outlook
from numaplan.mapper.online.policies.numaplan.policy import Memory, Numaplan
from numaplan.mapper.online.policies.numaplan.seating import free_seats, seated
from numaplan.mapper.online.policies.page_sets import page_keys, split_keys
from tests.support.policy_cases import machine_of, observation

MACHINE = machine_of(2, 2)
WIDE = machine_of(2, 8)
HEAVY = 2e6  # accesses a second of one page: what threads do that wait for memory most of the time


def case(cpus: list[int], page_nodes: list[int], users: list[list[int]], time_s: float = 1.0) -> Observation:
    """Pages 100, 200, … on these nodes, each used alike by its users."""
    pages = [(0, 100 * (row + 1), node) for row, node in enumerate(page_nodes)]
    touches = [
        (row, thread, HEAVY, float(MACHINE.latency_ns[cpus[thread] // 2, page_nodes[row]]))
        for row, threads in enumerate(users)
        for thread in threads
    ]
    return observation(MACHINE, cpus, pages=pages, touches=touches, time_s=time_s)


def thread_moves(actions: tuple[object, ...]) -> dict[int, int]:
    return {move.tid: move.node for move in actions if isinstance(move, MoveThread)}


def page_moves(actions: tuple[object, ...]) -> dict[int, list[int]]:
    return {move.node: move.pages.tolist() for move in actions if isinstance(move, MovePages)}


def test_a_page_goes_to_its_only_user() -> None:
    seen = case([0, 1, 2, 3], [1, 0, 1, 1], [[0], [1], [2], [3]])
    assert page_moves(Numaplan(fill=0).decide(seen, None).actions) == {0: [100]}
    # Pages 100 and 200 have the same goal, so that what lies between them goes along.
    assert page_moves(Numaplan().decide(seen, None).actions) == {0: list(range(100, 200))}


def test_threads_that_share_come_together_when_memory_cannot_help() -> None:
    """0 and 2 share two pages, 1 and 3 two others; wherever a page lies, half of its accesses are remote."""
    seen = case([0, 1, 2, 3], [0, 1, 0, 1], [[0, 2], [0, 2], [1, 3], [1, 3]])
    moves = thread_moves(Numaplan().decide(seen, None).actions)
    node = {thread: moves.get(thread, [0, 0, 1, 1][thread]) for thread in range(4)}
    assert node[0] == node[2] != node[1] == node[3]


def test_nodes_where_no_thread_may_run_have_no_seats() -> None:
    seen = observation(replace(machine_of(4, 2), closed=frozenset({3, 4, 5, 6, 7})), [0, 1, 2, 2])
    assert free_seats(seen, seated(seen)).tolist() == [4, 2, 0, 0], "two threads a cpu"


def test_what_lies_well_stays() -> None:
    seen = case([0, 1, 2, 3], [0, 0, 1, 1], [[0], [1], [2], [3]])
    assert Numaplan().decide(seen, None).actions == ()


def test_a_huge_page_is_not_sent_to_two_nodes_again() -> None:
    """Pages 1024 and 1025 have users on different nodes; both went to one of them, and so they always do."""

    def seen(node: int, time_s: float) -> Observation:
        touches = [(0, 0, 2 * HEAVY, 90.0), (1, 2, HEAVY, 90.0), (2, 1, HEAVY, 90.0)]
        pages = [(0, 1024, node), (0, 1025, node), (0, 2048, 0)]
        return observation(wide, [0, 2, 4], pages=pages, touches=touches, time_s=time_s)

    wide, policy = machine_of(3, 2), Numaplan(fill=0, gain=1.0)
    first = policy.decide(seen(1, 1.0), None)
    assert page_moves(first.actions) == {0: [1024], 1: [2048], 2: [1025]}
    second = policy.decide(seen(2, 2.0), first.state)
    assert first.state.huge.size == 0 and second.state.huge.size == 1
    assert page_moves(second.actions)[0] == [1024]  # with it goes the other one, which fewer use
    third = policy.decide(seen(0, 3.0), second.state)
    assert 0 not in (moves := page_moves(third.actions)) and 2 not in moves


def test_uses_of_a_huge_page_are_of_its_most_used_small_one() -> None:
    uses = Uses(np.array([1024, 1030, 1030, 4000]), np.array([7, 7, 8, 7]), np.array([1.0, 2.0, 1.0, 5.0]))
    one = as_one(uses, np.array([2]))
    assert one.page.tolist() == [1030, 1030, 4000] and one.tid.tolist() == [7, 8, 7]
    assert one.weight.tolist() == [3.0, 1.0, 5.0]
    assert as_one(uses, np.array([5])) is uses


def test_nothing_moves_that_does_not_pay_back() -> None:
    seen = case([0, 1, 2, 3], [1, 0, 0, 1], [[0], [1], [2], [3]])
    assert Numaplan().decide(seen, None).actions
    assert Numaplan(page_cost=1e3, warm_up=1e3).decide(seen, None).actions == ()
    assert Numaplan(horizon=0.01, page_cost=1.0, warm_up=1.0).decide(seen, None).actions == ()


def first_move(page_cost: float, horizon: float = 10.0) -> int | None:
    """In which second of ten pages 100 and 101, which their threads use from the other node, are moved."""
    pages = [(0, 100, 1), (0, 101, 1), (0, 200, 0)]
    touches = [(0, 0, 1e6, math.nan), (1, 1, 1e6, math.nan), (2, 2, 1.0, math.nan)]
    policy, state = Numaplan(horizon=horizon, page_cost=page_cost, flush=0.0, warm_up=1e3), None
    for second in range(1, 11):
        seen = observation(MACHINE, [0, 1, 2], pages=pages, touches=touches, time_s=float(second))
        decision = policy.decide(seen, state)
        if page_moves(decision.actions):
            return second
        state = decision.state
    return None


def saved_by(accesses: float) -> float:
    """Seconds that so many remote accesses would wait less nearby."""
    return accesses * float(MACHINE.latency_ns[0, 1] - MACHINE.latency_ns[0, 0]) / OVERLAP * 1e-9


def test_what_has_lasted_is_expected_to_last_as_long_but_not_beyond_the_horizon() -> None:
    assert [first_move(saved_by(times * 1e6)) for times in (0.8, 1.8, 4.8, 8.8)] == [1, 2, 5, 9]
    assert first_move(saved_by(4.8e6), horizon=4.0) is None


def test_pages_that_go_along_are_paid_for() -> None:
    """99 lie between 100 and 200 without a sample: each of the two pays for itself and for half of them."""
    pages = [(0, 100, 1), (0, 200, 1), (0, 2000, 0)]
    touches = [(0, 0, 1e6, math.nan), (1, 0, 1e6, math.nan), (2, 1, 1e6, math.nan)]
    seen = observation(MACHINE, [0, 1], pages=pages, touches=touches)

    def moved(page_cost: float, fill: int) -> int:
        policy = Numaplan(page_cost=page_cost, flush=0.0, warm_up=1e3, fill=fill)
        return len(page_moves(policy.decide(seen, None).actions).get(0, []))

    assert [moved(saved_by(1e6) / pays_for, 512) for pays_for in (51, 50)] == [101, 0]
    assert [moved(saved_by(1e6) / pays_for, 0) for pays_for in (1.1, 0.9)] == [2, 0]


def test_a_huge_page_is_paid_for_once() -> None:
    """Of two huge pages side by side one small page each was sampled; those between belong to the two."""
    pages, touches = [(0, 1124, 1), (0, 1636, 1)], [(page, 0, 2e6, math.nan) for page in (0, 1)]
    seen = observation(MACHINE, [0, 1], pages=pages, touches=touches)
    huge = np.unique(page_keys(seen.processes.pid[[0, 0]], seen.pages.number) // SMALL_PAGES)

    def moves(pays_for: float) -> bool:
        policy = Numaplan(page_cost=saved_by(1e6) / pays_for, flush=0.0, warm_up=1e3)
        return bool(policy.decide(seen, Memory(NONE, frozenset(), 0.0, 0.0, {}, huge=huge)).actions)

    assert [moves(pays_for) for pays_for in (513, 511)] == [True, False]


def test_nothing_is_missed_where_all_is_near() -> None:
    """Not even by what rounding leaves, of either sign: a saving would last for less than no time."""
    policy, state = Numaplan(), None
    for second in range(1, 41):
        rates = np.random.default_rng(second).uniform(1.0, 1e6, 16).tolist()
        touches = [(row, row, rate, float(WIDE.latency_ns[0, 0])) for row, rate in enumerate(rates)]
        pages = [(0, 1000 * row, row // 8) for row in range(16)]
        seen = observation(WIDE, range(16), pages=pages, touches=touches, time_s=float(second))
        decision = policy.decide(seen, state)
        state = decision.state
        assert decision.actions == () and 0.0 <= state.avoidable < 1e-12


def test_memory_on_the_nearest_node_that_has_some_is_near() -> None:
    bare = replace(MACHINE, has_memory=np.array([True, False]))
    touches = [(0, 0, 1e6, float(MACHINE.latency_ns[1, 0]))]
    seen = observation(bare, [2], pages=[(0, 100, 0)], touches=touches)
    assert Numaplan().decide(seen, None).state.avoidable == pytest.approx(0.0, abs=1e-12)


def test_looks_that_find_nothing_become_rare_until_threads_come() -> None:
    policy, state, looks = Numaplan(patience=8.0), None, []
    for step in range(30):
        state = policy.decide(
            case([0, 1, 2, 3], [0, 0, 1, 1], [[0], [1], [2], [3]], time_s=float(step)), state
        ).state
        looks.append(state.solve_at)
    assert np.diff(sorted(set(looks))).max() == 8.0
    more = case([0, 1, 2], [0, 0, 1], [[0], [1], [2]], time_s=30.0)
    assert policy.decide(more, state).state.solve_at == 31.0


def test_samples_are_added_and_fade() -> None:
    first = case([0, 2], [0], [[0]])
    uses = learn(NONE, first, 0.0, 100)
    assert (split_keys(uses.page)[1].tolist(), uses.weight.tolist()) == ([100], [HEAVY])
    again = learn(uses, case([0, 2], [0], [[1]]), 0.5, 100)
    assert dict(zip(again.tid.tolist(), again.weight.tolist(), strict=True)) == {0: HEAVY / 2, 1: HEAVY / 2}
    assert len(learn(again, case([0, 2], [0], [[1]]), 0.5, 1).weight) == 1
    gone = observation(MACHINE, [2], tids=[1])
    assert learn(again, gone, 0.5, 100).tid.tolist() == [1]


def test_communication_counts_what_two_threads_use_together() -> None:
    seen = case([0, 1, 2, 3], [0, 0], [[0, 1], [2]])
    sharing = in_rows(learn(NONE, seen, 0.0, 100), seen)
    comm = sharing.communication(4)
    assert comm[0, 1] == comm[1, 0] == pytest.approx(HEAVY / 2)
    assert comm.sum() == pytest.approx(HEAVY)


def outlook_of(seen: Observation) -> Outlook:
    return fit_outlook(seen, in_rows(learn(NONE, seen, 0.0, 100), seen))


@pytest.mark.parametrize(("local", "remote"), [(1.0, 1.0), (1.5, 1.5), (1.5, 4.0), (4.0, 3.0)])
def test_what_is_waited_now_is_what_latencies_say(local: float, remote: float) -> None:
    """Of both outlooks, also where links slow accesses down otherwise than memories do."""
    pages, cpus = [(0, 100, 0), (0, 200, 1)], [0, 2, 1, 3]  # two local threads, two remote ones
    waits = [
        factor * float(MACHINE.latency_ns[cpu // 2, page])
        for cpu, page, factor in zip(cpus, (0, 1, 1, 0), (local, local, remote, remote), strict=True)
    ]
    touches = [(page, row, 1e6, waits[row]) for row, page in enumerate((0, 1, 1, 0))]
    seen = observation(MACHINE, cpus, pages=pages, touches=touches)
    now = outlook_of(seen).waiting(seen.threads.node, seen.pages.node)
    assert now == pytest.approx([sum(waits) * 1e6 / OVERLAP * 1e-9] * 2)


@pytest.mark.parametrize("rate", [1e6, 1e8, 6e8, 1.2e9])
def test_without_latencies_waiting_is_the_formula_s(rate: float) -> None:
    """Both nodes' threads use node 0's memory, up to all that it can give, and more."""
    machine = Machine.load("2x2")
    pages, cpus = [(0, 100, 0), (0, 200, 1)], [0, 1, 2]
    memory = np.array([[rate, 0.0], [0.0, 0.1 * rate], [0.3 * rate, 0.0]])
    touches = [
        (int(page), int(row), float(memory[row, page]), math.nan) for row, page in np.argwhere(memory > 0)
    ]
    seen = observation(MACHINE, cpus, pages=pages, touches=touches)
    stalls = memory_waits(memory, np.array([0, 0, 1]), MACHINE.latency_ns)
    other = np.maximum(1e9 - stalls, 0.0) / ACCESS_NS  # so that the second is what everything takes
    cost = placement_cost(machine, cpus, memory, accesses=other)
    if stalls.max() <= 1e9:
        expected = (cost.memory_ns + cost.queue_ns) * 1e-9
        assert outlook_of(seen).waiting(seen.threads.node, seen.pages.node) == pytest.approx([expected] * 2)
    else:
        assert min(outlook_of(seen).waiting(seen.threads.node, seen.pages.node)) > stalls.sum() * 1e-9


def loaded(factor: float, cpus: list[int], page_nodes: list[int], rate: float = HEAVY) -> Observation:
    """Threads that use a page each, with latencies of that many times the unloaded ones."""
    pages = [(0, 100 * (row + 1), node) for row, node in enumerate(page_nodes)]
    touches = [
        (row, row, rate, factor * float(MACHINE.latency_ns[cpus[row] // 2, node]))
        for row, node in enumerate(page_nodes)
    ]
    return observation(MACHINE, cpus, pages=pages, touches=touches)


@pytest.mark.parametrize(("factor", "left"), [(1.0, 1.0), (2.0, 2 / 3), (1e6, 1 / 2)])
def test_savings_shrink_where_threads_that_wait_less_ask_for_more(factor: float, left: float) -> None:
    """While little of a memory is used, its queue grows as its load: at twice the unloaded latency half of
    the wait has an elasticity of 1, so two thirds of a saving are left."""
    seen = loaded(factor, [0, 2], [0, 1])
    assert outlook_of(seen).left_of_savings(np.array([0, 1])) == pytest.approx(left, rel=2e-3)


def test_little_is_left_of_savings_where_a_memory_is_full() -> None:
    seen = loaded(30.0, [0, 1], [0, 0], rate=5.5e8)  # 70 of 76 GB/s
    assert outlook_of(seen).left_of_savings(np.zeros(2, np.int64)) < 0.1


def test_what_is_left_decides_whether_pages_pay() -> None:
    """Page 100 waits for the other node; under load most of what its move would save comes back as load."""
    idle, full = (loaded(factor, [0, 1, 2, 3], [1, 0, 1, 0]) for factor in (1.0, 3.0))
    price = next(cost for cost in np.geomspace(1e-3, 1e3, 200) if not moves_at(idle, cost))
    assert not moves_at(full, price * 3.0 / 1.5)  # not thrice dearer, though thrice as much is waited
    assert moves_at(full, price / 3.0)


def moves_at(seen: Observation, page_cost: float) -> bool:
    return bool(page_moves(Numaplan(fill=0, page_cost=page_cost, warm_up=1e3).decide(seen, None).actions))
