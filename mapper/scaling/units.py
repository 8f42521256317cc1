"""How the members of a team use memory that is cut into units: parts of a region, or regions in a row.

The k-th unit is the k-th member's, in some order; others next to it may use its borders. What one unit sees
of its member and of those next to it is the mean over all of them, which holds for any number of members.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from ..threads.problem import Floats, Nodes
from .orders import ORDERS, places

BINS = 8  # of a unit
NEAR = 2  # places away that are told apart
TURNS = (1, 2, 3, 4)  # how often the members take their turn in one region
OWN = 0.3  # of the accesses, that who has a unit must make at least
BY_CHANCE = 2.0  # times as many as by chance
TOLD = 0.65  # of the accesses, that must be as units say
BETTER = 0.02  # of them, that a special order or further turns must tell more


class Units(msgspec.Struct, frozen=True):
    """turns: how often the members have a unit one after another; short: how many units are missing at the
    end; order: of the members' places; told: how much of the accesses is as units say; own: (2 NEAR + 1,)
    share of the accesses by distance of a member's place from the unit's; use: (2 NEAR + 1, BINS) accesses by
    that and part of the unit, of the mean unit; rest: by all others, of the mean unit and member."""

    turns: int
    short: int
    order: str
    told: float
    own: Floats
    use: Floats
    rest: float

    def count(self, n: int) -> int:
        """How many units n members have."""
        return self.turns * n - self.short

    def owners(self, n: int) -> Nodes:
        """(units,) the member whose each unit is, of n."""
        order = np.argsort(places(self.order, n))
        found: Nodes = order[np.arange(self.count(n)) % n]
        return found

    def of(self, n: int) -> tuple[Nodes, Nodes, Nodes, Floats]:
        """(R,) unit, part of it, member, and accesses, with n members."""
        units, order = self.count(n), np.argsort(places(self.order, n))
        unit, shift, part = np.meshgrid(
            np.arange(units), np.arange(-NEAR, NEAR + 1), np.arange(BINS), indexing="ij"
        )
        place, use = unit % n + shift, np.broadcast_to(self.use, unit.shape)
        kept = (place >= 0) & (place < n) & (use > 0)
        found = [unit[kept], part[kept], order[place[kept]], use[kept]]
        if self.rest > 0:
            each, member = np.repeat(np.arange(units), n), np.tile(np.arange(n), units)
            extra = each, np.full(len(each), BINS // 2), member, np.full(len(each), self.rest)
            found = [np.concatenate(both) for both in zip(found, extra, strict=True)]
        return found[0], found[1], found[2], found[3]


def units_of_region(at: Floats, member: Nodes, made: Floats, team: int) -> Units | None:
    """Of one region: (R,) where in it (0..1) which member of the team makes how many accesses."""
    tried = [
        units_of_count(at, member, made, team, team * turns, order) for turns in TURNS for order in ORDERS
    ]
    return _best([one for one in tried if one.own.argmax() == NEAR], team)


def units_of_count(at: Floats, member: Nodes, made: Floats, team: int, count: int, order: str) -> Units:
    """Of one region as if it were cut into so many units; the rest as for units_of_region."""
    inside = at * count
    unit = np.minimum(inside.astype(np.int64), count - 1)
    return _units(unit, inside - unit, member, made, team, *in_turns(count, team), order)


def fits(units: Units) -> bool:
    """Whether who has a unit uses it most, and it says most of who makes the accesses: alone, where some
    members (the ends of a pipeline) hardly use theirs, or with those next to it."""
    own = float(units.own[NEAR])
    return units.own.argmax() == NEAR and own >= OWN and max(own, units.told) >= TOLD


def units_in_row(unit: Nodes, at: Floats, member: Nodes, made: Floats, count: int, team: int) -> Units | None:
    """Of `count` regions in a row: (R,) in which one, where, which member makes how many accesses."""
    turns = in_turns(count, team)
    return _best([_units(unit, at, member, made, team, *turns, order) for order in ORDERS], team)


def in_turns(count: int, team: int) -> tuple[int, int]:
    """How often a team takes turns to have so many units, and how many it misses the last time."""
    turns = -(-count // team)
    return turns, turns * team - count


def _best(tried: Sequence[Units], team: int) -> Units | None:
    """The one that says most of who makes the accesses, plain ones first; None where none says enough."""
    best: Units | None = None
    for one in tried:
        if best is None or one.told > best.told + BETTER:
            best = one
    if best is None or best.told < TOLD or _together(best.own) < max(OWN, BY_CHANCE / team):
        return None
    return best


def _together(own: Floats) -> float:
    """The share of who has most, with those next to it on one side: two may share what is between them."""
    return float((own[:-1] + own[1:]).max()) if own.argmax() != NEAR else float(own[NEAR])


def _units(
    unit: Nodes, at: Floats, member: Nodes, made: Floats, team: int, turns: int, short: int, order: str
) -> Units:
    place, count, total = places(order, team)[member], turns * team - short, float(made.sum()) or 1.0
    away = place - unit % team
    part = np.clip((at * BINS).astype(np.int64), 0, BINS - 1)
    use, near = np.zeros((2 * NEAR + 1, BINS)), abs(away) <= NEAR
    np.add.at(use, (away[near] + NEAR, part[near]), made[near])
    own = use.sum(axis=1) / total
    there = np.arange(count) % team + np.arange(-NEAR, NEAR + 1)[:, None]
    use /= np.maximum(((there >= 0) & (there < team)).sum(axis=1), 1)[:, None]
    rest = float(made[~near].sum()) / max(count * team, 1)  # every member's beyond the near ones alike
    found = np.zeros((count, team))
    np.add.at(found, (unit, place), made)
    expected = np.full(found.shape, rest)
    for step in range(-NEAR, NEAR + 1):
        kept = np.flatnonzero((there[step + NEAR] >= 0) & (there[step + NEAR] < team))
        expected[kept, there[step + NEAR][kept]] += use[step + NEAR].sum()
    told = float(np.minimum(found, expected).sum()) / total
    return Units(turns, short, order, told, own, use, rest)


def in_a_row(counts: Sequence[int], teams: Sequence[int]) -> bool:
    """Whether so many regions of one place in the code are units of the teams of several recordings."""
    found = {in_turns(count, team) for count, team in zip(counts, teams, strict=True)}
    return len(found) == 1 and next(iter(found))[1] <= 2 and len(set(counts)) > 1
