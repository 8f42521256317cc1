"""How well a pattern predicts what it was not fitted to."""

from collections.abc import Sequence

import msgspec
import numpy as np

from ..threads.problem import Floats
from ..workload.workload import Workload
from .carry import Carried, Pair
from .features import features
from .pattern import Pattern, find_pattern
from .team import among

ENOUGH = 0.9  # below that a pattern is not used without being asked to
FLAT = 0.25  # deviation of the pairs, in means, below which all are alike but for noise
AS_GOOD = 0.01  # of the variance, that another pattern may explain less and still be possible
OTHER = 0.9  # correlation, below which two matrices mean different plans


class LeftOut(msgspec.Struct, frozen=True):
    """threads: the count that was left out; correlation: of the predicted with the recorded matrix, pairs of
    threads (Pearson); overlap: share of the communication that is between the threads that were predicted."""

    threads: int
    correlation: float
    overlap: float
    flat: bool

    @property
    def quality(self) -> float:
        """The correlation; where all pairs are alike, and it would be of noise, the overlap."""
        return self.overlap if self.flat else self.correlation


class Quality(msgspec.Struct, frozen=True):
    """left_out: each count predicted from the others; other: a pattern that explains the recordings as well
    and means another matrix for the wanted count, `agreement`: how far that correlates (1: there is none)."""

    left_out: tuple[LeftOut, ...]
    other: tuple[str, ...] = ()
    agreement: float = 1.0

    @property
    def value(self) -> float:
        """The mean over the counts, each by the number of its threads."""
        weights = [one.threads for one in self.left_out]
        return float(np.average([one.quality for one in self.left_out], weights=weights))

    @property
    def enough(self) -> bool:
        """Whether to plan by it."""
        return self.value >= ENOUGH


def team_matrices(pairs: Sequence[Pair]) -> dict[int, Floats]:
    """(n, n) what the members exchange by their number, ascending: the mean of recordings with the same."""
    found: dict[int, list[Floats]] = {}
    for workload, team in pairs:
        comm = among(workload, team)
        found.setdefault(len(team), []).append(comm / (float(comm.sum()) or 1.0))
    return {n: np.mean(found[n], axis=0) for n in sorted(found)}


def measure_quality(pairs: Sequence[Pair], pattern: Pattern, wanted: int) -> Quality:
    """The quality of a pattern that was found in recordings of at least two numbers of threads."""
    matrices = team_matrices(pairs)
    found = []
    for left in matrices:
        others = [pair for pair in pairs if len(pair[1]) != left]
        own = find_pattern(team_matrices(others).values(), known=pattern.features)
        carried = Carried(others, own, left)
        predicted = carried.matrix("comm")
        for workload, team in pairs:
            if len(team) == left:
                found.append(_compared(predicted, _in_order_of(carried.paths, workload), left))
    other, agreement = _other(pairs, pattern, wanted)
    return Quality(tuple(found), other, agreement)


def _in_order_of(paths: Sequence[str], workload: Workload) -> Floats:
    """(N, N) the communication of threads with these creation paths; of those that are not there, none."""
    number = {path: place for place, (_, path) in enumerate(workload.threads)}
    rows = [number.get(path, -1) for path in paths]
    comm = np.pad(np.asarray(workload.comm), (0, 1))
    return comm[np.ix_(rows, rows)]


def _other(pairs: Sequence[Pair], pattern: Pattern, wanted: int) -> tuple[tuple[str, ...], float]:
    """A pattern without the strongest feature, if it explains as much and predicts something else."""
    shares, matrices = pattern.shares(wanted), list(team_matrices(pairs).values())
    planned = Carried(pairs, pattern, wanted).matrix("comm")
    kinds = {feature.name: feature.kind for feature in features()}
    for name in sorted(shares, key=lambda name: -shares[name])[:2]:
        if kinds[name] == "all-to-all":
            continue
        found = find_pattern(matrices, without=name)
        if len(found.features) > len(pattern.features) or found.explained < pattern.explained - AS_GOOD:
            continue
        agreement = _compared(Carried(pairs, found, wanted).matrix("comm"), planned, wanted).quality
        if agreement < OTHER:
            return found.features, agreement
    return (), 1.0


def _compared(predicted: Floats, comm: Floats, members: int) -> LeftOut:
    upper = np.triu_indices(len(comm), 1)
    one, other = (matrix[upper] / (matrix[upper].sum() or 1.0) for matrix in (predicted, comm))
    overlap = float(np.minimum(one, other).sum())
    varies = bool(np.ptp(one) > 0 and np.ptp(other) > 0)
    correlation = float(np.corrcoef(one, other)[0, 1]) if varies else 0.0
    return LeftOut(members, correlation, overlap, _flat(one) and _flat(other))


def _flat(pairs: Floats) -> bool:
    return bool(pairs.std() <= FLAT * pairs.mean())
