"""The pattern behind communication matrices of several thread counts, and the matrix of another count.

Few features are chosen, so that with weights of each count they explain all matrices; the weights follow the
count as a power of it. Plain features are preferred to special ones that explain hardly more.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..threads.problem import Floats
from .features import Feature, features
from .orders import IN_ORDER

MOST = 6  # features
WORTH = 0.01  # of what there is to explain, that one more feature must add
CHANCE = 12.0  # times a pair's share of what is left, that the best of so many features explains by chance
EXPLAINED = 0.999
FLAT = 0.06  # of the matrix, that may be noise if all pairs are alike
KEPT = 0.01  # that a feature loses against one that all recordings together show
STEEPEST = 1.0  # how much faster a weight may grow than where recordings do not tell, as a power
REACH = 0.02  # of the communication, below which a weight is not followed


class Pattern(msgspec.Struct, frozen=True):
    """features: by name; weights: of each, by thread count, of a pair where all pairs sum to 1; explained: of
    the matrices' variance, in the mean."""

    features: tuple[str, ...]
    weights: dict[int, tuple[float, ...]]
    explained: float

    def matrix(self, n: int) -> Floats:
        """(n, n) the communication of n threads, of sum 1."""
        answer = np.zeros((n, n))
        for name, weight in zip(self.features, self.at(n), strict=True):
            answer += weight * _NAMED[name].pairs(n)
        total = float(answer.sum())
        return answer / total if total > 0 else answer

    def at(self, n: int) -> tuple[float, ...]:
        """The weight of a pair of each feature with n threads, as far as they can be followed."""
        return tuple(self._at(number, n) for number in range(len(self.features)))

    def shares(self, n: int) -> dict[str, float]:
        """How much of the communication each feature is, with n threads."""
        parts = {
            name: weight * float(_NAMED[name].pairs(n).sum())
            for name, weight in zip(self.features, self.at(n), strict=True)
        }
        total = sum(parts.values()) or 1.0
        return {name: part / total for name, part in parts.items()}

    @property
    def steady(self) -> bool:
        """Whether the same feature is most of the communication in all recordings."""
        first = {
            int(np.argmax(np.array(weights) * [_column(_NAMED[name], m).sum() for name in self.features]))
            for m, weights in self.weights.items()
        }
        return len(first) == 1

    def _at(self, number: int, n: int) -> float:
        feature = _NAMED[self.features[number]]
        counts = [m for m in self.weights if _column(feature, m).any()]
        total = {m: self._largest(m) for m in counts}
        seen = [(m, self.weights[m][number] / total[m]) for m in counts if total[m] > 0]
        if not seen:
            return 0.0
        there = [(m, weight) for m, weight in seen if weight > REACH]
        growth = feature.growth - self._leader_growth()
        if len(there) > 1 and len(there) == len(seen):
            m, weight = np.log(np.array(there)).T
            found = float(np.polyfit(m, weight, 1)[0])
            growth = float(np.clip(found, growth - STEEPEST, growth + STEEPEST))
        values = [weight * (n / m) ** growth for m, weight in seen]
        near = np.array([m for m, _ in seen], np.float64)  # larger counts are nearer to what is asked for
        return float(np.average(values, weights=near))

    def _largest(self, m: int) -> float:
        return max(self.weights[m], default=0.0)

    def _leader_growth(self) -> float:
        sums = [
            sum(weights[at] / (max(weights) or 1.0) for weights in self.weights.values())
            for at in range(len(self.features))
        ]
        return _NAMED[self.features[int(np.argmax(sums))]].growth

    @property
    def order(self) -> str:
        """The order that most of the features go by, by weight."""
        last = max(self.weights)
        shares = self.shares(last)
        found: dict[str, float] = {}
        for name, share in shares.items():
            if _NAMED[name].kind not in ("all-to-all", "hub"):
                found[_NAMED[name].order] = found.get(_NAMED[name].order, 0.0) + share
        return max(found, key=lambda order: found[order]) if found else IN_ORDER

    def kinds(self, n: int) -> dict[str, float]:
        """What sorts of pattern it is, with their shares of the communication, the largest first."""
        found: dict[str, float] = {}
        for name, share in self.shares(n).items():
            found[_NAMED[name].kind] = found.get(_NAMED[name].kind, 0.0) + share
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))


_NAMED = {feature.name: feature for feature in features()}


