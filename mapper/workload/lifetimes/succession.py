"""Lanes of several creators and processes in one seat: of those that follow one another.

Where a thread makes eight others, joins them and ends before the next one does the same, or a shell runs one
command after another, no cpu more is needed for the later ones, whoever made them. They take the seats of
those before, each that of the one with which it has most in common, unless that keeps it from others.

Which of several commands that run at once makes room for the next (`make -j4`) is chance: on the cpu of one
that had ended here it might wait for another one in the next run, while other cpus are idle. So lanes that
follow one another for sure come first: those between which there is a barrier (barriers.py). Others have a
seat together where cpus are still too few, but it is the node that they have in common, not the cpu.
"""

from bisect import bisect_left, insort
from collections.abc import Hashable, Mapping
from itertools import pairwise

import numpy as np

from ...threads.problem import Floats, Nodes
from ..roles.pools import LIGHT, kind_of
from ..use import among
from ..workload import Workload
from .barriers import Barriers, barriers_of
from .creation import creation_ranks, creator_of, root_of
from .lanes import Life, by_first_thread, kept_by_lane, lanes_of, lasting, lives_by_lane


def shared_lanes(workload: Workload, cpus: int, apart: Mapping[int, Hashable] | None = None) -> Nodes:
    """(N,) lane of each thread on so many cpus, as `lanes_of` has them, apart as there; as long as those with
    something to do are more than the cpus, lanes of other creators and processes that follow one another are
    one, too: first where they do so for sure, then where it is chance.

    Threads of a pool follow only such of one other pool, whose threads have names of the same kind, for sure.
    """
    lane = lanes_of(workload.threads, workload.lives, apart)
    for sure in (True, False):
        count = int(lane.max(initial=-1)) + 1
        made = np.bincount(lane, workload.loads if workload.use is None else workload.use.accesses, count)
        if np.count_nonzero(made >= LIGHT * made.mean()) <= cpus:
            break
        lane = by_first_thread(_Seats(workload, lane, count, apart or {}, sure=sure).found[lane])
    return lane


def loose_lanes(workload: Workload, lane: Nodes) -> list[int]:
    """Numbers of the lanes in which one thread follows another of another creator or process by chance."""
    makers: dict[int, set[tuple[str, str]]] = {}
    for thread, own in zip(workload.threads, lane.tolist(), strict=True):
        makers.setdefault(own, set()).add(creator_of(thread))
    mixed = [own for own, creators in makers.items() if len(creators) > 1]
    if not mixed:
        return []
    barriers = barriers_of(workload)
    answer = []
    for own in mixed:
        members = np.flatnonzero(lane == own).tolist()
        lives = sorted(
            (lasting(workload.lives[thread]), creator_of(workload.threads[thread])) for thread in members
        )
        known = barriers[root_of(workload.threads[members[0]])]
        if any(
            maker != of and not known.between(one, other) for (one, maker), (other, of) in pairwise(lives)
        ):
            answer.append(own)
    return answer


TORN = 0.01  # of all that lanes have in common, that a seat for both of two may cost


