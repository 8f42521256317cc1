"""What patterns of communication are made of: for any number of threads, the pairs that a role makes talk.

A feature is a question that each pair of places answers with yes or no. Patterns are weighted sums of few.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .orders import IN_ORDER, ORDERS, REVERSED, places

Pairs = NDArray[np.bool_]
Index = NDArray[np.int64]
# (n, n) whether two places talk, of the rows' and columns' places and their number.
Rule = Callable[[Index, Index, int], Pairs]

SIDES = (2, 3, 4, 8)
DISTANCES = (1, 2, 3, 4)


class Feature(NamedTuple):
    """kind: what sort of pattern it is; price: how much more it must explain than a plainer one; growth: of
    the weight of a pair with the number of threads, as a power of it, where recordings do not tell."""

    name: str
    kind: str
    rule: Rule
    order: str = IN_ORDER
    price: float = 0.0
    growth: float = 0.0

    def pairs(self, n: int) -> Pairs:
        """(n, n) which threads talk: symmetric, nobody with itself."""
        at = places(self.order, n)
        found = self.rule(at[:, None], at[None, :], n) & ~np.eye(n, dtype=bool)
        return found | found.T

    @property
    def grid(self) -> str:
        """The grid that it is one direction of; empty for what is no grid, or all of one."""
        shape, _, way = self.name.partition(": ")
        return f"{shape}, {self.order}" if way.startswith("within ") else ""


@cache
def features() -> tuple[Feature, ...]:
    """All of them, plain ones first."""
    return tuple(_plain()) + tuple(
        one._replace(name=f"{one.name}, {order}", order=order, price=one.price + 0.006)
        for order in ORDERS
        if order not in (IN_ORDER, REVERSED)
        for one in _plain()
        if one.kind in ("neighbours", "groups", "grid") and "from the end" not in one.name
    )


def _plain() -> Iterator[Feature]:
    yield Feature("all with all", "all-to-all", lambda a, b, _: a != b, growth=-1.0)
    yield Feature("the first with all", "hub", lambda a, b, _: (a == 0) | (b == 0))
    yield Feature("the last with all", "hub", lambda a, b, n: (a == n - 1) | (b == n - 1))
    for d in DISTANCES:
        yield Feature(f"distance {d}", "neighbours", _distance(d), price=0.002 * (d - 1))
    for d in DISTANCES:
        yield Feature(f"distance {d} periodic", "neighbours", _periodic(d), price=0.001 * d)
    for d in DISTANCES[:2]:
        yield Feature(f"distance {d} around the end", "neighbours", _around(d), price=0.003)
    for part in (2, 4):
        yield Feature(f"a {_PARTS[part]} of the threads away", "neighbours", _part_away(part), price=0.002)
    for bit in (1, 2, 4):
        yield Feature(f"exclusive or {bit}", "neighbours", _exclusive(bit), price=0.003)
    for size in (2, 3, 4, 5, 6, 8, 16):
        yield Feature(f"groups of {size}", "groups", _groups_of(size), price=0.0015)
    for count in SIDES:
        yield Feature(f"{count} groups", "groups", _groups(count), price=0.002)
        yield Feature(f"{count} groups dealt in turn", "groups", _dealt(count), price=0.003)
        yield Feature(f"{count} stages", "pipeline", _stages(count), price=0.004, growth=-1.0)
        if count > 2:  # what the last stage frees, the first one allocates again
            name = f"{count} stages in a circle"
            yield Feature(name, "pipeline", _stages(count, around=True), price=0.005, growth=-1.0)
    for size in (2, 4, 8):
        yield Feature(f"leaders of groups of {size}", "hub", _leaders(size), price=0.004)
    yield Feature("a tree", "tree", lambda a, b, _: (a == (b - 1) // 2) & (b > 0), price=0.003)
    yield Feature("a binomial tree", "tree", lambda a, b, _: (a == (b & (b - 1))) & (b > 0), price=0.003)
    yield from _grids()


_PARTS = {2: "half", 4: "quarter"}


def _distance(d: int) -> Rule:
    return lambda a, b, _: abs(a - b) == d


def _periodic(d: int) -> Rule:
    return lambda a, b, n: (abs(a - b) == d) | (abs(a - b) == n - d)


def _around(d: int) -> Rule:
    return lambda a, b, n: (abs(a - b) == n - d) & (2 * d < n)


def _part_away(part: int) -> Rule:
    return lambda a, b, n: ((a - b) % n == n // part) & (n >= part)


def _exclusive(bit: int) -> Rule:
    return lambda a, b, _: (a ^ b) == bit


def _groups_of(size: int) -> Rule:
    return lambda a, b, _: a // size == b // size


def _groups(count: int) -> Rule:
    return lambda a, b, n: a * count // n == b * count // n


def _stages(count: int, around: bool = False) -> Rule:
    """All of one stage hand on to all of the next."""
    apart = (1, count - 1) if around else (1,)
    return lambda a, b, n: np.isin(abs(a * count // n - b * count // n), apart)


def _dealt(count: int) -> Rule:
    return lambda a, b, _: a % count == b % count


def _leaders(size: int) -> Rule:
    return lambda a, b, _: (a // size == b // size) & (a % size == 0)


def near_sides(n: int, dimensions: int) -> tuple[int, ...]:
    """The sides of the grid of n places that is nearest to a square or a cube, the longest first."""
    if dimensions == 1:
        return (n,)
    best: tuple[int, ...] = (n, *[1] * (dimensions - 1))
    for side in range(1, n + 1):
        if n % side == 0:
            rest = near_sides(n // side, dimensions - 1)
            found = tuple(sorted((side, *rest), reverse=True))
            best = min(best, found)
    return best


def _row_length(shape: str, n: int) -> int:
    """How long the rows of a grid are."""
    word, _, number = shape.partition(" ")
    if word in ("tall", "wide"):
        return near_sides(n, 2)[word == "tall"]
    side = int(number)
    return side if word == "rows" else max(n // side, 1)


def _grids() -> Iterator[Feature]:
    shapes = {"tall": "a square grid, no wider than high", "wide": "a square grid, no higher than wide"}
    shapes |= {f"rows {side}": f"rows of {side}" for side in SIDES if side > 2}
    shapes |= {f"columns {side}": f"{side} rows" for side in SIDES}
    for shape, title in shapes.items():
        usual = shape in ("tall", "wide")
        for around in (False, True) if usual else ():
            name = f"{title}: four neighbours{', periodic' * around}"
            yield Feature(name, "grid", _four_neighbours(shape, around), price=0.001 + 0.001 * around)
        for way, rule in _WAYS.items():
            price = 0.0008 if usual and way.startswith("within") else 0.004 if usual else 0.008
            yield Feature(f"{title}: {way}", "grid", _on_grid(shape, rule), price=price)
    for reverse in (False, True):
        title = "a cube, short sides first" if reverse else "a cube, long sides first"
        for around in (False, True):
            name = f"{title}: six neighbours{', periodic' * around}"
            yield Feature(name, "grid", _six_neighbours(reverse, around), price=0.0015 + 0.001 * around)
    for axis in range(3):
        for reverse in (False, True):
            title = "a cube, short sides first" if reverse else "a cube, long sides first"
            for around in (False, True):
                name = f"{title}: along side {axis + 1}{' around' * around}"
                yield Feature(name, "grid", _on_cube(axis, reverse, around), price=0.009)


_GridRule = Callable[[Index, Index, Index, Index, int, int], Pairs]
_WAYS: dict[str, _GridRule] = {
    "within rows": lambda r, c, s, d, *_: (r == s) & (abs(c - d) == 1),
    "within columns": lambda r, c, s, d, *_: (c == d) & (abs(r - s) == 1),
    "rows around": lambda r, c, s, d, _, wide: (r == s) & (abs(c - d) == wide - 1) & (wide > 2),
    "columns around": lambda r, c, s, d, high, _: (c == d) & (abs(r - s) == high - 1) & (high > 2),
    "diagonally": lambda r, c, s, d, *_: (abs(r - s) == 1) & (abs(c - d) == 1),
    "all of a row": lambda r, _c, s, *_: r == s,
    "all of a column": lambda _r, c, _s, d, *_: c == d,
}


def _on_grid(shape: str, rule: _GridRule) -> Rule:
    def answer(a: Index, b: Index, n: int) -> Pairs:
        wide = _row_length(shape, n)
        return rule(a // wide, a % wide, b // wide, b % wide, -(-n // wide), wide)

    return answer


def _four_neighbours(shape: str, around: bool) -> Rule:
    rules = [_on_grid(shape, _WAYS[way]) for way in list(_WAYS)[: 4 if around else 2]]
    return _any_of(rules)


def _six_neighbours(reverse: bool, around: bool) -> Rule:
    rules = [
        _on_cube(axis, reverse, at) for axis in range(3) for at in ((False, True) if around else (False,))
    ]
    return _any_of(rules)


def _any_of(rules: list[Rule]) -> Rule:
    def answer(a: Index, b: Index, n: int) -> Pairs:
        found: Pairs = np.any([rule(a, b, n) for rule in rules], axis=0)
        return found

    return answer


def _on_cube(axis: int, reverse: bool, around: bool) -> Rule:
    def answer(a: Index, b: Index, n: int) -> Pairs:
        sides = near_sides(n, 3)[:: -1 if reverse else 1]
        steps = [
            abs(one - other) for one, other in zip(_unpacked(a, sides), _unpacked(b, sides), strict=True)
        ]
        apart = sides[axis] - 1 if around else 1
        same = [step == 0 for place, step in enumerate(steps) if place != axis]
        found: Pairs = (steps[axis] == apart) & same[0] & same[1] & (not around or sides[axis] > 2)
        return found

    return answer


def _unpacked(place: Index, sides: tuple[int, ...]) -> tuple[Index, Index, Index]:
    return place // (sides[1] * sides[2]), place // sides[2] % sides[1], place % sides[2]
