"""Makes one matrix of what was counted in blocks of several kinds, and says how far it can be trusted."""

from collections.abc import Sequence
from itertools import combinations

import msgspec
import numpy as np
from numpy.typing import NDArray

ROUNDING = 1e-9  # correlations that come of the order in which is summed: such halves do not agree at all
UNRELIABLE = 1e-3  # weight of a layer whose halves do not agree at all

Matrix = NDArray[np.float64]


class Layer(msgspec.Struct, frozen=True):
    """What was counted in blocks of one kind, symmetric.

    events: (groups, N, N) by time; transfers: (groups, N, N) what they are thought to stand for, by memory,
    in any unit; total: (N, N) the same of all groups, and of blocks that begin elsewhere.
    """

    name: str
    events: Matrix
    transfers: Matrix
    total: Matrix


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


def both_ways(counts: NDArray[np.uint32] | Matrix) -> Matrix:
    """(groups, N, N) counts [one, other], symmetrised."""
    answer: Matrix = counts.astype(np.float64)
    answer += counts.transpose(0, 2, 1)
    return answer


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
    """The transfers of all layers, each scaled to the events of the layer that has most, and weighted.

    A layer weighs as much as its events are reliable: where samples are few, those of small blocks, or of
    large ones, may be chance.
    """
    threads = layers[0].transfers.shape[1]
    sums = np.array([layer.total.sum() for layer in layers])
    if not sums.any():
        empty = np.zeros((threads, threads))
        return Communication(empty, empty.copy(), 0.0, 0, {layer.name: 0.0 for layer in layers})
    weights: Matrix = (sums > 0) * np.array([_reliability(layer.events) + UNRELIABLE for layer in layers])
    weights /= weights.sum()
    events = max(layer.events.sum() for layer in layers) / 2
    matrix: Matrix = np.zeros((threads, threads))
    # Of blocks that begin elsewhere a group would have what another one has, and all would seem to agree.
    groups: Matrix = np.zeros_like(layers[0].transfers)
    for weight, layer, total in zip(weights, layers, sums, strict=True):
        if total:
            matrix += weight * 2 * events / total * layer.total
            groups += weight / max(float(layer.transfers.sum()), 1e-300) * layer.transfers
    return Communication(
        matrix=matrix,
        standard_error=_standard_error(layers, weights, float(matrix.sum())),
        confidence=_confidence(
            _correlations([layer.transfers.sum(axis=0) for layer in layers]), weights, groups
        ),
        events=int(events),
        weights={layer.name: float(weight) for layer, weight in zip(layers, weights, strict=True)},
    )


def _reliability(groups: Matrix) -> float:
    """How well half of the groups agree with the others, 0..1: the mean of all ways to halve them."""
    count, total = len(groups), groups.sum(axis=0)
    halves = (groups[[0, *others]].sum(axis=0) for others in combinations(range(1, count), count // 2 - 1))
    return _whole_agreement(float(np.mean([split_half(half, total - half) for half in halves])))


def _whole_agreement(halves: float) -> float:
    """How well all samples would agree with as many others, as half of them do by `halves` with the rest.

    After Spearman and Brown.
    """
    return 2 * halves / (1 + halves)


def _standard_error(layers: Sequence[Layer], weights: Matrix, total: float) -> Matrix:
    """(N, N) from the scatter of the events between parts of the run, which serve as other samples of it.

    Transfers are grouped by memory, whose scatter is the program's own unevenness, so they do not take part.
    """
    parts: Matrix = np.zeros_like(layers[0].events)
    for weight, layer in zip(weights, layers, strict=True):
        events = float(layer.events.sum())
        if events > 0:
            parts += weight / events * layer.events
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
    return float(np.sqrt(weights @ agreement @ weights) * _whole_agreement(halves))