@lru_cache(maxsize=2048)
def _upper(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rows, columns = np.triu_indices(n, 1)
    return rows, columns


@lru_cache(maxsize=1 << 14)
def _column(feature: Feature, n: int) -> Floats:
    """(pairs,) a feature's pairs above the diagonal."""
    answer: Floats = feature.pairs(n)[_upper(n)].astype(np.float64)
    return answer


@lru_cache(maxsize=16)
def _columns(n: int) -> tuple[Floats, Floats]:
    """(F, pairs) all features, and (F, F) how many pairs two of them share."""
    columns = np.stack([_column(feature, n) for feature in features()])
    return columns, columns @ columns.T


class _Matrix:
    """One matrix as the search needs it: its pairs, and every feature's."""

    def __init__(self, comm: Floats) -> None:
        self.n = len(comm)
        total = float(comm.sum())
        values = comm[_upper(self.n)] / (total or 1.0)
        self.values = values
        columns, self.gram = _columns(self.n)
        self.right = columns @ values
        self.square = float(values @ values)
        spread = float(((values - values.mean()) ** 2).sum()) if len(values) else 0.0
        # What is nearly the same for all pairs has nothing but noise to explain.
        self.spread = max(spread, FLAT * self.square, 1e-300)

    def explained(self, chosen: Sequence[int], more: NDArray[np.int64]) -> Floats:
        """(M,) of the variance with one more feature each, at least 0; those with weights below 0 count 0."""
        sets = np.column_stack([np.tile(np.array(chosen, np.int64), (len(more), 1)), more])
        weights = self._weights(sets)
        right = self.right[sets]
        left = self.square - 2 * (weights * right).sum(axis=1)
        left += np.einsum("ij,ijk,ik->i", weights, self.gram[sets[:, :, None], sets[:, None, :]], weights)
        answer: Floats = np.where((weights < -1e-9).any(axis=1), 0.0, np.maximum(1 - left / self.spread, 0.0))
        return answer

    def weights(self, chosen: Sequence[int]) -> tuple[float, ...]:
        found = self._weights(np.array([chosen], np.int64))[0]
        return tuple(float(f"{max(weight, 0.0):.6g}") for weight in found)

    def _weights(self, sets: NDArray[np.int64]) -> Floats:
        gram = self.gram[sets[:, :, None], sets[:, None, :]]
        ridge = (
            1e-9 * np.eye(sets.shape[1]) * np.maximum(np.trace(gram, axis1=1, axis2=2), 1e-6)[:, None, None]
        )
        answer: Floats = np.linalg.solve(gram + ridge, self.right[sets][..., None])[..., 0]
        return answer


def find_pattern(matrices: Iterable[Floats], known: Collection[str] = (), without: str = "") -> Pattern:
    """The pattern of square matrices of one program with different numbers of threads.

    known: features that further recordings show: what these cannot tell apart is taken to be one of them;
    without: a feature that may not be the first.
    """
    every = features()
    data = [_Matrix(comm) for comm in matrices]
    price = np.array([one.price + KEPT * (bool(known) and one.name not in known) for one in every])
    price[[one.name == without for one in every]] = 9.0
    chosen: list[int] = []
    reached = 0.0
    pairs = sum(len(one.values) for one in data)
    while len(chosen) < MOST and reached < EXPLAINED:
        found = _explained(data, chosen) - price
        best = int(found.argmax())
        worth = max(WORTH, CHANCE * (1 - reached) / pairs) if chosen else WORTH
        if found[best] + price[best] < reached + worth:
            break
        chosen, reached = [*chosen, best], float(found[best] + price[best])
        chosen, reached = _exchanged(data, chosen, reached, price)
    chosen = chosen or [0]
    if not known and not without:
        chosen = _plainer(data, chosen, price)
    return Pattern(
        features=tuple(every[number].name for number in chosen),
        weights={one.n: one.weights(chosen) for one in data},
        explained=reached,
    )


def _plainer(data: Sequence[_Matrix], chosen: list[int], price: Floats) -> list[int]:
    """The same without grids that show one direction only, where what is no grid has the very same pairs."""
    every = features()
    grids = [every[number].grid for number in chosen]
    return [
        _no_grid(data, number, price) if grid and grids.count(grid) == 1 else number
        for number, grid in zip(chosen, grids, strict=True)
    ]


def _no_grid(data: Sequence[_Matrix], number: int, price: Floats) -> int:
    """The plainest feature that is none, and as good; `number` where there is none."""
    every = features()
    same = [
        other
        for other, feature in enumerate(every)
        if feature.kind != "grid"
        and feature.order == every[number].order
        and all(np.array_equal(_column(feature, one.n), _column(every[number], one.n)) for one in data)
    ]
    return min(same, key=lambda other: float(price[other]), default=number)


def _explained(data: Sequence[_Matrix], chosen: Sequence[int]) -> Floats:
    """(F,) in the mean over the matrices, with one more feature each."""
    rest = np.setdiff1d(np.arange(len(features())), chosen)
    answer = np.zeros(len(features()))
    answer[rest] = np.mean([one.explained(chosen, rest) for one in data], axis=0)
    return answer


def _exchanged(
    data: Sequence[_Matrix], chosen: list[int], reached: float, price: Floats
) -> tuple[list[int], float]:
    """The same with features exchanged for others that explain more, one at a time."""
    for _ in range(2):
        before = chosen[:]
        for place in range(len(chosen)):
            others = chosen[:place] + chosen[place + 1 :]
            found = _explained(data, others) - price
            best = int(found.argmax())
            if found[best] > reached - price[chosen[place]] + 1e-4:
                chosen, reached = [*others[:place], best, *others[place:]], float(found[best] + price[best])
        if chosen == before:
            break
    return chosen, reached
