"""The communication matrix of a stream of samples, with its uncertainty; no parameter to set.

At 1/1000 sampling two samples seldom hit one cache line, so events are counted over blocks of several sizes
(2^6 to 2^14 bytes). Which size suits a program is told by the samples themselves: each size's matrix is made
from the even and from the odd windows of the run, and counts by how well the two halves agree.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from numaplan.analyzer.blocks import MAX_THREADS, TABLE_BYTES, BlockCounter
from numaplan.common import UsageError

SHIFTS = (6, 8, 10, 12, 14)
LINE_SHIFT = 6
FIRST_PAIRED = 8  # from this size on, pairs of threads that share a block are counted too, once a block
WINDOW = 2048  # samples in a row that belong to one half
MANY_THREADS = 256  # from here on fewer groups, for memory

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Layer:
    """One way of counting: (groups, N, N) symmetric counts and how reliable they are (0..1)."""

    name: str
    groups: Matrix
    reliability: float

    @property
    def total(self) -> Matrix:
        """(N, N) counts of all groups."""
        answer: Matrix = self.groups.sum(axis=0)
        return answer


@dataclass(frozen=True)
class Communication:
    """What was found out about who communicates with whom.

    matrix: (N, N) symmetric, zero diagonal, in events seen in the samples (all of them where every access was
    recorded); standard_error: (N, N) of each entry, from splitting the samples; confidence: 0..1, how well
    the matrices of two halves of the samples agree; events: how many events were seen at all; weights: share
    of each layer in the matrix, by name.
    """

    matrix: Matrix
    standard_error: Matrix
    confidence: float
    events: int
    weights: dict[str, float]


class CommunicationCounter:
    """Counts communication over samples that come in blocks, in order of time.

    threads: N; exact: every access is in the samples (period 1), so only cache lines are counted, exactly.
    Memory stays below about 1 GB whatever comes: beyond 8 M blocks of one size a share of them is followed.
    """

    def __init__(self, threads: int, *, exact: bool = False, table_bytes: int = TABLE_BYTES) -> None:
        if not 1 <= threads <= MAX_THREADS:
            raise UsageError(f"{threads} threads", f"1 to {MAX_THREADS} can be counted")
        self.threads = threads
        self._shifts = (LINE_SHIFT,) if exact else SHIFTS
        self._paired = [not exact and shift >= FIRST_PAIRED for shift in self._shifts]
        groups = 8 if threads <= MANY_THREADS else 2
        self._counter = BlockCounter(threads, self._shifts, self._paired, groups, table_bytes)
        self._seen = 0

    def add(self, thread: ArrayLike, addr: ArrayLike, is_write: ArrayLike) -> None:
        """Count the next samples: equally long, in order of time, going on where the last call ended."""
        threads = check_threads(thread, self.threads)
        count = len(threads)
        place = np.arange(self._seen, self._seen + count) // WINDOW
        self._counter.add(
            np.ascontiguousarray(addr, np.uint64),
            threads,
            np.ascontiguousarray(np.asarray(is_write, bool)).view(np.uint8),
            (place % self._counter.groups).astype(np.uint8),
        )
        self._seen += count

    def layers(self) -> list[Layer]:
        """Every way of counting, with its reliability."""
        found = []
        for scale, (shift, paired) in enumerate(zip(self._shifts, self._paired, strict=True)):
            found.append(_layer(f"events of {1 << shift} B", self._counter.events(scale)))
            if paired:
                found.append(_layer(f"pairs of {1 << shift} B", self._counter.block_pairs(scale)))
        return found

    def result(self) -> Communication:
        """The matrix of all samples so far."""
        return combine(self.layers())


def check_threads(thread: ArrayLike, threads: int) -> NDArray[np.uint16]:
    """Thread numbers as the counters take them; raises UsageError when one is not in 0..threads-1."""
    given = np.asarray(thread)
    if given.ndim != 1:
        raise UsageError("samples are not a flat array", "give equally long one-dimensional arrays")
    if len(given) and (int(given.min()) < 0 or int(given.max()) >= threads):
        raise UsageError(
            f"a sample's thread is not in 0..{threads - 1}", "give 'threads' or drop those samples"
        )
    return np.ascontiguousarray(given, np.uint16)


def _layer(name: str, directed: Matrix) -> Layer:
    groups = directed + directed.transpose(0, 2, 1)
    return Layer(name, groups, split_half(groups[0::2].sum(axis=0), groups[1::2].sum(axis=0)))


def split_half(first: Matrix, second: Matrix) -> float:
    """Correlation of two (N, N) symmetric matrices over their pairs, clipped to 0..1.

    Flat matrices cannot be correlated: two that are equal and not empty count as 1, others as 0.
    """
    upper = np.triu_indices(len(first), 1)
    one, other = first[upper], second[upper]
    if len(one) == 0 or not one.any() or not other.any():
        return 0.0
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return 1.0 - min(1.0, abs(float(one.sum() - other.sum())) / float(one.sum() + other.sum()))
    return float(np.clip(np.corrcoef(one, other)[0, 1], 0.0, 1.0))


def combine(layers: list[Layer]) -> Communication:
    """The layers in one matrix: each divided by its sum and weighted by its squared reliability.

    The result is scaled to the events of the layer that weighs most. Where nothing is reliable, all layers
    count the same; where there are no events, everything is zero.
    """
    threads = layers[0].groups.shape[1]
    sums = np.array([layer.groups.sum() for layer in layers])
    if not sums.any():
        empty = np.zeros((threads, threads))
        return Communication(empty, empty.copy(), 0.0, 0, {layer.name: 0.0 for layer in layers})
    weights = np.where(sums > 0, np.array([layer.reliability for layer in layers]) ** 2, 0.0)
    if not weights.any():
        weights = (sums > 0).astype(float)
    weights /= weights.sum()
    scale = sums[int(np.argmax(weights))]
    shares = np.divide(weights * scale, sums, out=np.zeros_like(sums), where=sums > 0)
    groups = sum(share * layer.groups for share, layer in zip(shares, layers, strict=True))
    combined: Matrix = np.asarray(groups)
    count = len(combined)
    halves = split_half(combined[0::2].sum(axis=0), combined[1::2].sum(axis=0))
    return Communication(
        matrix=combined.sum(axis=0),
        standard_error=combined.std(axis=0, ddof=1) * np.sqrt(count),
        # Half of the samples agree with the other half by `halves`; all of them with as many others by more.
        confidence=2 * halves / (1 + halves),
        events=int(max(layer.total.sum() for layer in layers) / 2),
        weights={layer.name: float(weight) for layer, weight in zip(layers, weights, strict=True)},
    )