class _Seats:
    """Those of lanes (count of them; of each thread: lane); found: (count,) seat of each.

    sure: whether they have to follow one another for sure; else threads of pools follow none.
    """

    def __init__(
        self, workload: Workload, lane: Nodes, count: int, apart: Mapping[int, Hashable], *, sure: bool
    ) -> None:
        first = np.unique(lane, return_index=True)[1].tolist()
        threads = [workload.threads[thread] for thread in first]
        kept = kept_by_lane(workload, lane, count)
        self._sure = sure
        self._lives = lives_by_lane(workload.lives, lane, count)
        self._names = [kind_of(workload.names, thread) for thread in first]
        self._pools = [
            None if not kept or kept[at] else creator_of(thread) for at, thread in enumerate(threads)
        ]
        self._roots = [root_of(thread) for thread in threads]
        kinds: dict[Hashable, int] = {}
        self._kinds = np.array(
            [
                kinds.setdefault((root, apart.get(number), pool and name), len(kinds))
                for root, number, pool, name in zip(self._roots, first, self._pools, self._names, strict=True)
            ]
        )
        self._barriers = barriers_of(workload) if sure else {}
        self._common = _in_common(workload, lane, count)
        self.found: Nodes = np.full(count, -1)
        self._taken: list[list[Life]] = []
        self._first: list[int] = []  # lane in each seat
        self._ended = np.zeros(count, np.int64)  # when the first one there did
        self._followed: dict[Hashable, Hashable] = {}  # by pool: the one whose seats it has
        self._with: Floats = np.zeros((count, count))  # what each seat's lanes have in common with others
        for at in np.argsort(creation_ranks(workload.threads, workload.lives)[first]).tolist():
            self._seat(at)

    def _seat(self, at: int) -> None:
        """Take the free one with most in common, then one of the same name, of several the first; a new one
        where there is none, or where all have others to be near."""
        pool, name = self._pools[at], self._names[at]
        worth = {seat: self._worth(seat, at) for seat in self._near(at)}
        near = [seat for seat in worth if worth[seat] >= -TORN]
        near.sort(key=lambda seat: (-worth[seat], self._names[self._first[seat]] != name))
        seat = next((seat for seat in near if self._free(seat, at)), len(self._taken))
        if seat == len(self._taken):
            self._taken.append([])
            self._first.append(at)
            self._followed.setdefault(pool, pool)
        self._followed.setdefault(pool, self._group(seat))
        for life in self._lives[at]:
            insort(self._taken[seat], life)
        self._ended[seat] = self._taken[seat][0][1]
        self._with[seat] += self._common[at]
        self.found[at] = seat

    def _worth(self, seat: int, at: int) -> float:
        """What a lane has in common with those in a seat, less what one of both has to do with others than
        the other one has: the node of one seat cannot be near all of them."""
        partner = np.where(self.found >= 0, self.found, len(self._taken) + np.arange(len(self.found)))
        own, theirs = (np.bincount(partner, row) for row in (self._common[at], self._with[seat]))
        apart = min(float(own.sum()), float(theirs.sum())) - float(np.minimum(own, theirs).sum())
        return float(self._with[seat, at]) - apart

    def _group(self, seat: int) -> Hashable:
        """The first pool that had threads in a seat and those that it had been made with."""
        pool = self._pools[self._first[seat]]
        return self._followed.get(pool, pool)

    def _near(self, at: int) -> list[int]:
        """Seats that a lane may have by its kind and by when it begins."""
        pool, (life, *_) = self._pools[at], self._lives[at]
        if pool is not None and not self._sure:
            return []
        limit = self._barriers[self._roots[at]].before(life) if self._sure else life[0]
        like = self._kinds[self._first] == self._kinds[at] if self._first else np.empty(0, bool)
        found: list[int] = np.flatnonzero(like & (self._ended[: len(like)] <= limit)).tolist()
        group = self._followed.get(pool)
        return found if group is None else [seat for seat in found if self._group(seat) == group]

    def _free(self, seat: int, at: int) -> bool:
        """Whether the lives of a lane follow those in a seat, and those in it the lane's."""
        taken, lives = self._taken[seat], self._lives[at]
        barriers = self._barriers[self._roots[at]] if self._sure else None
        for number, life in enumerate(lives):
            place = bisect_left(taken, life)
            first, last = number == 0, number + 1 == len(lives)
            before = place > 0 and (first or lives[number - 1] < taken[place - 1])
            after = place < len(taken) and (last or taken[place] < lives[number + 1])
            if before and not _follows(taken[place - 1], life, barriers):
                return False
            if after and not _follows(life, taken[place], barriers):
                return False
        return True


def _follows(one: Life, other: Life, barriers: Barriers | None) -> bool:
    """Whether the other life begins after the one's end; with a barrier between them."""
    return one[1] <= other[0] and (barriers is None or barriers.between(one, other))


def _in_common(workload: Workload, lane: Nodes, count: int) -> Floats:
    """(L, L) what two lanes exchange, as a share of all that is exchanged, and what they use of memory that
    the other one touched first, likewise."""
    assert isinstance(workload.comm, np.ndarray)  # of a trace
    answer = _share_of(among(workload.comm, lane, count))
    pages = workload.pages
    if pages is not None and pages.toucher is not None:
        known = (pages.toucher >= 0) & (pages.thread >= 0)
        of = lane[pages.thread[known]] * count + lane[pages.toucher[known]]
        used = np.bincount(of, pages.accesses[known], count * count).astype(np.float64)
        answer += _share_of(used.reshape(count, count))
    return answer


def _share_of(matrix: Floats) -> Floats:
    """A matrix and its transpose, as a share of all that is not on the diagonal."""
    np.fill_diagonal(matrix, 0.0)
    answer: Floats = (matrix + matrix.T) / max(float(matrix.sum()), 1e-300)
    return answer
