"""How well a pattern predicts what it was not fitted to."""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from ..threads.problem import Floats, Nodes
from ..workload.workload import Workload
from .carry import Carried, Pair
from .features import features
from .pattern import Pattern, find_pattern
from .team import among

ENOUGH = 0.9  # below that a pattern is not used without being asked to
FEWEST = 4  # members, below which hardly any pattern can be told from another
FLAT = 0.25  # deviation of the pairs, in means, below which all are alike but for noise
AS_GOOD = 0.01  # of the variance, that another pattern may explain less and still be possible
AS_PLAIN = 0.003  # that its features may cost more, and it is as likely
OTHER = 0.9  # correlation, below which two matrices mean different plans
NOTHING = 0.1  # of the communication in common, below which one plan is useless where the other is right
UNEXPLAINED = 0.01  # of the communication that was counted, and is no noise, from which it is said
MOSTLY = 0.5  # of the communication among members, below which that with others counts, too


class LeftOut(msgspec.Struct, frozen=True):
    """threads: the count that was left out; correlation: of the predicted with the recorded matrix, pairs of
    threads (Pearson); overlap: share of the communication that is between the threads that were predicted;
    alone: the quality where the left-out recording does not decide between patterns that the others show
    alike either."""

    threads: int
    correlation: float
    overlap: float
    flat: bool
    alone: float = 1.0

    @property
    def quality(self) -> float:
        """The correlation; where all pairs are alike, and it would be of noise, the overlap."""
        return self.overlap if self.flat else self.correlation


class OtherOne(msgspec.Struct, frozen=True):
    """A pattern that explains the recordings as well and means another matrix for the wanted count.

    agreement: how far that correlates; common: share of the communication that is between the same threads;
    as_plain: whether it is as likely: needs no rarer features, and the same one most in all recordings.
    """

    features: tuple[str, ...]
    agreement: float
    common: float
    as_plain: bool


class Quality(msgspec.Struct, frozen=True):
    """left_out: each count predicted from the others; other: what the recordings may mean as well;
    unexplained: share of the largest recording's communication that the pattern has between other threads;
    0 where it is little, or may be noise."""

    left_out: tuple[LeftOut, ...]
    other: OtherOne | None = None
    unexplained: float = 0.0

    @property
    def agreement(self) -> float:
        """How far the other matrix correlates; 1: there is no other."""
        return self.other.agreement if self.other else 1.0

    @property
    def value(self) -> float:
        """The worst: to predict few threads from many is easy, and would hide that the opposite fails."""
        return min(one.quality for one in self.telling)

    @property
    def telling(self) -> tuple[LeftOut, ...]:
        """What was left out and has pairs enough to tell; all where nothing has."""
        return tuple(one for one in self.left_out if one.threads >= FEWEST) or self.left_out

    @property
    def alone(self) -> LeftOut | None:
        """What the others predict badly, at worst, unless ties are decided by what is to be predicted."""
        decided = [one for one in self.telling if one.alone < ENOUGH <= one.quality]
        return min(decided, key=lambda one: one.alone, default=None)

    @property
    def few(self) -> bool:
        """Whether all but one count are of too few members."""
        return len({one.threads for one in self.left_out if one.threads >= FEWEST}) < 2

    @property
    def open(self) -> bool:
        """Whether another pattern is as likely, by which the plan would be useless."""
        return self.other is not None and self.other.as_plain and self.other.common < NOTHING

    @property
    def enough(self) -> bool:
        """Whether to plan by it."""
        return self.value >= ENOUGH and not self.few and not self.open


def team_matrices(pairs: Sequence[Pair]) -> dict[int, Floats]:
    """(n, n) what the members exchange by their number, ascending: the mean of recordings with the same."""
    found: dict[int, list[Floats]] = {}
    for workload, team in pairs:
        comm = among(workload, team)
        found.setdefault(len(team), []).append(comm / (float(comm.sum()) or 1.0))
    return {n: np.mean(found[n], axis=0) for n in sorted(found)}


def measure_quality(pairs: Sequence[Pair], pattern: Pattern, wanted: int) -> Quality:
    """The quality of a pattern that was found in recordings of at least two numbers of threads."""
    found = [one for left in team_matrices(pairs) for one in _left_out(pairs, pattern, left)]
    return Quality(tuple(found), _other(pairs, pattern, wanted), _unexplained(pairs, pattern))


