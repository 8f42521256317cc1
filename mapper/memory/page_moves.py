"""How many pages the kernel will move between nodes (AutoNUMA) where no plan keeps them where they are, and
where they are then."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numaplan.analyzer import PageCounts
from numaplan.machine import PAGE_LINES

from ..threads.cost import one_hot
from ..threads.problem import Floats, Nodes
from .run_table import PAGE

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BEGINS_S = 1.6  # that a process runs until its pages are moved: the kernel looks first after a second
# What the lab counted of programs without a plan (docs/results/programs.md), of the time after that.
MOVED = 1.5  # moves of a page that one node uses, whose accesses are all remote
SHARED = 1.2  # and so many more of one that others use, too, times their share
FOLLOWED = 0.9  # of the accesses to a page after the threads started, those that find it moved
SMALL_FOLLOWED = 0.3  # of those to small blocks, whose pages are not known singly
# Of programs whose threads the kernel moves about: their pages come after them, whoever uses them.
ROAMED = 0.9  # moves of a page, times the share of the nodes that are others
ROAMED_LINES = 0.6  # of its lines, that come out of other caches, then or when it is used again
OWN_LINES = 1 / 8  # of a page's lines, that are in caches of another node though one alone uses it
ROUNDS = 40  # of halving an interval


class PageMoves(NamedTuple):
    """How many pages the kernel moves, and lines that are in caches of other nodes when it copies them."""

    pages: float
    lines: float


STILL = PageMoves(0.0, 0.0)


def moving_part(lasted_s: Floats) -> Floats:
    """The share 0..1 of processes that run for so many seconds in which their pages are moved."""
    answer: Floats = 1.0 - BEGINS_S / np.maximum(lasted_s, BEGINS_S)
    return answer


def shared_by_processes(stats: PageCounts, process: Nodes) -> NDArray[np.bool_]:
    """(rows of the statistics,) whether threads of several processes use the page, or touched it first.

    Such a page the kernel does not move, be it of a shared mapping or what a forked child and its parent have
    in common. process: (N,) number of each thread's.
    """
    if not len(stats.region) or not process.any():  # there is one
        return np.zeros(len(stats.region), bool)
    least, most = len(process), -1
    page = stats.page_number
    low, high = np.full(int(page[-1]) + 1, least), np.full(int(page[-1]) + 1, most)
    for threads in (stats.thread, stats.toucher):
        if threads is None:
            continue
        known = (threads >= 0) & (threads < len(process))
        np.minimum.at(low, page[known], process[threads[known]])
        np.maximum.at(high, page[known], process[threads[known]])
    answer: NDArray[np.bool_] = (low < high)[page]
    return answer


def page_moves(
    stats: PageCounts, stays: Floats, rows: Nodes, nodes: int, held: NDArray[np.bool_] | None = None
) -> PageMoves:
    """Expected moves when pages begin where they are touched first; stays: (N, N) how likely no page moves
    for the one's access to what the other touched; rows: (N,) row of each thread's node, of so many.

    held: (rows of the statistics,) whether the page stays in any case. Of each region: its pages times the
    share of its accesses that are remote; none where nothing is known of first touches. Lines are in other
    caches as far as threads of other nodes use the page, too.
    """
    outside = outside_moves(stats, stays, rows)
    if stats.toucher is None or not len(stats.region):
        return outside
    known = (stats.thread >= 0) & (stats.toucher >= 0)
    known &= (stats.thread < len(stays)) & (stats.toucher < len(stays))
    if held is not None:
        known &= ~held
    count, made = len(stats.regions), stats.all_accesses
    remote = np.zeros(len(made))
    remote[known] = 1.0 - stays[stats.thread[known], stats.toucher[known]]
    total, away = (
        np.bincount(stats.region, part, count).astype(np.float64) for part in (made, made * remote)
    )
    share = np.divide(away, total, out=np.zeros(count), where=total > 0)
    others = _by_others(stats, rows, nodes)
    moved = (MOVED + SHARED * others) * share * pages_in_use(stats, total)
    lines = OWN_LINES + (1 - OWN_LINES) * others
    return PageMoves(
        outside.pages + float(moved.sum()), outside.lines + PAGE_LINES * float((moved * lines).sum())
    )


def roaming_moves(stats: PageCounts, moving: Floats, nodes: int, held: NDArray[np.bool_]) -> PageMoves:
    """Expected moves of regions' pages that are used after the threads started, where nobody binds these.

    moving: (N,) share 0..1 of its time for which a thread is moved about, and pages after it; held: (rows of
    the statistics,) whether the page stays in any case.
    """
    if stats.toucher is None:
        return STILL  # as where nothing is known of first touches
    known = (stats.thread >= 0) & (stats.thread < len(moving)) & ~held & ~_in_read_files(stats)
    count, made = len(stats.regions), np.where(stats.thread >= 0, stats.accesses, 0)
    share = np.zeros(len(made))
    share[known] = moving[stats.thread[known]]
    total, away = (np.bincount(stats.region, part, count).astype(np.float64) for part in (made, made * share))
    about = np.divide(away, total, out=np.zeros(count), where=total > 0)
    moved = ROAMED * (1 - 1 / nodes) * float(about @ pages_in_use(stats, total, after=True))
    return PageMoves(moved, ROAMED_LINES * PAGE_LINES * moved)


def _in_read_files(stats: PageCounts) -> NDArray[np.bool_]:
    """(rows of the statistics,) whether the page is of a file that is only read, which the kernel leaves."""
    written = np.bincount(stats.region, stats.writes, len(stats.regions)) > 0
    files = np.array([key.kind == "file" for key in stats.regions], bool)
    answer: NDArray[np.bool_] = (files & ~written)[stats.region]
    return answer


def outside_moves(stats: PageCounts, stays: Floats, rows: Nodes) -> PageMoves:
    """The same of memory that is in no region of its own."""
    used, shared = stats.elsewhere_pages, stats.elsewhere_shared
    if stats.period > 1 or used is None or shared is None or not shared.any():
        return STILL  # samples do not tell who touched a page first, nor who else uses it
    others = float(shared[np.not_equal.outer(rows, rows)].sum() / shared.sum())
    moved = (MOVED + SHARED * others) * float((used * (1 - stays)).sum())
    return PageMoves(moved, PAGE_LINES * moved * (OWN_LINES + (1 - OWN_LINES) * others))


def followed_traffic(stats: PageCounts, rows: Nodes, nodes: int, but: Collection[int] = ()) -> Floats:
    """(N, K) accesses of each thread to memory of each node once the kernel has moved pages to who uses them:
    to each node as likely as this one's share of the page's accesses is.

    rows: (N,) row of each thread's node; but: regions that it leaves where they are. What was accessed before
    the threads started does not count.
    """
    made, shares = _uses(stats, _used(stats, rows) & ~np.isin(stats.region, list(but)), rows, nodes)
    answer: Floats = (made @ shares).toarray()
    return answer


def _by_others(stats: PageCounts, rows: Nodes, nodes: int) -> Floats:
    """(regions,) share of the accesses to its pages, that the threads of a page's other nodes make."""
    used, count = _used(stats, rows), len(stats.regions)
    _, shares = _uses(stats, used, rows, nodes)
    near = np.asarray(shares[stats.page_number[used], rows[stats.thread[used]]]).ravel()
    region, made = stats.region[used], stats.accesses[used]
    total, own = (np.bincount(region, part, count).astype(np.float64) for part in (made, made * near))
    return np.divide(total - own, total, out=np.zeros(count), where=total > 0)


