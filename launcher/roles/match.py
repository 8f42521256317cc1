"""Which running thread plays which role of the plan: by the memory that both use and share."""

from dataclasses import dataclass

import numpy as np

from numaplan.mapper import Floats, Ints, assign

MARGIN = 0.02  # a match must fit better than the order of creation by so much of the whole
SWAPPED = 256  # threads up to which exchanges of two refine a match
SWEEPS = 4


@dataclass(frozen=True)
class Match:
    """(T,) the running thread for each role; fit: of the threads as they are, and matched, at most 1."""

    threads: Ints
    fit_before: float
    fit: float


def load_matching(by_communication: bool) -> None:
    """Load what matching needs; by memory alone it needs little."""
    from numaplan.analyzer import communication_matrix, match_threads  # noqa: F401

    if by_communication:
        import scipy.optimize  # noqa: F401


def match_roles(
    use_by_role: Floats,
    use_by_thread: Floats,
    comm_by_role: Floats | None = None,
    comm_by_thread: Floats | None = None,
) -> Match:
    """Match threads to roles.

    use_by_role, use_by_thread: (T, F) how much each uses each piece of memory; comm_by_role, comm_by_thread:
    (T, T) their communication, where both are known. The fit is the mean cosine of their uses and, with
    communication, that of the matrices (quadratic assignment: linear start, then exchanges).
    """
    count = len(use_by_thread)
    alike = _unit_rows(use_by_role) @ _unit_rows(use_by_thread).T / max(count, 1)
    one, other = _unit(comm_by_role, count), _unit(comm_by_thread, count)
    if not (one.any() and other.any()):
        one = other = np.zeros((count, count))
    weight = 0.5 if one.any() else 0.0
    identity = np.arange(count)
    best, reached = identity, _fit(alike, one, other, weight, identity)
    before = reached
    for start in _starts(alike, one, other):
        found = _exchange(alike, one, other, weight, start) if count <= SWAPPED else start
        fit = _fit(alike, one, other, weight, found)
        if fit > reached:
            best, reached = found, fit
    if reached < before + MARGIN:
        best, reached = identity, before
    return Match(best, before, reached)


def _starts(alike: Floats, one: Floats, other: Floats) -> list[Ints]:
    starts = [assign(-alike)]
    if one.any():
        from numaplan.analyzer import match_threads

        starts.append(match_threads(one, other))
    return starts


def _fit(alike: Floats, one: Floats, other: Floats, weight: float, threads: Ints) -> float:
    use = alike[np.arange(len(threads)), threads].sum()
    return float((1 - weight) * use + weight * (one * other[np.ix_(threads, threads)]).sum())


def _exchange(alike: Floats, one: Floats, other: Floats, weight: float, threads: Ints) -> Ints:
    """Exchange two threads wherever that fits better, until it does nowhere."""
    threads = threads.copy()
    reached = _fit(alike, one, other, weight, threads)
    for _ in range(SWEEPS):
        last = reached
        for a in range(len(threads)):
            for b in range(a):
                threads[[a, b]] = threads[[b, a]]
                fit = _fit(alike, one, other, weight, threads)
                if fit > reached + 1e-12:
                    reached = fit
                else:
                    threads[[a, b]] = threads[[b, a]]
        if reached == last:
            break
    return threads


def _unit_rows(matrix: Floats) -> Floats:
    return np.asarray(matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-300))


def _unit(matrix: Floats | None, count: int) -> Floats:
    if matrix is None or not matrix.any():
        return np.zeros((count, count))
    return np.asarray(matrix / np.linalg.norm(matrix))
