"""Migrations of CIMAR and NIMAR: what is known of threads, which swap places, and the resulting moves."""

from typing import NamedTuple

import numpy as np

from ..actions import Action, MoveThread
from ..observation import Floats, Ints, Observation


class Migration(NamedTuple):
    """A thread row to a node row (and cpu row, -1: any), a partner row to come back (-1: none), the score
    Q.
    """

    thread: int
    node: int
    cpu: int
    partner: int
    score: float


class Facts(NamedTuple):
    """What scores are made of. distances: (K, K); by thread, (T,): preferred node, P, relative P; before:
    (T, K) the last P on each node, NaN where it was not.
    """

    observation: Observation
    distances: Floats
    preferred: Ints
    performance: Floats
    relative: Floats
    before: Floats


def compatible(
    observation: Observation, options: list[Migration], limit: int, per_core: bool
) -> list[Migration]:
    """The first `limit` options that use each thread and each free core or seat once."""
    threads, machine = observation.threads, observation.machine
    hosted = np.bincount(threads.node[threads.running], minlength=machine.nodes)
    seats = (machine.seats - hosted).tolist()
    used: set[int] = set()
    cpus: set[int] = set()
    chosen: list[Migration] = []
    for option in options:
        taken = used & {option.thread, option.partner}
        full = option.partner < 0 and (option.cpu in cpus if per_core else seats[option.node] <= 0)
        if taken or full:
            continue
        chosen.append(option)
        used |= {option.thread, option.partner} - {-1}
        if option.partner < 0:
            cpus.add(option.cpu)
            seats[option.node] -= 1
            seats[int(threads.node[option.thread])] += 1
        if len(chosen) == limit:
            break
    return chosen


def actions_of(facts: Facts, migration: Migration) -> list[Action]:
    """The thread's move and, where there is a partner, its way back."""
    threads, machine = facts.observation.threads, facts.observation.machine

    def move(thread: int, node: int, cpu: int, partner: int, reason: str) -> MoveThread:
        return MoveThread(
            tid=int(threads.tid[thread]),
            node=int(machine.node_ids[node]),
            reason=reason,
            cpu=int(machine.cpu_ids[cpu]) if cpu >= 0 else None,
            partner=int(threads.tid[partner]) if partner >= 0 else None,
        )

    thread, node, cpu, partner, score = migration
    reason = f"relative performance {facts.relative[thread]:.2f}, score {score:.1f}"
    if partner < 0:
        return [move(thread, node, cpu, -1, reason)]
    home = int(threads.cpu[thread]) if cpu >= 0 else -1
    return [
        move(thread, node, cpu, partner, reason),
        move(partner, int(threads.node[thread]), home, thread, f"makes room, score {score:.1f}"),
    ]
