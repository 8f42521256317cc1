"""Who comes back to memory: the thread that was there before, or another.

A page is visited, left, and visited again. Of memory that was made at one place in the code, the visits show
how it is used: each thread comes back to its part (others may look into it), threads come back to it more or
less, as those of a pool do that split up the work as it comes, or it is anybody's, which a table for all is,
too. Memory whose pages have the same few visitors from the beginning to the end is a part of these, where
threads keep to partners.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from numaplan.profiler import Trace

from .memory.page_counts import PAGE
from .samples.trace_samples import TraceSamples

KINDS = ("static", "heap", "mmap", "file")  # what threads may share; small blocks share pages by chance
MOST = 1 << 21  # samples that are looked at; of more, those of some of the pages
APART = 64  # of the run: samples of a page that are nearer to each other are of one visit
FEW = 50  # visits after another one, below which nothing is said of a place in the code
COMES_BACK = 0.85  # of the visits after one's own, that must be one's own again
MAIN_USER = 0.65  # of the later visits, by who came most before, where others look into one's part
CHANCE = 2.0  # times as often as by chance, up to which memory is anybody's
FAR = 4  # of the run: a part of it that two visits of a page are apart at least to be far from each other
PAIRS = 500  # of such visits, below which nothing is said of who shares a page
BEYOND = 1.5  # times as many of them as by chance that must be by one thread
SHARED = 0.5  # of a thread's accesses, that must be to anybody's memory if that is to tell anything

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Visits(NamedTuple):
    """Visits, by page and then time; thread: who made each, -1 if several."""

    page: Ints
    time: Ints
    thread: Ints
    site: Ints


class _Samples:
    """Of memory that samples are in: page: number of each; lane: whose it is; site: where it was made; own:
    whether by who accesses it."""

    def __init__(self, trace: Trace, samples: TraceSamples, lane: Ints) -> None:
        sites: dict[tuple[str, str], int] = {}
        size = 2 + max((row.region for row in trace.region_rows), default=-1)
        self.site_of = np.full(size, -1, np.int64)  # -1: does not count; the last is that of region -1
        owner, start = np.full(size, -1, np.int64), np.zeros(size, np.int64)
        for row in trace.region_rows:
            if row.kind in KINDS:
                self.site_of[row.region] = sites.setdefault((row.kind, row.name), len(sites))
                owner[row.region] = lane[row.thread] if 0 <= row.thread < len(lane) else -1
                start[row.region] = row.start_addr
        self.sites = len(sites)
        begin = min((row.start_ns for row in trace.thread_rows if row.path != "0"), default=0)
        self.apart = max(samples.last_ns - begin, 0) / APART
        parts = -(-samples.count // MOST)
        found: list[list[NDArray[np.int64]]] = [[np.zeros(0, np.int64)] * 5]
        for columns in samples.columns():
            region = np.where(
                (columns["region"] >= 0) & (columns["region"] < size - 1), columns["region"], -1
            )
            page = (region.astype(np.int64) << 36) + (
                columns["addr"].astype(np.int64) - start[region]
            ) // PAGE
            counts = (columns["time_ns"] >= begin) & (self.site_of[region] >= 0)
            if parts > 1:
                counts &= (page * 0x9E3779B1 >> 16) % parts == 0
            who = lane[columns["thread"]]
            own = (owner[region] == who).astype(np.int64)
            every = (page, columns["time_ns"], who, self.site_of[region], own)
            found.append([column[counts].astype(np.int64) for column in every])
        columns_of = zip(*found, strict=True)
        self.page, self.time, self.lane, self.site, own = (np.concatenate(part) for part in columns_of)
        self.own = own.astype(bool)


class Returns(NamedTuple):
    """(N,) of each thread's accesses to memory that somebody comes back to, how many are to memory where each
    thread comes back to its part (`own`), or its few visitors stay the same (`together`); -1 where too little
    is known."""

    own: Floats
    together: Floats


def page_returns(trace: Trace, samples: TraceSamples, lane: Ints) -> Returns:
    """Who comes back to what memory.

    Memory that the thread allocated itself does not count, nor what was before the second thread started.
    lane: (N,) threads of one value count as one.
    """
    found, lanes = _Samples(trace, samples, lane), int(lane.max(initial=-1)) + 1
    shared = ~found.own
    page, time, thread, site = (column[shared] for column in (found.page, found.time, found.lane, found.site))
    visits = visits_of(page, time, thread, site, found.apart)
    before, now, site = returns_of(visits)
    told = np.bincount(site, minlength=found.sites) >= FEW
    kept, chance = np.zeros(found.sites), np.ones(found.sites)
    for number in np.flatnonzero(told).tolist():
        ours = site == number
        one, other = (np.bincount(of[ours], minlength=lanes) / ours.sum() for of in (before, now))
        kept[number], chance[number] = (before[ours] == now[ours]).mean(), one @ other
    used = np.zeros((lanes, max(found.sites, 1)))
    np.add.at(used, (found.lane[shared], found.site[shared]), 1.0)
    made = np.bincount(found.lane, minlength=lanes)
    anybodys = told & (kept <= CHANCE * chance)
    back = told & ((kept >= COMES_BACK) | (kept_by_main_user(visits, found.sites) >= MAIN_USER))
    own = _shares(used[:, : found.sites], told, anybodys, back & ~anybodys, made)
    same = told & shared_by_the_same(visits, found.sites, APART * found.apart)
    together = _shares(used[:, : found.sites], told, anybodys & ~same, back & ~anybodys | same, made)
    return Returns(own[lane], together[lane])


def _shares(
    used: Floats, told: NDArray[np.bool_], anybodys: NDArray[np.bool_], back: NDArray[np.bool_], made: Ints
) -> Floats:
    """(lanes,) what each does with memory that is a part of somebody's (`back`), of what it does with all
    that is not anybody's; 0 where it uses hardly any other.

    used: (lanes, sites) accesses; (sites,) told: of which something is known; made: (lanes,) of all memory.
    """
    somebodys = used[:, told & ~anybodys].sum(axis=1)
    answer = np.full(len(used), -1.0)
    np.divide(used[:, back].sum(axis=1), somebodys, out=answer, where=somebodys > 0)
    answer[(somebodys == 0) & (used[:, anybodys].sum(axis=1) > SHARED * made)] = 0.0
    return answer


def returns_of(visits: Visits) -> tuple[Ints, Ints, Ints]:
    """Who had come before, who came, and the page's site, of visits in a row that one thread made each."""
    page, _, thread, site = visits
    after = (page[1:] == page[:-1]) & (thread[1:] >= 0) & (thread[:-1] >= 0)
    return thread[:-1][after], thread[1:][after], site[1:][after]


