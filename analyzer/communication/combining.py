"""Combines several ways of counting communication in one matrix, and says how far it can be trusted."""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

ROUNDING = 1e-9  # correlations that come of the order in which is summed: such halves do not agree at all
FLAT = 0.05  # spread over mean below which differences between entries are not followed

Matrix = NDArray[np.float64]


class Layer(msgspec.Struct, frozen=True):
    """One way of counting: (groups, N, N) symmetric counts and how reliable they are (0..1)."""

    name: str
    groups: Matrix
    reliability: float

    @property
    def total(self) -> Matrix:
        """(N, N) counts of all groups."""
        answer: Matrix = self.groups.sum(axis=0)
        return answer


class Communication(msgspec.Struct, frozen=True):
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


def layer_of(name: str, directed: NDArray[np.uint32] | Matrix) -> Layer:
    """A layer of (groups, N, N) counts [one, other], symmetrised, with the agreement of its halves."""
    counts = directed.astype(np.float64)
    counts += directed.transpose(0, 2, 1)
    return Layer(name, counts, split_half(counts[0::2].sum(axis=0), counts[1::2].sum(axis=0)))


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
    found = float(np.clip(np.corrcoef(one, other)[0, 1], 0.0, 1.0))
    return found if found > ROUNDING else 0.0


def combine(layers: Sequence[Layer]) -> Communication:
    """The layers in one matrix: each divided by the spread of its entries, times the part of that spread that
    is not chance (the root of its reliability). Spread and not sum, because a layer that is nearly flat
    tells little for its many counts.

    Where no layer's halves agree all count the same. The result is scaled to the events of the layer that
    has most.
    """
    threads = layers[0].groups.shape[1]
    sums = np.array([layer.groups.sum() for layer in layers])
    if not sums.any():
        empty = np.zeros((threads, threads))
        return Communication(empty, empty.copy(), 0.0, 0, {layer.name: 0.0 for layer in layers})
    reliable = np.sqrt([layer.reliability for layer in layers])
    weights = (reliable if reliable.any() else (sums > 0).astype(float)) * sums / _spreads(layers)
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
        confidence=_confidence(_correlations([layer.total for layer in layers]), weights, groups),
        events=int(events),
        weights={layer.name: float(weight) for layer, weight in zip(layers, weights, strict=True)},
    )


def _spreads(layers: Sequence[Layer]) -> Matrix:
    """(L,) standard deviation of each layer's entries, at least a share of their mean; 1 where empty."""
    upper = np.triu_indices(layers[0].groups.shape[1], 1)
    entries = [layer.total[upper] for layer in layers]
    spreads = [max(float(values.std()), FLAT * float(values.mean())) for values in entries]
    return np.array([spread or 1.0 for spread in spreads])


def _standard_error(layers: Sequence[Layer], weights: Matrix, total: float) -> Matrix:
    """(N, N) from the scatter of the events between parts of the run, which serve as other samples of it.

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


def _correlations(matrices: Sequence[Matrix]) -> Matrix:
    """(L, L) correlations of matrices over their pairs, clipped to 0..1; 0 where one is flat."""
    upper = np.triu_indices(len(matrices[0]), 1)
    values: Matrix = np.array([matrix[upper] for matrix in matrices])
    values -= values.mean(axis=1, keepdims=True) if values.shape[1] else 0.0
    length = np.linalg.norm(values, axis=1, keepdims=True)
    unit = np.divide(values, length, out=np.zeros_like(values), where=length > 0)
    answer: Matrix = np.clip(unit @ unit.T, 0.0, 1.0)
    return answer


def _confidence(agreement: Matrix, weights: Matrix, groups: Matrix) -> float:
    """How far the matrix can be believed: how well its halves agree, times how well its layers do."""
    if groups.shape[1] == 2:
        return 1.0
    halves = split_half(groups[0::2].sum(axis=0), groups[1::2].sum(axis=0))
    # Half of the samples agree with the other half by `halves`; all of them with as many others by more.
    noise = 2 * halves / (1 + halves)
    return float(np.sqrt(weights @ agreement @ weights) * noise)