def _used(stats: PageCounts, rows: Nodes) -> NDArray[np.bool_]:
    """(rows of the statistics,) whether one counts."""
    answer: NDArray[np.bool_] = (stats.thread >= 0) & (stats.thread < len(rows)) & (stats.accesses > 0)
    return answer


def _uses(stats: PageCounts, used: NDArray[np.bool_], rows: Nodes, nodes: int) -> tuple[csr_array, csr_array]:
    """(N, pages) accesses of each thread to each page, and (pages, K) each node's share of a page's."""
    from scipy.sparse import csr_array

    thread, page = stats.thread[used], stats.page_number[used]
    shape = (len(rows), int(page.max(initial=-1)) + 1)
    made = csr_array((stats.accesses[used].astype(np.float64), (thread, page)), shape=shape)
    uses = made.T @ csr_array(one_hot(rows, nodes))
    return made, csr_array(uses.multiply(1.0 / np.maximum(uses.sum(axis=1), 1e-300)[:, None]))


def pages_in_use(stats: PageCounts, samples: Floats, *, after: bool = False) -> Floats:
    """(regions,) pages that are in use: those seen, and as many more as so few samples leave unseen.

    after: in use once the threads have started. Of P pages n samples show P (1 - e^(-n/P)) where all are
    used alike.
    """
    used = (stats.accesses if after else stats.all_accesses) > 0
    new = np.diff(stats.page_number[used], prepend=-1) != 0
    seen = np.bincount(stats.region[used][new], minlength=len(stats.regions)).astype(np.float64)
    most = np.maximum(np.array([-(-key.bytes // PAGE) for key in stats.regions], np.float64), seen)
    low, high = seen, most
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        shown = middle * -np.expm1(-samples / np.maximum(middle, 1.0))
        low, high = np.where(shown < seen, middle, low), np.where(shown < seen, high, middle)
    return high