def kept_by_main_user(visits: Visits, sites: int) -> Floats:
    """(sites,) of the later half of each page's visits, how many are by its main user in the earlier.

    Near 1 for memory of which each thread has its part, though others look into it: a vector by which a
    sparse matrix is multiplied, a matrix that is transposed. 0 where too few are known.
    """
    page, _, thread, site = (column[visits.thread >= 0] for column in visits)
    first = np.flatnonzero(np.append(True, page[1:] != page[:-1])[: len(page)])
    counts = np.diff(np.append(first, len(page)))
    number = np.repeat(np.arange(len(first)), counts)
    early = np.arange(len(page)) - first[number] < counts[number] // 2
    lanes = int(thread.max(initial=0)) + 1
    keys, times = np.unique((number * lanes + thread)[early], return_counts=True)
    main = np.full(len(first), -1)
    order = np.argsort(times, kind="stable")
    main[keys[order] // lanes] = keys[order] % lanes  # who came most is written last
    late = ~early & (main[number] >= 0)
    made = np.bincount(site[late], minlength=sites)
    same = np.bincount(site[late & (thread == main[number])], minlength=sites)
    return np.where(made >= FEW, same / np.maximum(made, 1), 0.0)


def visits_of(page: Ints, time: Ints, thread: Ints, site: Ints, apart: float) -> Visits:
    """Visits to pages: samples of a page that are nearer to each other than `apart` ns are of one."""
    order = np.lexsort([time, page])
    page, time, thread, site = page[order], time[order], thread[order], site[order]
    if not len(page):
        return Visits(page, time, thread, site)
    turn = np.append(True, page[1:] != page[:-1])
    first = np.flatnonzero(turn | np.append(True, time[1:] - time[:-1] >= apart))
    one, last = (of.reduceat(thread, first) for of in (np.minimum, np.maximum))
    return Visits(page[first], time[first], np.where(one == last, one, -1), site[first])


def shared_by_the_same(visits: Visits, sites: int, run_ns: float) -> NDArray[np.bool_]:
    """(sites,) whether each page has the same few visitors from the beginning to the end.

    Of two visits to a page that are far apart, as many as of two that are near each other are by one thread,
    and more than by chance: of pairs that read what each other writes every second one, whoever came last.
    """
    page, time, thread, site = (column[visits.thread >= 0] for column in visits)
    near, far, near_same, far_same = np.zeros((4, sites))
    for lag in range(1, len(page)):
        of_one = page[lag:] == page[:-lag]
        if not of_one.any():
            break
        same, at = thread[lag:] == thread[:-lag], site[lag:]
        distant = time[lag:] - time[:-lag] >= run_ns / FAR
        for chosen, every, equal in ((of_one & ~distant, near, near_same), (of_one & distant, far, far_same)):
            every += np.bincount(at[chosen], minlength=sites)
            equal += np.bincount(at[chosen & same], minlength=sites)
    lanes = int(thread.max(initial=0)) + 1
    made = np.bincount(site * lanes + thread, minlength=sites * lanes).reshape(sites, lanes)
    chance = (made.astype(float) ** 2).sum(axis=1) / np.maximum(made.sum(axis=1).astype(float) ** 2, 1)
    now, later = near_same / np.maximum(near, 1), far_same / np.maximum(far, 1)
    answer: NDArray[np.bool_] = (far >= PAIRS) & (later >= COMES_BACK * now) & (later >= BEYOND * chance)
    return answer