def _unexplained(pairs: Sequence[Pair], pattern: Pattern) -> float:
    """How much of it the pattern does not have: a second feature may show in one pair of few threads only,
    which is too few to tell it by, and in many pairs of more threads."""
    found = []
    for workload, team in pairs:
        if len(team) == len(pairs[-1][1]) and workload.use is not None and workload.use.exact:
            comm, every = among(workload, team), float(np.asarray(workload.comm).sum())
            missing = np.maximum(comm - float(comm.sum()) * pattern.matrix(len(team)), 0.0)
            found.append(float(missing.sum()) / (every or 1.0))
    least = min(found, default=0.0)
    return least if least >= UNEXPLAINED else 0.0


def _left_out(pairs: Sequence[Pair], pattern: Pattern, left: int) -> Iterator[LeftOut]:
    """Each recording of a count, predicted from the others: with their ties decided by all, and without."""
    others = [pair for pair in pairs if len(pair[1]) != left]
    matrices = list(team_matrices(others).values())
    decided, alone = (
        Carried(others, find_pattern(matrices, known=known), left) for known in (pattern.features, ())
    )
    predicted = decided.matrix("comm"), alone.matrix("comm")
    for workload, team in pairs:
        if len(team) == left:
            comm = _in_order_of(decided.paths, workload)
            counted = _counted(comm, decided.members)
            one, without = (_compared(matrix[counted], comm[counted], left) for matrix in predicted)
            yield replace(one, alone=without.quality)


def _counted(comm: Floats, members: Nodes) -> tuple[Nodes, ...]:
    """The rows and columns that count: a thread beside the team says nothing of the members' pattern, but
    where most of the communication is with such threads it is what is predicted."""
    among = float(comm[np.ix_(members, members)].sum())
    rows = members if among >= MOSTLY * float(comm.sum()) else np.arange(len(comm))
    return np.ix_(rows, rows)


def _in_order_of(paths: Sequence[str], workload: Workload) -> Floats:
    """(N, N) the communication of threads with these creation paths; of those that are not there, none."""
    number = {path: place for place, (_, path) in enumerate(workload.threads)}
    rows = [number.get(path, -1) for path in paths]
    comm = np.pad(np.asarray(workload.comm), (0, 1))
    return comm[np.ix_(rows, rows)]


def _other(pairs: Sequence[Pair], pattern: Pattern, wanted: int) -> OtherOne | None:
    """A pattern without the strongest feature, if it explains as much and predicts something else."""
    shares, matrices = pattern.shares(wanted), list(team_matrices(pairs).values())
    kinds = {feature.name: feature.kind for feature in features()}
    carried = Carried(pairs, pattern, wanted)
    planned = carried.matrix("comm")
    counted = _counted(planned, carried.members)
    for name in sorted(shares, key=lambda name: -shares[name])[:2]:
        if kinds[name] == "all-to-all":
            continue
        found = find_pattern(matrices, without=name)
        if len(found.features) > len(pattern.features) or found.explained < pattern.explained - AS_GOOD:
            continue
        matrix = Carried(pairs, found, wanted).matrix("comm")
        both = _compared(matrix[counted], planned[counted], wanted)
        if both.quality < OTHER:
            as_plain = _price(found) <= _price(pattern) + AS_PLAIN and found.steady
            return OtherOne(found.features, both.quality, both.overlap, as_plain)
    return None


def _price(pattern: Pattern) -> float:
    """What its features cost: less plain ones more."""
    return sum(feature.price for feature in features() if feature.name in pattern.features)


def _compared(predicted: Floats, comm: Floats, members: int) -> LeftOut:
    upper = np.triu_indices(len(comm), 1)
    one, other = (matrix[upper] / (matrix[upper].sum() or 1.0) for matrix in (predicted, comm))
    overlap = float(np.minimum(one, other).sum())
    varies = bool(np.ptp(one) > 0 and np.ptp(other) > 0)
    correlation = float(np.corrcoef(one, other)[0, 1]) if varies else 0.0
    return LeftOut(members, correlation, overlap, _flat(one) and _flat(other))


def _flat(pairs: Floats) -> bool:
    return bool(pairs.std() <= FLAT * pairs.mean())
