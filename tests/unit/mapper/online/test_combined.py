"""Policies together: memory is placed for where threads will be."""

from dataclasses import replace

import numpy as np

from numaplan.mapper.online.actions import MovePages
from numaplan.mapper.online.observation import Observation
from numaplan.mapper.online.policies.combined import with_moves
from numaplan.mapper.online.registry import make_policy
from tests.support.policy_cases import by_tid, machine_of, observation


def crossed() -> Observation:
    """Threads 0 and 1 are on each other's memory's node; 2 and 3 are where theirs is."""
    return observation(
        machine_of(2, 2),
        [0, 2, 1, 3],
        accesses=[[0, 100], [100, 0], [100, 0], [0, 100]],
        operations=[0, 0, 0, 0],
        pages=[(0, 0, 1), (0, 20, 0), (0, 40, 0), (0, 60, 1)],
        touches=[(thread, thread, 100.0, np.nan) for thread in range(4)],
    )


def test_pages_do_not_go_where_their_users_leave() -> None:
    """Else threads and memory change places, and neither is any nearer."""
    seen = crossed()
    assert any(isinstance(action, MovePages) for action in make_policy("lmma").decide(seen, None).actions)
    together = make_policy("nimar+lmma").decide(seen, None).actions
    assert {tid: move.node for tid, move in by_tid(together).items()} == {0: 1, 1: 0}  # type: ignore[attr-defined]
    assert len(together) == 2


def test_threads_are_seen_where_they_were_put() -> None:
    seen = crossed()
    moved = with_moves(seen, make_policy("nimar").decide(seen, None).actions)
    assert moved.threads.node.tolist() == [1, 0, 0, 1]
    assert moved.touches.node.tolist() == [1, 0, 0, 1]
    assert with_moves(seen, ()) is seen


def test_a_moved_thread_is_not_taken_to_wait_as_it_did() -> None:
    """The latency was measured on the node that it leaves; where it goes only distance is known."""
    seen = crossed()
    timed = replace(seen.touches, latency_ns=np.array([400.0, 100, 100, 100]))
    moved = with_moves(replace(seen, touches=timed), make_policy("nimar").decide(seen, None).actions)
    assert np.isnan(moved.touches.latency_ns).tolist() == [True, True, False, False]
    assert moved.touches.latency_ns[2:].tolist() == [100, 100]
    together = make_policy("nimar+lmma").decide(replace(seen, touches=timed), None).actions
    assert not any(isinstance(action, MovePages) for action in together)
