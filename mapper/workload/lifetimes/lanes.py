"""Threads that do not live at the same time share a lane: they are no rivals for a cpu.

A program that makes a pool of eight threads, ends it and makes the next needs eight cpus, however many pools
there are; what the second pool's third thread does is most likely what the first one's did. A lane is a seat
through time: the threads in it follow one another, and are planned as one. Those of one creator share
lanes on any machine; who does so besides where cpus are few is in succession.py.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from numaplan.analyzer import BY_PAIRS, PageCounts

from ...threads.problem import Floats, Nodes
from ..lasted import lived_of, ran_of
from ..use import among
from ..workload import Workload
from .creation import creator_of, made_order, root_of

FOREVER = (1 << 63) - 1

Life = tuple[int, int]  # (start, end) in ns


def lanes_of(
    threads: Sequence[tuple[str, str]],
    lives: Sequence[tuple[int, int]],
    apart: Mapping[int, Hashable] | None = None,
) -> Nodes:
    """(N,) lane of each thread, numbered in order of their first thread.

    threads: (process, creation path); lives: (start, end) in ns, end -1: to the end of the run; apart: what
    threads with another value may not share a lane for (a pin). A thread follows one of the same creator that
    has ended: of several, the one whose lane began first. They are taken in the order in which they were made
    and not began to run, so that the k-th of a pool follows the k-th of the pool before.
    """
    lane = np.full(len(threads), -1, np.int64)
    lanes: dict[tuple[str, str, Hashable], list[tuple[int, list[tuple[int, int]]]]] = defaultdict(list)
    count = 0
    for thread in sorted(range(len(threads)), key=lambda number: made_order(threads[number], number)):
        life = lasting(lives[thread])
        own = lanes[_family(threads[thread], thread, apart)]
        found = next((one for one in own if not _meets(one[1], life)), None)
        if found is None:
            found, count = (count, []), count + 1
            own.append(found)
        insort(found[1], life)
        lane[thread] = found[0]
    return by_first_thread(lane)


def _meets(lives: Sequence[tuple[int, int]], life: tuple[int, int]) -> bool:
    """Whether one of the lives, which do not overlap and ascend, has a moment in common with another."""
    at = bisect_left(lives, (life[1], 0))
    return at > 0 and lives[at - 1][1] > life[0]


def _family(
    thread: tuple[str, str], number: int, apart: Mapping[int, Hashable] | None
) -> tuple[str, str, Hashable]:
    """Who may follow whom: threads of one creator in one process."""
    return *creator_of(thread), (apart or {}).get(number)


def by_first_thread(lane: Nodes) -> Nodes:
    """(N,) the same lanes, numbered in the order in which their threads first stand in the list."""
    _, first = np.unique(lane, return_index=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[lane]


def lives_by_lane(lives: Sequence[Life], lane: Nodes, count: int) -> list[list[Life]]:
    """(lanes,) the lives of each one's threads in order, `lasting`."""
    answer: list[list[Life]] = [[] for _ in range(count)]
    for life, own in zip(lives, lane.tolist(), strict=True):
        answer[own].append(lasting(life))
    return [sorted(own) for own in answer]


def lasting(life: Life) -> Life:
    """The same with the end FOREVER instead of -1."""
    start, end = life
    return start, end if end >= 0 else FOREVER


def most_at_once(threads: Sequence[tuple[str, str]], lives: Sequence[Life]) -> int:
    """How many threads live at the same time at most; of ranks, which may be known by clocks of their own, as
    if all came to their most at once. threads: (process, creation path); lives: as for `lanes_of`."""
    found: dict[str, list[Life]] = defaultdict(list)
    for thread, life in zip(threads, lives, strict=True):
        found[root_of(thread)].append(life)
    return sum(_most(np.array(own, np.int64)) for own in found.values())


