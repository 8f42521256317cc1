"""What a policy may ask for, and the form of a policy.

Actions carry the operating system's ids (tid, node, cpu, pid), so that applying them needs nothing
of the observation. A policy is a frozen dataclass: its fields are its parameters. It holds no state; what
it must remember goes out with a decision and comes back with the next observation.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .observation import Observation


@dataclass(frozen=True)
class MoveThread:
    """Bind thread `tid` to all cpus of `node`, or to `cpu` of it where one is named.

    partner: the tid that goes the other way when this is half of a swap (both halves or neither are applied).
    """

    tid: int
    node: int
    reason: str
    cpu: int | None = None
    partner: int | None = None


@dataclass(frozen=True, eq=False)
class MovePages:
    """Move pages of process `pid` to `node`; pages: (n,) virtual page numbers, those that are there already
    or do not exist are skipped by whoever applies it."""

    pid: int
    pages: NDArray[np.int64]
    node: int
    reason: str


Action = MoveThread | MovePages


class Decision(NamedTuple):
    """What to do now, and what to hand to the next `decide`."""

    actions: tuple[Action, ...]
    state: Any


class Policy(Protocol):
    """A pure function of what was observed and what it remembers.

    `state` is None at first.
    """

    @property
    def needs(self) -> frozenset[str]:
        """What it cannot do without, of NEEDS."""

    @property
    def balances(self) -> bool:
        """Whether it takes the place of the kernel's own balancing between nodes."""

    @property
    def trades_distance(self) -> bool:
        """Whether it gives up local memory for room on cpus or in caches.

        Then waiting for cpus alone tells how it does, and threads need not stay where it put them.
        """

    @property
    def period_s(self) -> float:
        """Seconds between two decisions (the papers' T)."""

    def decide(self, observation: Observation, state: Any) -> Decision:
        """The actions for the next interval, most urgent first, and the new state."""


# What an observation may hold or not: see `Policy.needs`.
NEEDS = {
    "counters": "instructions or operations by thread",
    "misses": "last-level cache misses by thread",
    "accesses": "sampled memory accesses with addresses",
    "resident": "resident pages by node and process",
}
