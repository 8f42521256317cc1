"""Pools: threads that are exchangeable, each of which may do in the next run what another did in this one."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from numaplan.analyzer import PageCounts

from ..threads.problem import Floats, Nodes

MOST_ROWS = 1 << 22  # of the page counts, for pools to be expanded in them


def pools_of(threads: Sequence[tuple[str, str]], keeps: Sequence[bool]) -> list[Nodes]:
    """The threads of each pool: those without a role that one thread made, if there are several.

    threads: (process, creation path) of each; keeps: whether it has a role. An OpenMP team works in the
    thread that made the others, too, which is the pool's if it has no role either.
    """
    members: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, ((process, path), has_role) in enumerate(zip(threads, keeps, strict=True)):
        if not has_role:
            members[process, path.rpartition(".")[0]].append(number)
    for number, ((process, path), has_role) in enumerate(zip(threads, keeps, strict=True)):
        if not has_role and (process, path) in members:
            members[process, path].append(number)
            members[process, path.rpartition(".")[0]].remove(number)
    return [np.array(sorted(own)) for own in members.values() if len(own) > 1]


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


def exchanged_pages(pages: PageCounts, pools: Sequence[Nodes]) -> PageCounts:
    """The same of pages: what a pool did to a page is an equal part of each of its threads.

    What a thread did before the others started stays its own. As it is where that would make too many rows.
    """
    for pool in pools:
        pages = _exchanged(pages, pool)
    return pages


_SUMS, _BEFORE = ("accesses", "writes", "missed"), ("before", "missed_before")


def _exchanged(pages: PageCounts, pool: Nodes) -> PageCounts:
    own = np.isin(pages.thread, pool)
    before = sum(part for name in _BEFORE if (part := getattr(pages, name)) is not None)
    begun = own & (np.broadcast_to(before, own.shape) > 0)
    used = np.flatnonzero(own & (pages.accesses > 0))
    phase = np.zeros(len(pages.region), np.int64) if pages.phase is None else pages.phase
    keys = np.stack([pages.region[used], pages.page[used], phase[used]])
    cells, cell = np.unique(keys, axis=1, return_inverse=True)
    cell = cell.reshape(-1)
    count, size = cells.shape[1], len(pool)
    if count * size + int((~own | begun).sum()) > MOST_ROWS:
        return pages
    first = np.zeros(count, np.int64)
    first[cell[::-1]] = used[::-1]

    def joined(name: str) -> Floats | Nodes | None:
        values = getattr(pages, name)
        if values is None:
            return None
        if name == "thread":
            shared = np.tile(pool, count)
        elif name in _SUMS:
            values = np.where(own, 0.0, values)
            shared = np.repeat(np.bincount(cell, getattr(pages, name)[used], count) / size, size)
        elif name in _BEFORE:
            shared = np.zeros(count * size)
        else:
            shared = np.repeat(values[first], size)
        return np.concatenate([values[~own | begun], shared])

    names = ("region", "page", "thread", "toucher", "phase", "first_ns", *_SUMS, *_BEFORE)
    found = {name: joined(name) for name in names}
    order = np.lexsort([found[name] for name in ("thread", "page", "region")])  # type: ignore[arg-type]
    found = {name: None if values is None else values[order] for name, values in found.items()}
    for name in ("elsewhere", "elsewhere_missed"):
        if (apart := getattr(pages, name)) is not None:
            own_part = np.diag(exchanged_vector(np.diag(apart), [pool]))
            found[name] = exchanged_matrix(apart, [pool]) + own_part
    return replace(pages, **found)
