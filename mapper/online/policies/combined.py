"""Policies together: several at their own periods, and any of them followed by next-touch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..actions import Action, Decision, MoveThread, Policy
from ..observation import Observation
from .next_touch import NextTouch

_SLACK = 1e-6


@dataclass(frozen=True)
class Combined:
    """Each part is asked when its own period is over; a later part sees threads where earlier ones put them.

    The paper does not say. Were pages moved to where their user was, memory and thread would change places
    and neither be any nearer, interval for interval.
    """

    parts: tuple[Policy, ...]
    balances: ClassVar[bool] = False
    trades_distance: ClassVar[bool] = False

    @property
    def needs(self) -> frozenset[str]:
        """What any part needs."""
        return frozenset().union(*(part.needs for part in self.parts))

    @property
    def period_s(self) -> float:
        """The shortest of the parts'."""
        return min(part.period_s for part in self.parts)

    def decide(self, observation: Observation, state: Any) -> Decision:
        """The parts' actions one after the other; state: (when each was asked last, its state)."""
        before = state or tuple((None, None) for _ in self.parts)
        actions: list[Action] = []
        after = []
        for part, (asked, memory) in zip(self.parts, before, strict=True):
            if asked is not None and observation.time_s - asked < part.period_s - _SLACK:
                after.append((asked, memory))
                continue
            decision = part.decide(observation, memory)
            actions += decision.actions
            after.append((observation.time_s, decision.state))
            observation = with_moves(observation, decision.actions)
        return Decision(tuple(actions), tuple(after))


def with_moves(observation: Observation, actions: Sequence[Action]) -> Observation:
    """The observation, had the threads been where these actions put them."""
    to = {action.tid: action.node for action in actions if isinstance(action, MoveThread)}
    if not to:
        return observation
    threads, touches = observation.threads, observation.touches
    node, ids = threads.node.copy(), observation.machine.node_ids.tolist()
    rows = np.flatnonzero(np.isin(threads.tid, list(to)))
    node[rows] = [ids.index(to[tid]) for tid in threads.tid[rows].tolist()]
    went = node != threads.node
    moved = went[touches.thread]
    places = np.where(moved, node[touches.thread], touches.node)
    latency = np.where(moved, np.nan, touches.latency_ns)  # from there nobody measured it
    touches = replace(touches, node=places, latency_ns=latency)
    return replace(observation, threads=replace(threads, node=node), touches=touches)


@dataclass(frozen=True)
class Followed:
    """A thread policy whose moves mark the moved threads' pages to migrate when they are touched next."""

    mover: Policy
    touch: NextTouch

    @property
    def needs(self) -> frozenset[str]:
        """What the policy needs, and samples of accesses."""
        return self.mover.needs | self.touch.needs

    @property
    def balances(self) -> bool:
        """Whether the policy takes the place of the kernel's balancing."""
        return self.mover.balances

    @property
    def trades_distance(self) -> bool:
        """Whether the policy gives up local memory."""
        return self.mover.trades_distance

    @property
    def period_s(self) -> float:
        """The policy's."""
        return self.mover.period_s

    def decide(self, observation: Observation, state: Any) -> Decision:
        """The policy's actions, and migrations of the pages marked before that were touched since."""
        memory, marks = state or (None, None)
        decision = self.mover.decide(observation, memory)
        follow = self.touch.follow(observation, decision.actions, marks)
        return Decision(decision.actions + follow.actions, (decision.state, follow.state))
