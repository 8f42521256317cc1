"""Instructions and last-level misses of threads in an interval: counted, or estimated where they are not."""

from typing import NamedTuple

import numpy as np

from numaplan.launcher.online.arithmetic import groups_of
from numaplan.launcher.online.observation import Floats, Ints
from numaplan.launcher.online.samples import Table
from numaplan.profiler.live_samples import LiveSamples

LINES_PER_PAGE = 64.0
INSTRUCTIONS_PER_NS = 1.0


class Counts(NamedTuple):
    """(T,) each; zeros where neither counted nor estimated. counted: they are no estimates."""

    instructions: Floats
    misses: Floats
    counted: bool


def count_events(tids: Ints, samples: LiveSamples, fresh: Table, ran_ns: Ints, estimate: bool) -> Counts:
    """Of threads with these ids.

    estimate: where instructions are not counted, one for each ns that a thread ran; where samples do not tell
    of misses either, one for each cache line of each page that it was seen to touch.
    """
    rows = rows_of(tids, np.argsort(tids), fresh.tid)
    ours = fresh.missed & (rows >= 0)
    misses = np.bincount(rows[ours], fresh.weight[ours], len(tids)).astype(np.float64)
    if samples.instructions:
        counted = dict(samples.instructions)
        return Counts(np.array([counted.get(tid, 0.0) for tid in tids.tolist()]), misses, True)
    if not estimate:
        return Counts(np.zeros(len(tids)), np.zeros(len(tids)), False)
    if not ours.any():
        known, count = rows >= 0, max(1, len(tids))
        _, page = groups_of(fresh.page[known])
        pairs, _ = groups_of(page * count + rows[known])
        misses = np.bincount(pairs % count, minlength=len(tids)).astype(np.float64) * LINES_PER_PAGE
    return Counts(ran_ns.astype(np.float64) * INSTRUCTIONS_PER_NS, misses, False)


def rows_of(tids: Ints, order: Ints, wanted: Ints) -> Ints:
    """The row of each wanted tid, -1 where there is none; order: argsort of tids."""
    if not len(tids):
        return np.full(len(wanted), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(tids, wanted, sorter=order), len(tids) - 1)
    rows: Ints = np.where(tids[order[at]] == wanted, order[at], -1)
    return rows
