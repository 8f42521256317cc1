"""Whether threads keep to their memory through a run, or are exchangeable.

A worker of a pool takes what comes next: what it touched in one part of the run says nothing of what it
touches in another, or in the next run. What tells most is who comes back to memory (returns.py): a thread
with a role to its own part, in a pool anybody (or one of the few that share it, where these exchange lines
with each other and hardly with anybody else). Memory that a thread allocated itself says nothing of that: it
would be its own in a pool, too.

Where nobody comes back, a thread that keeps to those with whom it exchanges lines has a role (partners.py),
and so has one that keeps to its places: each thread's accesses are counted by place in memory in two parts of
its life that alternate, so that both see all phases of the run. What two parts of one thread have in common
beyond what parts of two threads have in common is what is the thread's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.profiler import Trace

from .communication.transfers import transfers_of
from .partners import partners_kept
from .returns import page_returns
from .samples.trace_samples import TraceSamples

if TYPE_CHECKING:
    from scipy.sparse import csr_array

PLACED_KINDS = ("static", "heap", "mmap", "file", "small", "other")
PARTS = 64  # places that a region is divided into
STRETCHES = 16  # of a thread's life; even ones are one part, odd ones the other
FEW = 50  # samples of a thread, below which nothing is said of it
OWN = 0.25  # share of its places that must be its own for a thread to have a role
TEAM = 0.6  # median of them, of threads that share memory and lines with the same few others throughout
HANDS_ON = 0.7  # median of whom they exchange lines with, of threads that hand on anybody's memory
KEPT = 0.4  # the same of whom it exchanges lines with; by chance it is up to a quarter in a pool
MOSTLY = 0.75  # of its accesses to memory that somebody comes back to, where each must come back to its own

Floats = NDArray[np.float64]


class Roles(msgspec.Struct, frozen=True):
    """own: (N,) share 0..1 of where each thread's accesses go that is its own, -1 where too few are seen;
    alike: (N, N) how much of the row's places the column's are; returns: (N,) share 0..1 of its accesses to
    memory that somebody comes back to, where each thread comes back to its part, -1 where too few are seen
    (None: not known); first: (N,) whether a thread is its process's first; partners: (N,) share 0..1 of whom
    it exchanges lines with that is its own, -1 where too few are seen (None: they were not counted);
    together: (N,) as returns, where memory is a part of the few that share it from beginning to end."""

    own: Floats
    alike: Floats
    returns: Floats | None = None
    first: NDArray[np.bool_] | None = None
    partners: Floats | None = None
    together: Floats | None = None

    @property
    def keeps(self) -> NDArray[np.bool_]:
        """(N,) whether a thread has a role; threads of which too little is seen count as having one.

        What a process's first thread does beside the work of a pool is a role, even if it helps with that.
        """
        answer: NDArray[np.bool_] = (self.own < 0) | (self.own >= OWN)
        if self.partners is not None:
            answer |= self.partners >= KEPT
        if self.returns is not None:
            worker = self.returns >= 0
            if self.first is not None:
                worker &= ~(self.first & answer)
            back = (self.returns >= MOSTLY) | self._in_teams(worker & (self.returns < MOSTLY))
            if self.together is not None and self._with_partners():
                back |= self.together >= MOSTLY
            answer = np.where(worker, back, answer)
        return answer

    def _in_teams(self, workers: NDArray[np.bool_]) -> bool:
        """Whether threads of which others come to their memory share it with the same ones all the time, or
        hand on what comes to them (blocks that a pipeline allocates and frees) to the same ones."""
        if self.partners is None or not workers.any():
            return False
        own, partners = (float(np.median(of[workers])) for of in (self.own, self.partners))
        return (own >= TEAM and partners >= TEAM) or partners >= HANDS_ON

    def _with_partners(self) -> bool:
        """Whether threads other than first ones exchange lines with the same ones, as far as it is known."""
        if self.partners is None:
            return False
        others = self.partners >= 0 if self.first is None else (self.partners >= 0) & ~self.first
        return bool(others.any()) and float(np.median(self.partners[others])) >= TEAM


def thread_roles(trace: Trace, samples: TraceSamples, lane: NDArray[np.int64] | None = None) -> Roles:
    """Of a trace, by the regions that hold data; lane: (N,) equal for threads that follow one another."""
    from scipy.sparse import csr_array

    place_of, shift = _places(trace)
    count = samples.threads
    bins = int(place_of.max(initial=0)) + PARTS
    seen, total = csr_array((2 * count, bins)), np.zeros(count)
    for columns in samples.columns():
        np.add.at(total, columns["thread"], 1.0)
    number = np.zeros(count)
    for columns in samples.columns():
        thread, region = columns["thread"], columns["region"]
        order = np.argsort(thread, kind="stable")
        rank = np.empty(len(thread))
        first = np.searchsorted(thread[order], np.arange(count))
        rank[order] = np.arange(len(thread)) - first[thread[order]]
        at = number[thread] + rank
        half = (at * STRETCHES // np.maximum(total[thread], 1.0)).astype(np.int64) % 2
        number += np.bincount(thread, minlength=count)
        known = (
            (region >= 0) & (region < len(place_of)) & (place_of[np.clip(region, 0, len(place_of) - 1)] >= 0)
        )
        own, start = region[known], shift[region[known]]
        offset = (columns["addr"][known].astype(np.int64) - start[:, 0]) // np.maximum(start[:, 1], 1)
        place = place_of[own] + np.clip(offset, 0, PARTS - 1)
        row = half[known] * count + thread[known]
        seen = seen + csr_array((np.ones(len(row)), (row, place)), shape=seen.shape)
    lanes = np.arange(count) if lane is None else lane
    starts = np.zeros(count, bool)
    starts[[row.thread for row in trace.thread_rows if row.path == "0"]] = True
    transfers = transfers_of(trace, samples.regions.process, samples.regions.runtimes)
    own, together = page_returns(trace, samples, lanes)
    return msgspec.structs.replace(
        roles_of(seen[:count], seen[count:]),
        returns=own,
        together=together,
        first=starts,
        partners=partners_kept(transfers, lanes) if transfers else None,
    )


def roles_of(one: csr_array, other: csr_array) -> Roles:
    """Of accesses by place (N, places) in two parts of each thread's life."""
    from scipy.sparse import diags_array

    first, second = (diags_array(1 / np.maximum(part.sum(axis=1), 1.0)) @ part for part in (one, other))
    common = ((first @ second.T + second @ first.T) / 2).toarray()
    same = np.diag(common)
    alike = np.divide(common, same[:, None], out=np.zeros_like(common), where=same[:, None] > 0)
    others = (alike.sum(axis=1) - 1) / max(len(alike) - 1, 1)
    enough = np.minimum(one.sum(axis=1), other.sum(axis=1)) >= FEW / 2
    return Roles(np.where(enough & (same > 0), np.clip(1 - others, 0.0, 1.0), -1.0), np.clip(alike, 0.0, 1.0))


def _places(trace: Trace) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First place of each region (-1: does not count), and its start and bytes a place."""
    size = 1 + max((row.region for row in trace.region_rows), default=-1)
    place, shift = np.full(max(size, 1), -1, np.int64), np.zeros((max(size, 1), 2), np.int64)
    counted = [row for row in trace.region_rows if row.kind in PLACED_KINDS]
    for number, row in enumerate(counted):
        place[row.region] = number * PARTS
        shift[row.region] = row.start_addr, -(-row.bytes // PARTS)
    return place, shift
