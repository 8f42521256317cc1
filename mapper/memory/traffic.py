"""Who will access which node's memory: under a plan, and where the kernel would have put the pages."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from numaplan.analyzer import PageCounts
from numaplan.machine import Machine

from ..threads.cost import one_hot
from ..threads.problem import Floats
from .run_table import RunTable

WORDS = 512  # of a page, each written once as it is made
MOST = 0.5  # of all accesses, so that what is known stands for the whole
SHOWN = 5  # samples of that which are expected where not seeing any says something

Ints = NDArray[np.int64]


def planned_traffic(
    stats: PageCounts, tables: Mapping[int, RunTable], node_of: Ints, nodes: int
) -> tuple[Floats, Ints]:
    """(N, K) accesses of each thread to memory of each node, and the home of each row's page.

    tables: by number of the region; node_of: (N,) position of each thread's node. What is not in a table is
    where it was first touched, but stacks, which are with their threads; it does not count when that is not
    known. Homes are -1 where a page has none.
    """
    homes = np.full(len(stats.region), -1)
    traffic = np.zeros((len(node_of), nodes))
    counted = stats.all_accesses.astype(np.float64)
    known = (stats.thread >= 0) & (stats.thread < len(node_of))
    order = np.argsort(stats.region, kind="stable")
    borders = np.searchsorted(stats.region[order], np.arange(len(stats.regions) + 1))
    planned = np.zeros(len(stats.region), dtype=bool)
    for number, table in tables.items():
        rows = order[borders[number] : borders[number + 1]]
        planned[rows] = True
        rows = rows[known[rows]]
        thread = stats.thread[rows]
        if table.interleave:
            made = np.bincount(thread, weights=counted[rows], minlength=len(node_of))
            traffic[:, list(table.interleave)] += made[:, None] / len(table.interleave)
        elif table.next_touch:
            np.add.at(traffic, (thread, _moving_homes(stats, rows, node_of, counted[rows])), counted[rows])
        else:
            homes[rows] = table.homes_of(stats.page[rows])
            np.add.at(traffic, (thread, homes[rows]), counted[rows])
    if stats.toucher is not None:
        toucher = stats.toucher
        rest = known & ~planned & (toucher >= 0) & (toucher < len(node_of))
        np.add.at(traffic, (stats.thread[rest], node_of[toucher[rest]]), counted[rest])
    for apart in (stats.elsewhere, stats.restacked):
        if apart is not None:
            traffic += apart @ one_hot(node_of, nodes)
    return traffic, homes


def touching_pairs(
    stats: PageCounts, counted: NDArray[Any], tables: Mapping[int, RunTable], threads: int
) -> Floats:
    """(N, N) accesses of each thread to memory that each was first to touch, of regions not in the tables.

    counted: (rows,) how many each row stands for.
    """
    answer = np.zeros((threads, threads))
    if stats.toucher is not None:
        placed = np.zeros(len(stats.regions) + 1, dtype=bool)
        placed[list(tables)] = True
        user, toucher = stats.thread, stats.toucher
        rest = (user >= 0) & (user < threads) & (toucher >= 0) & (toucher < threads) & ~placed[stats.region]
        np.add.at(answer, (user[rest], toucher[rest]), counted[rest])
    return answer


def _moving_homes(stats: PageCounts, rows: Ints, node_of: Ints, counted: Floats) -> Ints:
    """(rows,) with next-touch: from team to team a page is on the node that uses it most."""
    assert stats.team is not None
    keys = np.stack([stats.page[rows], stats.team[rows]])
    _, cell = np.unique(keys, axis=1, return_inverse=True)
    cell = cell.reshape(-1)
    uses = np.zeros((int(cell.max(initial=-1)) + 1, int(node_of.max(initial=-1)) + 1))
    np.add.at(uses, (cell, node_of[stats.thread[rows]]), counted)
    answer: Ints = uses.argmax(axis=1)[cell]
    return answer


def node_positions(nodes: ArrayLike, machine: Machine) -> Ints:
    """(N,) where the nodes with these ids are among the machine's."""
    return np.array([machine.index_of_node(node) for node in np.asarray(nodes).tolist()], dtype=np.int64)


def between_nodes(traffic: Floats, node_of: Ints) -> Floats:
    """(K, K) accesses from each node (row) to memory of each, of those of its threads (N, K)."""
    answer: Floats = one_hot(node_of, traffic.shape[1]).T @ traffic
    return answer


def first_touch_traffic(stats: PageCounts, thread_nodes: Sequence[int], machine: Machine) -> Floats | None:
    """Traffic when threads are on these nodes (N,) and the kernel puts pages where they are touched first.

    None when the first touch of pages is not known (see `first_touches`). Pages first touched by a
    thread that is not among the N do not count.
    """
    if stats.toucher is None:
        return None
    node_of = node_positions(thread_nodes, machine)
    touched = msgspec.structs.replace(stats, restacked=None)
    return between_nodes(planned_traffic(touched, {}, node_of, len(machine.nodes))[0], node_of)


def first_touches(stats: PageCounts) -> PageCounts:
    """Where accesses are sampled, what they tell of pages whose first toucher is known.

    Where nothing is seen of a region's initialisation, a page's first sample is taken to show who touched it
    first. It is local by that, and all there is of many a page: it is left out, and what the region has left
    stands for the whole. A region so small that its initialisation was likely missed does not count. Nothing
    is known where that leaves less than half of all accesses, which are also those to memory in no region.
    """
    if stats.period <= 1 or stats.toucher is None:
        return stats
    counted, regions, begun = stats.all_accesses.astype(np.float64), len(stats.regions), _begun(stats)
    own = (stats.thread == stats.toucher) & (stats.thread >= 0) & (counted > 0) & ~begun[stats.region]
    first = np.flatnonzero(own)[_pages(stats, np.flatnonzero(own))]
    left = counted.copy()
    left[first] = np.maximum(left[first] - 1, 0)
    whole, rest = (np.bincount(stats.region, weights=part, minlength=regions) for part in (counted, left))
    scale = np.divide(whole, rest, out=np.zeros(regions), where=rest > 0)
    scale[~(begun | _would_show(stats))] = 0
    left *= scale[stats.region]
    apart = 0.0 if stats.elsewhere is None else float(stats.elsewhere.sum())
    known = left.sum() + apart >= MOST * (counted.sum() + apart)
    before = None
    if stats.before is not None:
        before = left * np.divide(stats.before, counted, out=np.zeros(len(left)), where=counted > 0)
        left = left - before
    return msgspec.structs.replace(
        stats, accesses=left, before=before, toucher=stats.toucher if known else None
    )


def _begun(stats: PageCounts) -> NDArray[np.bool_]:
    """(regions,) whether samples show initialisation before the threads started."""
    before = np.zeros(len(stats.region)) if stats.before is None else stats.before
    return np.bincount(stats.region, weights=before, minlength=len(stats.regions)) > 0


def _would_show(stats: PageCounts) -> NDArray[np.bool_]:
    """(regions,) whether samples would show that, of the pages that are seen, if there had been any."""
    rows = _pages(stats, np.arange(len(stats.region)))
    return np.bincount(stats.region[rows], minlength=len(stats.regions)) * WORDS >= SHOWN * stats.period


def _pages(stats: PageCounts, rows: Ints) -> Ints:
    """Places in `rows` of the first row of each page."""
    keys = stats.region[rows] * (int(stats.page.max(initial=0)) + 1) + stats.page[rows]
    places: Ints = np.unique(keys, return_index=True)[1]
    return places
