"""Misses of the last cache by thread, more precise than the few samples that missed.

One access in a hundred or thousand misses, so a thread has tens of sampled misses and their number is chance
by a tenth or more. Its accesses are known far better, and in a stretch of time most threads do alike: the
accesses of each thread times the rate at which all threads miss then predict its misses. Three such
predictions, from longer and shorter stretches, are averaged by how near they come to the counts, beyond what
is chance, and each thread's count is drawn to that mean as far as threads differ no more than by chance
(empirical Bayes for Poisson counts, moments after Clayton and Kaldor 1987). There are no parameters.
"""

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

STRETCHES = (1, 20, 200)  # of equally many accesses
NEGLIGIBLE_ERROR = 1e-6  # squared relative error below which predictions are equally good

Vector = NDArray[np.float64]


class ExpectedMisses(msgspec.Struct, frozen=True):
    """What threads are expected to have missed: a share of what was counted, and of what their accesses say.

    missed, accesses: (S, N) samples of each thread in each slice; counted: (N,) 0..1, how far the thread's
    own count is followed; rate: (S,) misses an access in each slice.
    """

    missed: Vector
    accesses: Vector
    counted: Vector
    rate: Vector

    def between(self, start: int, end: int) -> Vector:
        """(N,) misses of each thread in the slices [start, end)."""
        predicted = self.rate[start:end] @ self.accesses[start:end]
        answer: Vector = self.counted * self.missed[start:end].sum(axis=0) + (1 - self.counted) * predicted
        return answer

    @property
    def total(self) -> Vector:
        """(N,) misses of each thread in the whole run."""
        return self.between(0, len(self.rate))


def expected_misses(missed: ArrayLike, accesses: ArrayLike, scale: float = 1.0) -> ExpectedMisses:
    """What the samples of misses and of accesses say together.

    missed, accesses: (S, N) in the same slices of time; scale: what a sample of a miss counts in them.
    Where there are no accesses to go by, the counts stand as they are.
    """
    hits, all_of_them = np.asarray(missed, np.float64), np.asarray(accesses, np.float64)
    slices, threads = hits.shape
    count = hits.sum(axis=0) / scale
    if not count.any() or not all_of_them.any():
        return ExpectedMisses(hits, all_of_them, np.ones(threads), np.zeros(slices))
    rate, prior = np.zeros(slices), np.zeros(threads)
    found = [_prediction(hits, all_of_them, number, scale) for number in STRETCHES]
    trust = np.array([1 / (_excess(count, one) + own + NEGLIGIBLE_ERROR) for _, one, own in found])
    for share, (rates, predicted, _) in zip(trust / trust.sum(), found, strict=True):
        rate += share * rates
        prior += share * predicted
    differ = _excess(count, prior)
    counted = differ * prior / (differ * prior + 1)
    return ExpectedMisses(hits, all_of_them, np.where(prior > 0, counted, 1.0), rate)


def _prediction(hits: Vector, accesses: Vector, stretches: int, scale: float) -> tuple[Vector, Vector, float]:
    """(S,) rates and (N,) sampled misses that one rate a stretch predicts, and their own squared error."""
    amount = accesses.sum(axis=1)
    middle = (np.cumsum(amount) - amount / 2) / amount.sum()
    place = np.minimum((middle * stretches).astype(np.int64), stretches - 1)
    starts = np.flatnonzero(np.diff(place, prepend=-1))
    number = np.repeat(np.arange(len(starts)), np.diff([*starts.tolist(), len(place)]))
    used = np.add.reduceat(accesses, starts, axis=0) / scale
    sums = used.sum(axis=1)
    rates = np.divide(
        np.add.reduceat(hits.sum(axis=1), starts) / scale, sums, out=np.zeros_like(sums), where=sums > 0
    )
    predicted = rates @ used
    rates *= float(hits.sum()) / scale / float(predicted.sum() or 1.0)
    predicted = rates @ used
    return rates[number], predicted, _sampling_error(used, rates, predicted)


def _sampling_error(used: Vector, rates: Vector, predicted: Vector) -> float:
    """Squared relative error of a prediction by the chance in its accesses and rates, mean of the threads."""
    mean = predicted / np.maximum(used.sum(axis=0), 1.0)
    of_accesses = (used * (rates[:, None] - mean) ** 2).sum(axis=0)
    share = np.divide(rates, used.sum(axis=1), out=np.zeros_like(rates), where=rates > 0)
    # One rate for all misses only sets their sum, which no thread's share depends on.
    of_rates = np.maximum(share @ used**2 - predicted**2 / float(predicted.sum() or 1.0), 0.0)
    there = predicted > 0
    return float(((of_accesses + of_rates)[there] / predicted[there] ** 2).mean()) if there.any() else 1.0


def _excess(count: Vector, predicted: Vector) -> float:
    """Squared relative error of a prediction of counts beyond the chance in the counts, at least 0."""
    scatter = float(((count - predicted) ** 2 - predicted).sum())
    return max(0.0, scatter / float((predicted**2).sum() or 1.0))
