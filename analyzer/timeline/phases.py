"""Phases of accesses over time, and the load vector weighted by them ([CMLB], Algorithm 1, Eq. 2-3)."""

from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from numaplan.common import UsageError

MIN_WIDTH = 100
LOW_SHARE = 0.05

Vector = NDArray[np.float64]


class Phase(msgspec.Struct, frozen=True):
    """Slices [start, end) of a timeline; weight: mean accesses a slice (Eq. 2); loads: (N,) accesses."""

    start: int
    end: int
    weight: float
    loads: Vector


def divide_phases(
    amount: ArrayLike, min_width: int = MIN_WIDTH, *, complete: bool = True
) -> list[tuple[int, int]]:
    """Algorithm 1: half-open ranges of slices, each ending where the amount has come down to a low value.

    amount: (S,) accesses of all threads in each slice, without outliers (`Timeline.smoothed`). The low value
    is the mean of the lowest 5 %, of at least one slice.
    Slips of the print that are mended here: the loop runs to right < len(s) (the print reads one past the
    end). A border slice ends one phase and opens the next one, as printed (s[left:right+1], left = right).
    What follows the last border is lost in print; here it is a phase if it is at least
    `min_width` wide or the only one, else part of the last phase (complete=False drops it as printed).
    Raises UsageError for a width below 1 or values that are not finite.
    """
    values = np.asarray(amount, np.float64)
    if min_width < 1 or values.ndim != 1 or not np.isfinite(values).all():
        raise UsageError(f"amounts of shape {values.shape}, width {min_width}", "give finite values")
    if not len(values):
        return []
    count = max(1, int(len(values) * LOW_SHARE))
    low = float(np.sort(values)[:count].mean())
    phases: list[tuple[int, int]] = []
    left = 0
    # Low slices only; the comparison allows for the rounding of the mean of equal values.
    for right in np.flatnonzero(values <= low + 1e-12 * abs(low)).tolist():
        if right - left >= min_width:
            phases.append((left, right + 1))
            left = right
    if complete:
        _close_last_phase(phases, left, len(values), min_width)
    return phases


def _close_last_phase(phases: list[tuple[int, int]], left: int, end: int, min_width: int) -> None:
    if phases and phases[-1][1] == end:
        return
    if not phases or end - left >= min_width:
        phases.append((left, end))
    else:
        phases[-1] = (phases[-1][0], end)


def describe_phases(
    per_thread: ArrayLike,
    ranges: list[tuple[int, int]],
    loads: Callable[[int, int], Vector] | None = None,
) -> list[Phase]:
    """Weight and load vector of each phase; per_thread: (S, N) accesses.

    loads: (N,) accesses in slices [start, end), where they are better known than by adding up the slices.
    """
    cells = np.asarray(per_thread, np.float64)
    found = []
    for start, end in ranges:
        counted = cells[start:end].sum(axis=0)
        weight = float(counted.sum()) / max(1, end - start)
        found.append(Phase(start, end, weight, counted if loads is None else loads(start, end)))
    return found


def access_load_vector(
    per_thread: ArrayLike,
    ranges: list[tuple[int, int]],
    loads: Callable[[int, int], Vector] | None = None,
) -> Vector:
    """(N,) Eq. 3: the sum over phases of weight times load vector (accesses squared a slice).

    per_thread: (S, N) accesses of each thread in each slice; ranges: from `divide_phases`; loads: as above.
    """
    cells = np.asarray(per_thread, np.float64)
    vector: Vector = np.zeros(cells.shape[1])
    for phase in describe_phases(cells, ranges, loads):
        vector += phase.weight * phase.loads
    return vector


def scaled_loads(vector: Vector, accesses: Vector) -> Vector:
    """A load vector in accesses: scaled so that it sums up to `accesses` (zero where there are none)."""
    total = float(vector.sum())
    return vector * (float(accesses.sum()) / total) if total > 0 else np.zeros_like(vector)
