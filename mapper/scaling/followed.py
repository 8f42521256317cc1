"""Which parts the members have of a region, by recordings of several numbers of them.

The largest shows whose the parts are. The smaller ones show what follows the number of members: each has as
many parts (arrays in one block), or parts keep their size (chunks dealt in turn), and how many there are
follows the region's. Where they show neither, nobody knows what further members use.
"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from .units import Units, fits, in_turns, units_of_count, units_of_region
from .use import Use

FEWEST = 4  # members, below which any region seems to be used in parts


class Followed(msgspec.Struct, frozen=True):
    """units: of the wanted number of members, None: they have no parts; fixed: parts keep their size;
    contradicted: the recordings show different parts."""

    units: Units | None = None
    fixed: bool = False
    contradicted: bool = False


def followed_units(uses: Sequence[Use], n: int, size: int) -> Followed:
    """The parts of n members in a region of then `size` bytes; uses: of the largest recording last."""
    last, smaller = uses[-1], [one for one in uses[:-1] if one.team >= FEWEST and len(one.made)]
    units = units_of_region(last.at, last.member, last.made, last.team) if len(last.made) else None
    if units is None:
        return Followed()
    if all(_shows(one, units.count(one.team), units.order) for one in smaller):
        return Followed(units)
    part = last.size / units.count(last.team)
    if all(_shows(one, round(one.size / part), units.order) for one in smaller):
        turns, short = in_turns(max(round(size / part), 1), n)
        return Followed(replace(units, turns=turns, short=short), fixed=True)
    return Followed(contradicted=True)


def _shows(use: Use, count: int, order: str) -> bool:
    """Whether a recording shows so many parts."""
    return count > 0 and fits(units_of_count(use.at, use.member, use.made, use.team, count, order))
