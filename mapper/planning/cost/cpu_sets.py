"""Which cpus each thread may run on, when it is known where it is, and how long it waits for one of them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from numaplan.machine import Machine

from ...threads.problem import Floats, Nodes
from ...threads.seats import assign_cpus
from ...workload.roles.pools import LIGHT, Twins
from ...workload.use import ThreadUse
from .waiting import waiting_in_stretches, waiting_of, waiting_where_dealt

SPARE = 0.5  # of a cpu, that a pool may lack
SLOW = 0.5  # of these, below which it may run without making accesses: it polls

ROUNDED = 0.5  # of a thread
MOST_PAIRED = 64  # sets of several cpus, of which each two are looked at together

Sets = list[tuple[int, ...]]


class CpuSets:
    """machine: its nodes are the places; pools: of exchangeable threads; pinned: cpu by thread; tied: threads
    that keep to their place although they are of a pool, as those pinned to a node; staying: of each pool,
    whether its threads should stay on one of its places each; twins: idle threads go on in turn where those
    are that work, or may run wherever their pool may; crowd: idle threads that may run wherever no other
    thread is."""

    def __init__(
        self,
        machine: Machine,
        use: ThreadUse,
        pools: Sequence[Nodes],
        pinned: Mapping[int, int],
        tied: Sequence[int] = (),
        staying: Sequence[bool] = (),
        twins: Sequence[Twins] = (),
        crowd: Nodes | None = None,
    ) -> None:
        self._machine, self._use, self._pools, self._pinned = machine, use, pools, pinned
        self._seats: dict[bytes, Sets] = {}
        self._dealt: dict[tuple[tuple[int, ...], ...], float] = {}
        self._tied = list(tied)
        self._staying = staying or [False] * len(pools)
        self._twins = list(twins)
        self._crowd: Nodes = np.empty(0, np.int64) if crowd is None else crowd

    @property
    def looked(self) -> bool:
        """Whether it was seen which threads could run at a time."""
        return self._use.activity is not None and self._use.activity.looked

    def spread(self, places: Nodes, *, wider: bool = False) -> Nodes:
        """(N,) the same places, but on each of a pool's as many of its threads as the kernel will run there:
        in proportion to the cpus that others leave. wider: and on the nearest where these are too few."""
        answer = places.copy()
        for pool in self._pools:
            free = self._free(pool)
            if not len(free):
                continue
            left, own = self._left_by_others(answer, free), np.unique(places[free])
            if wider:
                own = self._widened(own, left, free)
            room = (
                left[own] if left[own].any() else np.array([len(self._machine.nodes[at].cpus) for at in own])
            )
            ends = np.rint(np.cumsum(room) / room.sum() * len(free)).astype(np.int64)
            answer[free] = np.repeat(own, np.diff(ends, prepend=0))
        return answer

    def _free(self, pool: Nodes) -> Nodes:
        """Those of a pool that may be on any of its places."""
        return np.setdiff1d(pool, [*self._pinned, *self._tied])

    def _left_by_others(self, places: Nodes, pool: Nodes) -> Floats:
        """(places,) cpus that nobody else uses while a pool runs."""
        others = np.setdiff1d(np.arange(len(places)), pool)
        beside = self._use.together[np.ix_(pool, others)].mean(axis=0)
        cpus = np.array([len(node.cpus) for node in self._machine.nodes], np.float64)
        answer: Floats = np.maximum(cpus - np.bincount(places[others], beside, len(cpus)), 0.0)
        return answer

    def _widened(self, own: Nodes, left: Floats, pool: Nodes) -> Nodes:
        """The places, and as many of the nearest others as have cpus for all of a pool that run at a time."""
        running = 1.0 + float(self._use.together[np.ix_(pool, pool)].sum(axis=1).max(initial=0.0))
        near = self._machine.distance_matrix[own].sum(axis=0)
        more = [at for at in np.lexsort([-left, near]).tolist() if at not in own]
        while left[own].sum() < running - SPARE and more:
            own = np.append(own, more.pop(0))
        return np.sort(own)

    def seats(self, places: Nodes) -> Sets:
        """A cpu of its own for each thread, as far as there are any; places: (N,)."""
        use, key = self._use, places.tobytes()
        if key not in self._seats:
            self._seats[key] = assign_cpus(
                use.lines, self._machine, places.tolist(), self._pinned, use.accesses
            )
        return self._seats[key]

    def of_pools(self, places: Nodes, seats: Sets) -> Sets:
        """The same with all cpus of its places for each pool, or of one place for each of its threads."""
        return self._held(places, seats, seats, self._staying)

    def wider(self, places: Nodes, seats: Sets) -> Iterator[Sets]:
        """Where cpus are too few for that: all of a place for the threads with little to do, or for each."""
        nodes = self._machine.nodes
        shared = [nodes[place].cpus for place in places.tolist()]
        busy = self._busy()
        lines, made = self._use.lines[np.ix_(busy, busy)], self._use.accesses[busy]
        own = assign_cpus(lines, self._machine, places[busy].tolist(), None, made)
        light = list(shared)
        for thread, seat in zip(busy.tolist(), own, strict=True):
            light[thread] = seat
        yield self._held(places, light, seats, self._staying)
        yield self._held(places, shared, seats, self._staying)

    def crowded(self, places: Nodes) -> bool:
        """Whether a place may have fewer cpus than threads that run at a time, where slow ones always do, of
        which that was not seen."""
        if self.looked:
            return False
        made, mean = self._use.accesses, self._use.accesses.mean()
        slow = (made >= LIGHT * mean) & (made < SLOW * mean)
        if not slow.any():
            return False
        beside = np.where(slow, 1.0, self._use.together) * np.equal.outer(places, places)
        np.fill_diagonal(beside, 1.0)
        seats = np.array([len(node.cpus) for node in self._machine.nodes])[places]
        return bool((beside[slow].sum(axis=1) > seats[slow] + ROUNDED).any())

    def without_cpu(self, places: Nodes) -> int:
        """How many threads that do more than little, and are of no pool, have no cpu of their own."""
        busy = np.setdiff1d(self._busy(), np.concatenate([[], *self._pools]).astype(np.int64))
        seats = np.array([len(node.cpus) for node in self._machine.nodes])
        on = np.bincount(places[busy], minlength=len(seats))
        return int(np.maximum(on - seats, 0).sum())

    def filled(self) -> Nodes:
        """(N,) places in order of creation, each until threads that run at a time have taken its cpus.

        Those that no place has room for go to the one with the fewest threads.
        """
        together, busy = self._use.together, np.isin(np.arange(len(self._use.accesses)), self._busy())
        seats = [len(node.cpus) for node in self._machine.nodes]
        answer = np.full(len(busy), len(seats))
        for place, cpus in enumerate(seats):
            beside = np.ones(len(busy))  # how many run while each does, of those here
            for thread in np.flatnonzero(answer == len(seats)).tolist():
                here = (answer == place) & busy
                here[thread] = busy[thread]
                then = beside + together[:, thread]
                if busy[thread] and then[here].max() > cpus + ROUNDED:
                    continue
                answer[thread], beside = place, then
        for thread in np.flatnonzero(answer == len(seats)).tolist():
            answer[thread] = int(np.argmin(np.bincount(answer, minlength=len(seats) + 1)[:-1] / seats))
        return answer

    def _busy(self) -> Nodes:
        """Numbers of the threads with more than little to do."""
        return np.flatnonzero(self._use.accesses >= LIGHT * self._use.accesses.mean())

    def roaming(self, places: Nodes, seats: Sets) -> Sets | None:
        """All cpus of its places for each pool; None where they have those."""
        return self._held(places, seats, seats, [False] * len(self._pools)) if any(self._staying) else None

    def _held(self, places: Nodes, cpus: Sets, seats: Sets, staying: Sequence[bool]) -> Sets:
        """The cpus, but for those of pools and of pinned threads."""
        answer, nodes = list(cpus), self._machine.nodes
        for pool, stays in zip(self._pools, staying, strict=True):
            free = self._free(pool)
            every = self._every(places[free if len(free) else pool])
            for thread in pool.tolist():
                answer[thread] = nodes[places[thread]].cpus if stays else every
        for thread in self._tied:
            answer[thread] = nodes[places[thread]].cpus
        for one in self._twins:
            roams = one.pool >= 0 and not staying[one.pool]
            for thread in one.idle.tolist():
                answer[thread] = self._every(places[one.busy]) if roams else nodes[places[thread]].cpus
        if len(free := self._left_to_crowd(places)):
            for thread in self._crowd.tolist():
                answer[thread] = self._every(free)
        for thread in self._pinned:
            answer[thread] = seats[thread]
        return answer

    def _left_to_crowd(self, places: Nodes) -> Nodes:
        """The places where nobody else is."""
        if not len(self._crowd):
            return self._crowd
        return np.setdiff1d(np.arange(len(self._machine.nodes)), np.delete(places, self._crowd))

    def _every(self, places: Nodes) -> tuple[int, ...]:
        return tuple(cpu for place in np.unique(places).tolist() for cpu in self._machine.nodes[place].cpus)

    def with_idle(self, places: Nodes) -> Nodes:
        """(N,) the same places, but idle threads are where their siblings are that work, as if the turns of
        these had begun with them and went on; those of a crowd where nobody else is."""
        answer = places.copy()
        for one in self._twins:
            turn = np.arange(len(one.idle)) - np.count_nonzero(one.idle < one.busy[0])
            answer[one.idle] = places[one.busy[turn % len(one.busy)]]
        if len(free := self._left_to_crowd(answer)):
            away = self._crowd[~np.isin(answer[self._crowd], free)]
            answer[away] = free[np.arange(len(away)) % len(free)]
        return answer

    def pool_numbers(self, places: Nodes) -> list[int]:
        """(N,) number of each thread's pool, from 1 on, a crowd's the last; 0: it is of none."""
        numbers = np.zeros(len(self._use.accesses), np.int64)
        for number, pool in enumerate(self._pools, 1):
            numbers[pool] = number
        for one in self._twins:
            numbers[one.idle] = one.pool + 1
        if len(self._left_to_crowd(places)):
            numbers[self._crowd] = len(self._pools) + 1
        numbers[[*self._pinned, *self._tied]] = 0
        answer: list[int] = numbers.tolist()
        return answer

    def waits(self, cpus: Sets, *, dealt: bool = False) -> Floats:
        """(N,) how long each thread waits for a cpu, in its own time, when it may run on these.

        On one cpu it is in turns with all others there; on several the kernel finds it an idle one, while
        there is one. So it waits in each stretch as much as in the area of cpus around it that is the fullest
        then: its own, or one together with those that overlap, each with the threads that may run nowhere
        else (Hall's condition). dealt: as if the kernel never moved one to an idle cpu.
        """
        waiting = waiting_where_dealt if dealt else waiting_in_stretches
        having: dict[frozenset[int], list[int]] = {}
        for thread, own in enumerate(cpus):
            having.setdefault(frozenset(own), []).append(thread)
        answer, active = np.zeros(len(cpus)), self._use.activity
        fullest: dict[frozenset[int], Floats] = {}
        for area in _areas(list(having)):
            within = [area] if len(area) == 1 else [own for own in having if own <= area]
            inside = np.array(sorted(thread for own in within for thread in having[own]))
            if len(inside) <= len(area):
                continue
            if active is None:
                each = waiting_of(self._use, inside, len(area)) / len(area)
                answer[inside] = np.maximum(answer[inside], each)
            else:
                each = waiting(active.of(inside), len(area)) / len(area)
                fullest.update((own, np.maximum(fullest.get(own, 0.0), each)) for own in within)
        if active is not None:
            for area, each in fullest.items():
                answer[having[area]] = active.mean_over(each, np.array(having[area]))
        return self._of_pools(answer)

    def dealt_waits(self, cpus: Sets) -> float:
        """How long threads would wait for a cpu, in their own time, if the kernel left each on one; the mean
        over their accesses."""
        key = tuple(cpus)
        if key not in self._dealt:
            made = self._use.accesses
            self._dealt[key] = float(self.waits(cpus, dealt=True) @ made) / max(float(made.sum()), 1.0)
        return self._dealt[key]

    def _of_pools(self, waits: Floats) -> Floats:
        """(N,) the same, with what its threads wait in the mean for all of a pool: they may be exchanged."""
        if self._use.activity is not None:
            ran = self._use.activity.ran
            for pool in self._pools:
                waits[pool] = np.average(waits[pool], weights=ran[pool]) if ran[pool].any() else 0.0
        return waits


def taken_of(cpus: Sets, seats: Sets) -> list[int]:
    """(N,) the cpu that each thread is taken to be on: its seat, where it has several."""
    return [own[0] if len(own) == 1 else seat[0] for own, seat in zip(cpus, seats, strict=True)]


def _areas(sets: Sequence[frozenset[int]]) -> set[frozenset[int]]:
    """Each set of cpus, each two that overlap together, and all that hang together."""
    areas, wide = set(sets), [one for one in sets if len(one) > 1]
    if len(wide) <= MOST_PAIRED:
        areas |= {one | other for one, other in combinations(wide, 2) if one & other}
    whole: list[frozenset[int]] = []
    for one in wide:
        apart = [other for other in whole if not one & other]
        whole = [*apart, one.union(*(other for other in whole if one & other))]
    return areas | set(whole)
