"""Numbers and names as people read them, and rows of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..analyzed import Analysis
from ..memory.regions import RegionUse

MOST_LABELS = 16  # of an axis


def in_count(value: float) -> str:
    """A count: 950, 12.3 k, 4.56 M."""
    for unit in ("", " k", " M", " G"):
        if abs(value) < 1000:
            return f"{value:.0f}" if not unit else f"{value:.3g}{unit}"
        value /= 1000
    return f"{value:.3g} T"


def in_bytes(value: float) -> str:
    """A size: 96 B, 64 KiB, 1.5 GiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} TiB"


def in_time(ns: float, digits: int = 4) -> str:
    """A time: 250 ns, 3.2 ms, 12.5 s."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if float(f"{abs(ns) / size:.{digits}g}") >= 1:
            return f"{ns / size:.{digits}g} {unit}"
    return f"{ns:.0f} ns"


def rounded(values: NDArray[np.float64]) -> list[Any]:
    """Values with four digits, as the page needs no more."""
    with np.errstate(divide="ignore", invalid="ignore"):
        digits = 3 - np.floor(np.log10(np.where(values > 0, values, 1.0)))
    factor = 10.0**digits
    answer: list[Any] = np.where(values > 0, np.round(values * factor) / factor, values).tolist()
    return answer


def use_cells(use: RegionUse, analysis: Analysis) -> list[str]:
    """A region's size, samples, threads, writers, and the threads that touched it first and use it most."""
    names = analysis.names
    return [
        in_bytes(use.bytes),
        in_count(use.samples),
        str(use.sharers),
        str(use.writers),
        names[use.first_toucher],
        f"{names[use.main_thread]} ({use.main_share:.0%})",
    ]
