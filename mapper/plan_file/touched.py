"""Who uses memory that whom touched first, and how local that makes a part of a plan."""

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, NamedTuple

import msgspec

STAYS = 0.5  # of the time, that a thread nobody binds is where it first was

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Touched(msgspec.Struct, frozen=True, kw_only=True):
    """Accesses of the threads of a process that are planned on a node, as shares of all.

    own: to memory that each touched first itself; others: (place in the list, share) for memory that other
    threads touched first.
    """

    process: str
    node: int
    own: Share
    others: tuple[tuple[Annotated[int, msgspec.Meta(ge=0)], Share], ...] = ()

    @property
    def all(self) -> float:
        """All their accesses."""
        return self.own + sum(share for _, share in self.others)


class Whereabouts(NamedTuple):
    """Where threads are: the share of its time that each is on each node, by the node's id; stays: the share
    that it is where it first was (1 where there is a cpu for each, and nothing to move them)."""

    shares: Mapping[int, float]
    stays: float


def local_share(
    touched: Collection[Touched],
    on: Callable[[Touched], Whereabouts],
    interleaved: Collection[int] = (),
    homes: Mapping[int, int] | None = None,
) -> float:
    """Expected share of local accesses; -1: not known.

    on: where the threads are, independently of each other; interleaved: nodes over which all memory is spread
    (none: each page is where it was touched first); homes: of each node the one whose memory its threads
    touch first (None: its own).
    """
    groups = list(touched)
    found = [on(group) for group in groups]
    where = [one.shares for one in found]
    total = sum(group.all for group in groups)
    if total <= 0:
        return -1.0
    if interleaved:
        hit = [sum(part.get(node, 0.0) for node in interleaved) / len(interleaved) for part in where]
        return sum(group.all * share for group, share in zip(groups, hit, strict=True)) / total
    made = [_memory(part, homes) for part in where]
    local = 0.0
    for group, part, own, one in zip(groups, where, made, found, strict=True):
        stayed = sum(share for node, share in part.items() if homes is None or homes[node] == node)
        local += group.own * (one.stays * stayed + (1 - one.stays) * _together(part, own))
        local += sum(share * _together(part, made[other]) for other, share in group.others)
    return local / total


def _memory(where: Mapping[int, float], homes: Mapping[int, int] | None) -> Mapping[int, float]:
    """How likely what a thread touches first is on each node."""
    if homes is None:
        return where
    found: dict[int, float] = {}
    for node, share in where.items():
        found[homes[node]] = found.get(homes[node], 0.0) + share
    return found


def _together(one: Mapping[int, float], other: Mapping[int, float]) -> float:
    """How likely two threads are on the same node."""
    return sum(share * other.get(node, 0.0) for node, share in one.items())
