"""The worked example of [DINO], 3.3.3 (eight threads on four domains of two cores); what DINO remembers."""

import numpy as np
import pytest

from numaplan.mapper.online.actions import MovePages
from numaplan.mapper.online.policies.dino import DEVIL, SUPER_DEVIL, TURTLE, Dino, Memory, Thread, place
from numaplan.mapper.online.policies.follow import Travels
from numaplan.mapper.online.policies.layout import (
    alternating_layout,
    domain_slots,
    gather_processes,
    keep_in_place,
)
from numaplan.mapper.online.registry import make_policy
from tests.support.policy_cases import by_tid, ints, machine_of, observation

PROCESS = [0, 1, 2, 0, 0, 0, 3, 4]
D, d, t = SUPER_DEVIL, DEVIL, TURTLE
KINDS = ints([D, t, d, t, d, t, d, D])  # of threads 0..7 now; thread 7 was a turtle
RATES = {D: 150.0, d: 20.0, t: 0.5}
MACHINE = machine_of(4, 2)
NOW = observation(MACHINE, list(range(8)), process=PROCESS, mpki=[RATES[kind] for kind in KINDS.tolist()])


def layout() -> list[tuple[int, int]]:
    order = np.argsort(-KINDS, kind="stable").tolist()
    return alternating_layout(order, domain_slots(MACHINE, 8))


def test_the_layout_of_classes() -> None:
    """dom0 to dom3: D t, D t, d t, d d."""
    kinds = {slot: int(KINDS[thread]) for thread, slot in layout()}
    assert [kinds[core] for core in range(8)] == [D, t, D, t, d, t, d, d]


def test_threads_keep_cores_of_their_class_and_the_others_fill_up() -> None:
    """new_threadID: 0 1 7 3 4 5 6 2 by core."""
    slots = [(core, int(KINDS[thread])) for thread, core in layout()]
    order = np.argsort(-KINDS, kind="stable").tolist()
    kept = keep_in_place(np.arange(8), KINDS, order, slots)
    assert np.argsort(kept).tolist() == [0, 1, 7, 3, 4, 5, 6, 2]


def test_threads_of_one_process_come_together() -> None:
    """new_threadID: 0 3 7 1 4 5 6 2 by core."""
    before = np.argsort(ints([0, 1, 7, 3, 4, 5, 6, 2]))
    after = gather_processes(before, KINDS, ints(PROCESS), MACHINE.cpu_node)
    assert np.argsort(after).tolist() == [0, 3, 7, 1, 4, 5, 6, 2]
    assert np.argsort(place(NOW, np.arange(8), KINDS, np.arange(8))).tolist() == [0, 3, 7, 1, 4, 5, 6, 2]


def test_the_policy_moves_just_those_threads() -> None:
    decision = Dino().decide(NOW, None)
    cpus = {tid: move.cpu for tid, move in by_tid(decision.actions).items()}
    assert cpus == {0: 0, 1: 3, 2: 7, 3: 1, 4: 4, 5: 5, 6: 6, 7: 2}  # those that stay are bound too
    again = observation(
        MACHINE, [0, 3, 7, 1, 4, 5, 6, 2], process=PROCESS, mpki=[RATES[kind] for kind in KINDS.tolist()]
    )
    assert Dino().decide(again, decision.state).actions == ()


@pytest.mark.parametrize(("rate", "kind"), [(0, t), (1.99, t), (2, d), (100, d), (100.1, D)])
def test_class_thresholds(rate: float, kind: int) -> None:
    assert Dino().classes(np.array([rate])) == [kind]


def test_a_class_changes_after_seven_of_ten_intervals() -> None:
    machine = machine_of(2, 2)
    policy, state = Dino(), None
    rates = [0.5] * 10 + [50.0] * 7
    kinds = []
    for step, rate in enumerate(rates):
        state = policy.decide(observation(machine, [0, 2], mpki=[rate, 0.5], time_s=step), state).state
        kinds.append(state.threads[0].kind)
    assert kinds == [t] * 16 + [d]


