"""Who of a team uses what of one region, by one recording."""

import msgspec
import numpy as np

from ..threads.problem import Floats, Nodes

CLUSTERED = 2.0  # times as often as by chance, that two accesses to a page may be of one member
SURE = 3.0  # standard errors that this must be off, besides


class Use(msgspec.Struct, frozen=True):
    """Of a region of `size` bytes by a team of `team`: (R,) where in it (0..1), page, member, accesses."""

    size: int
    team: int
    at: Floats
    page: Nodes
    member: Nodes
    made: Floats

    @property
    def by_member(self) -> Floats:
        """(team,) accesses of each."""
        return np.bincount(self.member, self.made, self.team).astype(np.float64)

    @property
    def alike(self) -> bool:
        """Whether all use all pages: two accesses to a page are hardly more often of one member than any two.

        Samples tell as well as counts, if there are pages with two.
        """
        pages = _sums(self.page, self.made)
        pairs = float(_pairs(pages).sum())
        if pairs <= 0:
            return True
        of_one = float(_pairs(_sums(self.page * self.team + self.member, self.made)).sum()) / pairs
        share = self.by_member / float(self.made.sum())
        chance = float((share**2).sum())
        return of_one <= CLUSTERED * chance + SURE * float(np.sqrt(chance / (pairs / 2)))


def _sums(keys: Nodes, values: Floats) -> Floats:
    """The sums of values with the same key."""
    place = np.unique(keys, return_inverse=True)[1]
    return np.bincount(place, values).astype(np.float64)


def _pairs(counts: Floats) -> Floats:
    """How many pairs there are of so many."""
    return np.maximum(counts * (counts - 1), 0.0)
