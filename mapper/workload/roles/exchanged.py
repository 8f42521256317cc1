"""What is expected of threads of a pool: the mean of what each of them did (lines, values, pairs, pages)."""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from numaplan.analyzer import BY_PAIRS, PageCounts

from ...threads.problem import Floats, Nodes

MOST_ROWS = 1 << 22  # of the page counts, for pools to be expanded in them
GRANULES = 256  # of a region that a pool uses
PAGE = 4096


def exchanged_matrix(matrix: Floats, pools: Sequence[Nodes]) -> Floats:
    """(N, N) what is expected between two threads when those of a pool may be exchanged; diagonal 0."""
    answer = matrix.copy()
    for pool in pools:
        others = np.setdiff1d(np.arange(len(matrix)), pool)
        own = answer[np.ix_(pool, pool)]
        within = float(own.sum() - np.trace(own)) / (len(pool) * (len(pool) - 1))
        answer[np.ix_(pool, others)] = answer[np.ix_(pool, others)].mean(axis=0)
        answer[np.ix_(others, pool)] = answer[np.ix_(others, pool)].mean(axis=1, keepdims=True)
        answer[np.ix_(pool, pool)] = within
    np.fill_diagonal(answer, 0.0)
    return answer


def exchanged_vector(values: Floats, pools: Sequence[Nodes]) -> Floats:
    """(N,) the same of what each thread has."""
    answer = values.copy()
    for pool in pools:
        answer[pool] = answer[pool].mean()
    return answer


def exchanged_pairs(pairs: Floats, pools: Sequence[Nodes], tied: Sequence[int] | Nodes = ()) -> Floats:
    """(N, N) the same of what threads (rows) do with memory that others, or they themselves, touched first:
    what was a thread's own stays its own, whoever it is.

    tied: threads that touch what they touch in every run, as a first thread that sets up memory does.
    """
    answer = exchanged_matrix(pairs, pools) + np.diag(np.diag(pairs))
    for pool in pools:
        free, others = np.setdiff1d(pool, tied), np.setdiff1d(np.arange(len(pairs)), pool)
        own, shared = float(pairs[free, free].sum()), float(pairs[np.ix_(pool, free)].sum())
        if not len(free):
            continue
        answer[np.ix_(pool, free)] = (shared - own) / (len(free) * max(len(pool) - 1, 1))
        answer[free, free] = own / len(free)
        answer[np.ix_(others, free)] = pairs[np.ix_(others, free)].mean(axis=1, keepdims=True)
    for thread in tied:
        users = pairs[:, thread].copy()
        for pool in pools:
            others = pool[pool != thread]
            users[others] = users[others].mean()
        answer[:, thread] = users
    return answer


def exchanged_pages(pages: PageCounts, pools: Sequence[Nodes], made_by: Nodes | None = None) -> PageCounts:
    """The same of pages: what a pool did to a page is an equal part of each of its threads.

    What a thread did before the others started stays its own, and what it does with memory that it allocated:
    that is found by who allocates it. Pages of a region that a pool uses are alike by that: a GRANULES-th of
    the region stands for itself. As it is where there would be too many rows. made_by: (regions,) thread that
    made each, -1: none of these.
    """
    made_by = np.full(len(pages.regions), -1) if made_by is None else made_by
    for pool in pools:
        pages = _exchanged(pages, pool, made_by)
    return pages


def allocators(pages: PageCounts, number: Mapping[tuple[str, str], int]) -> Nodes:
    """(regions,) the thread that made each, -1: none of these; number: of each (process, creation path)."""
    return np.array([number.get((key.process, key.thread), -1) for key in pages.regions], np.int64)


_SUMS, _BEFORE = ("accesses", "writes", "missed"), ("before", "missed_before")


def _exchanged(pages: PageCounts, pool: Nodes, made_by: Nodes) -> PageCounts:
    own = np.isin(pages.thread, pool) & (pages.thread != made_by[pages.region])
    before = sum(part for name in _BEFORE if (part := getattr(pages, name)) is not None)
    begun = own & (np.broadcast_to(before, own.shape) > 0)
    used = np.flatnonzero(own & (pages.accesses > 0))
    phase = np.zeros(len(pages.region), np.int64) if pages.phase is None else pages.phase
    sizes = np.array([key.bytes // PAGE // GRANULES for key in pages.regions], np.int64)
    granule = np.maximum(sizes, 1)[pages.region[used]]
    keys = np.stack([pages.region[used], pages.page[used] // granule * granule, phase[used]])
    cells, cell = np.unique(keys, axis=1, return_inverse=True)
    cell = cell.reshape(-1)
    count, size = cells.shape[1], len(pool)
    if count * size + int((~own | begun).sum()) > MOST_ROWS:
        return pages
    first = np.zeros(count, np.int64)
    first[cell[::-1]] = used[::-1]
    takes = np.not_equal.outer(made_by[cells[0]], pool)  # (cells, threads) of the pool, but who allocated it
    part = 1.0 / takes.sum(axis=1, keepdims=True) * takes
    kept = takes.ravel()

    def joined(name: str) -> Floats | Nodes | None:
        values = getattr(pages, name)
        if values is None:
            return None
        if name == "page":
            shared = np.repeat(cells[1], size)
        elif name == "thread":
            shared = np.tile(pool, count)
        elif name in _SUMS:
            values = np.where(own, 0.0, values)
            shared = (np.bincount(cell, getattr(pages, name)[used], count)[:, None] * part).ravel()
        elif name in _BEFORE:
            shared = np.zeros(count * size)
        else:
            shared = np.repeat(values[first], size)
        return np.concatenate([values[~own | begun], shared[kept]])

    names = ("region", "page", "thread", "toucher", "phase", "first_ns", *_SUMS, *_BEFORE)
    found = {name: joined(name) for name in names}
    order = np.lexsort([found[name] for name in ("thread", "page", "region")])  # type: ignore[arg-type]
    found = {name: None if values is None else values[order] for name, values in found.items()}
    for name in BY_PAIRS:
        if (apart := getattr(pages, name)) is not None:
            found[name] = exchanged_pairs(apart, [pool])
    return replace(pages, **found)