def test_spikes_move_nothing() -> None:
    machine = machine_of(2, 2)
    policy, state, moves = Dino(), None, 0
    cpus = [0, 1, 2, 3]
    for step in range(60):
        spike = 50.0 if step % 3 == 1 else 0.5
        seen = observation(machine, cpus, mpki=[spike, 0.5, 0.5, 5], process=[0, 1, 2, 3], time_s=step)
        decision = policy.decide(seen, state)
        state = decision.state
        for tid, move in by_tid(decision.actions).items():
            cpus[tid] = move.cpu if move.cpu is not None else cpus[tid]
        moves += len(decision.actions) if step else 0
    assert moves == 0


def test_memory_follows_with_k_pages_around() -> None:
    seen = observation(
        machine_of(2, 2), [0, 2], process=[0, 1], mpki=[5, 5],
        pages=[(0, 10_000, 1)], touches=[(0, 0, 5.0, 200.0)],
    )  # fmt: skip
    state = Memory({0: Thread(d, (d,), 0), 1: Thread(d, (d,), 2)}, Travels())
    (move,) = Dino().decide(seen, state).actions
    assert isinstance(move, MovePages)
    assert (move.pid, move.node) == (100, 0)
    assert (move.pages.min(), move.pages.max(), len(move.pages)) == (10_000 - 2048, 10_000 + 2048, 4097)


@pytest.mark.parametrize("name", ["dino", "di-plain", "di-migrate"])
def test_a_thread_that_never_ran_takes_no_place(name: str) -> None:
    """A shell waits for four programs on as many cpus; one of them pauses later, and keeps its place."""
    machine, policy = machine_of(2, 2), make_policy(name)
    seen = observation(
        machine, [0, 0, 1, 2, 3], process=range(5), mpki=[0, 9, 9, 9, 9], busy=[0.01, 1, 1, 1, 1]
    )
    first = policy.decide(seen, None)
    assert {move.tid for move in first.actions} == {1, 2, 3, 4}
    assert len({move.cpu for move in first.actions}) == 4
    there = [0, *(int(by_tid(first.actions)[tid].cpu) for tid in range(1, 5))]  # type: ignore[attr-defined]
    paused = observation(machine, there, process=range(5), mpki=[0, 9, 9, 9, 9], busy=[0.01, 1, 1, 1, 0])
    assert policy.decide(paused, first.state).actions == ()


def test_ping_ponged_memory_is_left_alone() -> None:
    machine, state = machine_of(2, 2), Memory({0: Thread(d, (d,), 0), 1: Thread(d, (d,), 2)}, Travels())
    moves = []
    for step in range(6):
        here = step % 2
        pages, touches = [(0, 10_000, here)], [(0, 1 - here, 5.0, 200.0)]
        seen = observation(machine, [0, 2], mpki=[5, 5], pages=pages, touches=touches)
        decision = Dino().decide(seen, state)
        state = decision.state
        moves.append(len(decision.actions))
    assert moves == [1, 1, 0, 0, 0, 0]  # there, back, and no more


def test_di_plain_spreads_by_rate_and_leaves_memory() -> None:
    seen = observation(
        MACHINE, list(range(8)), mpki=[8, 7, 6, 5, 4, 3, 2, 1],
        pages=[(0, 10_000, 3)], touches=[(0, 0, 5.0, 200.0)],
    )  # fmt: skip
    rows, cpus = make_policy("di-plain").layout(seen, np.arange(8))  # type: ignore[attr-defined]
    domains = MACHINE.cpu_node[cpus[np.argsort(rows)]]
    assert domains.tolist() == [0, 1, 2, 3, 3, 2, 1, 0]
    actions = make_policy("di-plain").decide(seen, None).actions
    assert not any(isinstance(action, MovePages) for action in actions)
    assert any(
        isinstance(action, MovePages) for action in make_policy("di-migrate").decide(seen, None).actions
    )


@pytest.mark.parametrize("threads", [1, 3, 8, 11, 40])
def test_every_thread_gets_a_core(threads: int) -> None:
    placed = alternating_layout(list(range(threads)), domain_slots(MACHINE, threads))
    assert sorted(item for item, _ in placed) == list(range(threads))
    per_core = np.bincount([core for _, core in placed], minlength=8)
    assert per_core.max() <= -(-threads // 8)
