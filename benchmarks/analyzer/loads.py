"""How right the load of each thread is on real codes: accesses and misses at 1/1000 against all of them."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numaplan.analyzer import access_load_vector, access_timeline, divide_phases, expected_misses

SLICES = 1000
DRAWS = 400
MISSED = 2  # the level from which the traces' cache model calls an access a miss

Vector = NDArray[np.float64]


def load_accuracy(folder: Path) -> dict[str, dict[str, float]]:
    """For each development trace the correlation over threads with the exact counts.

    accesses: Eq. 3's vector of all samples; misses counted, misses expected: of the samples that missed, as
    they are and by `expected_misses`; chance: of exact misses with a count of one in a thousand of them.
    """
    return {path.stem: _judge(dict(np.load(path))) for path in sorted(folder.glob("*.npz"))}


def _judge(data: dict[str, NDArray[Any]]) -> dict[str, float]:
    accesses, misses = (data["loads"] + data["stores"]).astype(float), data["l2_misses"].astype(float)
    thread, missed, threads = data["thread"], data["level"] >= MISSED, len(accesses)
    width = int(data["accesses"]) // SLICES
    line = access_timeline(data["time"], thread, threads=threads, slice_ns=width)
    slices = len(line.per_thread)
    place = (data["time"][missed].astype(np.int64) - line.start_ns) // line.slice_ns
    cells = np.bincount(place * threads + thread[missed], minlength=slices * threads).astype(float)
    rare = cells.reshape(slices, threads)
    draws = np.random.default_rng(0).poisson(misses / float(data["period"]), (DRAWS, threads))
    return {
        "accesses": _r(access_load_vector(line.per_thread, divide_phases(line.smoothed)), accesses),
        "misses counted": _r(rare.sum(axis=0), misses),
        "misses expected": _r(expected_misses(rare, line.per_thread).total, misses),
        "chance": float(np.mean([_r(draw, misses) for draw in draws])),
        "spread": float(misses.std() / misses.mean()),
    }


def _r(found: Vector, exact: Vector) -> float:
    return float(np.corrcoef(found, exact)[0, 1]) if np.ptp(found) else 0.0
