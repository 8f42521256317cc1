"""The communication matrix of a stream of samples, with its uncertainty; no parameter to set.

At 1/1000 sampling two samples seldom hit one cache line, so events are counted over blocks of several sizes
(2^6 to 2^16 bytes): transfers, and pairs of threads in a block once a run and once a window. Which of these
layers suit a program the samples tell themselves: a layer counts by how well its two halves agree, and by how
well it agrees with the other layers. `benchmarks/communication.py` measures what that gains.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from numaplan.analyzer.blocks import MAX_THREADS, TABLE_BYTES, BlockCounter
from numaplan.common import UsageError

SHIFTS = (6, 8, 10, 12, 14, 16)
LINE_SHIFT = 6
FIRST_PAIRED = 8  # from this size on, pairs of threads that share a block are counted too
EVENT_WINDOW = 512  # samples in a row that belong to one part of the run
PAIR_WINDOW = 256  # samples a thread in which a pair in a block counts once
ROUNDS = 3
FLAT = 0.05  # spread over mean below which differences between entries are not followed
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
    Memory stays bounded whatever comes: beyond `table_bytes` for one size (0: 64 MiB) a share of its blocks
    is followed.
    """

    def __init__(self, threads: int, *, exact: bool = False, table_bytes: int = 0) -> None:
        if not 1 <= threads <= MAX_THREADS:
            raise UsageError(f"{threads} threads", f"1 to {MAX_THREADS} can be counted")
        self.threads = threads
        self._exact = exact
        self._shifts = (LINE_SHIFT,) if exact else SHIFTS
        self._paired = [not exact and shift >= FIRST_PAIRED for shift in self._shifts]
        self._counter = BlockCounter(
            threads,
            self._shifts,
            self._paired,
            groups=8 if threads <= MANY_THREADS else 2,
            event_window=EVENT_WINDOW,
            pair_window=PAIR_WINDOW * threads,
            table_bytes=table_bytes or TABLE_BYTES,
        )

    def add(self, thread: ArrayLike, addr: ArrayLike, is_write: ArrayLike) -> None:
        """Count the next samples: equally long, in order of time, going on where the last call ended."""
        self._counter.add(
            np.ascontiguousarray(addr, np.uint64),
            check_threads(thread, self.threads),
            np.ascontiguousarray(np.asarray(is_write, bool)).view(np.uint8),
        )

    def layers(self) -> list[Layer]:
        """Every way of counting, with its reliability."""
        counts: list[tuple[str, Matrix]] = []
        for scale, (shift, paired) in enumerate(zip(self._shifts, self._paired, strict=True)):
            size = f"{1 << shift} B"
            counts.append((f"events, {size}", self._counter.events(scale)))
            if paired:
                counts.append((f"pairs, {size}", self._counter.block_pairs(scale)))
                counts.append((f"pairs in windows, {size}", self._counter.windowed_pairs(scale)))
        return [_layer(name, directed) for name, directed in counts]

    def result(self) -> Communication:
        """The matrix of all samples so far."""
        found = combine(self.layers())
        if not self._exact:
            return found
        error = np.zeros_like(found.matrix)
        return replace(found, standard_error=error, confidence=float(found.events > 0))


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
    """The layers in one matrix: each divided by the spread of its entries and weighted by how far it can be
    believed. Spread and not sum, because a layer that is nearly flat tells little for its many counts.

    The weight is the layer's reliability times its agreement with the others (their mean correlation,
    weighted the same way, in three rounds): noise lowers the first; a block size that mixes neighbouring
    data, or one hot block, lowers the second. Where that leaves nothing all layers count the same. The
    result is scaled to the events of the finest layer that has any.
    """
    threads = layers[0].groups.shape[1]
    sums = np.array([layer.groups.sum() for layer in layers])
    if not sums.any():
        empty = np.zeros((threads, threads))
        return Communication(empty, empty.copy(), 0.0, 0, {layer.name: 0.0 for layer in layers})
    agreement = _correlations([layer.total for layer in layers])
    reliability = np.array([layer.reliability for layer in layers])
    weights = _consensus(agreement, reliability)
    if not weights.any():
        weights = (sums > 0).astype(float)
    weights = weights * sums / _spreads(layers)
    weights /= weights.sum()
    events = max(layer.groups.sum() for layer in layers if layer.name.startswith("events")) / 2
    shares = np.divide(weights * 2 * events, sums, out=np.zeros_like(sums), where=sums > 0)
    groups: Matrix = np.zeros_like(layers[0].groups)
    for share, layer in zip(shares, layers, strict=True):
        groups += share * layer.groups
    matrix: Matrix = groups.sum(axis=0)
    return Communication(
        matrix=matrix,
        standard_error=_standard_error(layers, weights, float(matrix.sum())),
        confidence=_confidence(agreement, weights, groups),
        events=int(events),
        weights={layer.name: float(weight) for layer, weight in zip(layers, weights, strict=True)},
    )


def _spreads(layers: list[Layer]) -> Matrix:
    """(L,) standard deviation of each layer's entries, at least a share of their mean; 1 where empty."""
    upper = np.triu_indices(layers[0].groups.shape[1], 1)
    entries = [layer.total[upper] for layer in layers]
    spreads = [max(float(values.std()), FLAT * float(values.mean())) for values in entries]
    return np.array([spread or 1.0 for spread in spreads])


def _standard_error(layers: list[Layer], weights: Matrix, total: float) -> Matrix:
    """(N, N) from the scatter of the events between parts of the run, which stand for other samples of it.

    Pairs are split by block, whose scatter is the program's own unevenness, so they do not take part.
    """
    chosen = [index for index, layer in enumerate(layers) if layer.name.startswith("events")]
    parts: Matrix = np.zeros_like(layers[0].groups)
    for index in chosen:
        events = float(layers[index].groups.sum())
        if events > 0:
            parts += weights[index] / events * layers[index].groups
    scale = total / float(parts.sum()) if parts.any() else 0.0
    scatter: Matrix = parts.std(axis=0, ddof=1) * np.sqrt(len(parts)) * scale
    return scatter


def _correlations(matrices: list[Matrix]) -> Matrix:
    """(L, L) correlations of matrices over their pairs, clipped to 0..1; 0 where one is flat."""
    upper = np.triu_indices(len(matrices[0]), 1)
    values: Matrix = np.array([matrix[upper] for matrix in matrices])
    values -= values.mean(axis=1, keepdims=True) if values.shape[1] else 0.0
    length = np.linalg.norm(values, axis=1, keepdims=True)
    unit = np.divide(values, length, out=np.zeros_like(values), where=length > 0)
    answer: Matrix = np.clip(unit @ unit.T, 0.0, 1.0)
    return answer


def _consensus(agreement: Matrix, reliability: Matrix) -> Matrix:
    weights = reliability
    for _ in range(ROUNDS):
        if not weights.any():
            break
        weights = np.asarray(reliability * (agreement @ weights) / weights.sum())
    return weights


def _confidence(agreement: Matrix, weights: Matrix, groups: Matrix) -> float:
    """How far the matrix can be believed: how well its halves agree, times how well its layers do."""
    if groups.shape[1] == 2:
        return 1.0
    halves = split_half(groups[0::2].sum(axis=0), groups[1::2].sum(axis=0))
    # Half of the samples agree with the other half by `halves`; all of them with as many others by more.
    noise = 2 * halves / (1 + halves)
    return float(np.sqrt(weights @ agreement @ weights) * noise)