def _most(lives: Nodes) -> int:
    """Of (N, 2) lives the most at once; one that begins as another ends does not meet it."""
    start, end = np.sort(lives[:, 0]), np.sort(np.where(lives[:, 1] < 0, FOREVER, lives[:, 1]))
    begun = np.arange(1, len(start) + 1)
    return int((begun - np.searchsorted(end, start, side="right")).max(initial=0))


def by_lane(workload: Workload, lane: Nodes) -> Workload:
    """The workload of lanes instead of threads; a lane has the name of its first thread."""
    count = int(lane.max(initial=-1)) + 1
    if count == len(lane):
        return workload
    assert isinstance(workload.comm, np.ndarray)  # of a trace
    first = np.unique(lane, return_index=True)[1]
    comm, phases = among(workload.comm, lane, count), workload.phases
    np.fill_diagonal(comm, 0.0)  # within a lane threads do not meet
    seen = workload.seen_on
    return replace(
        workload,
        threads=[workload.threads[thread] for thread in first],
        comm=comm,
        loads=np.bincount(lane, workload.loads, count),
        phases=None if phases is None else np.stack([np.bincount(lane, row, count) for row in phases]),
        seen_on=tuple(seen[thread] for thread in first) if seen else (),
        lives=_lives(workload.lives, lane, count),
        makers=dict(zip(workload.threads, lane.tolist(), strict=True)),
        there=_there(workload, lane, count),
        keeps=kept_by_lane(workload, lane, count),
        names=tuple(workload.names[thread] for thread in first) if workload.names else (),
        use=None if workload.use is None else workload.use.by_lane(lane, count),
        pages=None if workload.pages is None else _pages(workload.pages, lane, count),
        larger=tuple(replace(one, pages=_pages(one.pages, lane, count)) for one in workload.larger),
    )


def _lives(lives: Sequence[tuple[int, int]], lane: Nodes, count: int) -> tuple[tuple[int, int], ...]:
    """From when a lane's first thread begins until its last one ends; none where they are not known."""
    if not lives:
        return ()
    start, end = np.full(count, FOREVER), np.zeros(count, np.int64)
    np.minimum.at(start, lane, [life[0] for life in lives])
    np.maximum.at(end, lane, [life[1] if life[1] >= 0 else FOREVER for life in lives])
    return tuple(zip(start.tolist(), np.where(end == FOREVER, -1, end).tolist(), strict=True))


def _there(workload: Workload, lane: Nodes, count: int) -> tuple[Floats, Floats] | None:
    """Of lanes with threads of several processes, for how long these run and are there, in the mean."""
    names = np.unique([process for process, _ in workload.threads], return_inverse=True)[1]
    first = names[np.unique(lane, return_index=True)[1]]
    if workload.use is None or not (names != first[lane]).any():
        return None
    weight = workload.use.accesses + 1.0
    ran = ran_of(workload.threads, workload.lives, workload.use.activity)
    lived = lived_of(workload.threads, workload.lives)
    made = np.bincount(lane, weight, count)
    return np.bincount(lane, weight * ran, count) / made, np.bincount(lane, weight * lived, count) / made


def kept_by_lane(workload: Workload, lane: Nodes, count: int) -> tuple[bool, ...]:
    """Whether most of a lane's accesses are of threads that keep to their memory; none where not known."""
    if not workload.keeps or workload.use is None:
        return ()
    made = workload.use.accesses + 1.0
    kept = np.bincount(lane, made * np.array(workload.keeps), count)
    return tuple((2 * kept >= np.bincount(lane, made, count)).tolist())


def _pages(pages: PageCounts, lane: Nodes, count: int) -> PageCounts:
    index = np.append(lane, -1)  # the last is that of -1
    pairs = {name: getattr(pages, name) for name in BY_PAIRS}
    return replace(
        pages,
        thread=index[pages.thread],
        toucher=None if pages.toucher is None else index[pages.toucher],
        **{name: None if own is None else among(own, lane, count) for name, own in pairs.items()},
    )
