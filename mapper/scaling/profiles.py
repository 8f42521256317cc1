"""What each member of a team does, carried over to another number of them.

A vector of a team may depend on a member's place in its order (the ends of a pipeline), on the number alone
(even and odd ones), or on neither. Taken is what predicts the recordings from each other best.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..threads.problem import Floats, Nodes
from .orders import places

WORTH = 0.9  # of the error that a plainer rule makes, that another one must stay below


def carried(vectors: Mapping[int, Floats], n: int, order: str) -> Floats:
    """(n,) the vector of n members with mean 1, of those of other numbers; order: of their places."""
    known = {m: vector / (float(vector.mean()) or 1.0) for m, vector in vectors.items()}
    best, least = _RULES[0], np.inf
    for rule in _RULES:
        error = _error(rule, known, order)
        if error < WORTH * least:
            best, least = rule, error
    largest = max(known)
    found = best(known[largest], n, order)
    answer: Floats = found / (float(found.mean()) or 1.0)
    return answer


Rule = Callable[[Floats, int, str], Floats]


def _error(rule: Rule, known: Mapping[int, Floats], order: str) -> float:
    """How far the largest recording is off what the others say."""
    largest = max(known)
    others = [m for m in known if m != largest] or [largest]
    return float(np.mean([np.abs(rule(known[m], largest, order) - known[largest]).mean() for m in others]))


def _alike(vector: Floats, n: int, _order: str) -> Floats:
    return np.full(n, float(vector.mean()))


def _ends(vector: Floats, n: int, order: str) -> Floats:
    """The first and the last differ from those in between."""
    at, inner = np.argsort(places(order, len(vector))), vector.mean()
    if len(vector) > 2:
        inner = vector[at[1:-1]].mean()
    found = np.full(n, float(inner))
    own = np.argsort(places(order, n))
    found[own[0]], found[own[-1]] = vector[at[0]], vector[at[-1]]
    return found


def _by_share(vector: Floats, n: int, order: str) -> Floats:
    """By how far along in the order it is."""
    sorted_by_place = vector[np.argsort(places(order, len(vector)))]
    answer: Floats = sorted_by_place[source(np.arange(n), n, len(vector))][places(order, n)]
    return answer


def _parity(vector: Floats, n: int, order: str) -> Floats:
    """Even places and odd ones."""
    sorted_by_place = vector[np.argsort(places(order, len(vector)))]
    both = [float(sorted_by_place[part::2].mean()) for part in (0, 1)]
    answer: Floats = np.where(places(order, n) % 2 == 0, *both)
    return answer


_RULES: Sequence[Rule] = (_alike, _ends, _parity, _by_share)


def source(place: Nodes, n: int, m: int) -> Nodes:
    """Which of m places those of n stand for; the ends stand for the ends."""
    found = np.floor((place + 0.5) * m / n).astype(np.int64)
    return np.where(place == n - 1, m - 1, np.where(place == 0, 0, np.clip(found, 0, m - 1)))
