"""What placements of a workload's threads and pages cost on a machine (machine/cost.py): objective `time`.

Places are the machine's nodes, or its last-level caches where nodes have several. Threads of a pool may be
exchanged, so each of them counts as their mean.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.analyzer import UNSEEN_BETWEEN, PageCounts
from numaplan.machine import (
    ACCESS_NS,
    Cost,
    divided_by_caches,
    mean_transfers,
    placement_cost,
)

from ...memory.page_moves import STILL, PageMoves
from ...memory.pages import PagePlan, place_pages, without
from ...memory.run_table import Spread
from ...memory.site_rules import Site
from ...threads.mapping import place_threads
from ...threads.methods import find_method
from ...threads.problem import Floats, Nodes, Problem, new_problem
from ...workload.lasted import lived_of, ran_of
from ...workload.real_time import MOST
from ...workload.roles.expected import expected_use
from ...workload.roles.pools import LIGHT, idle_crowd, idle_twins, may_come_first
from ..task import PlanTask
from .counted_pages import CountedPages, samples_that_count
from .cpu_sets import CpuSets, Sets, taken_of
from .dealing import dealt
from .lines import at_one_price, line_ways, lines_between, way_apart
from .placement import Placement
from .shared_caches import SharedCaches
from .unbound import Unbound

LITTLE = 0.01  # of the cost, up to which threads rather have fewer cpus: moved about they leave their caches
SHORT = 1e-9  # of a run whose length is not known (infinite), no time at all
SELDOM = 1e-3  # of its time, that a thread may wait for a cpu and still stay where it is
ROAMS = 0.05  # of the cost, that a pool must save by going from place to place, whose price is not known


class TimedTask:
    """A workload on a machine, whose placements have a cost; of workloads that tell of memory and use."""

    def __init__(self, task: PlanTask) -> None:
        workload, machine = task.workload, task.machine
        assert workload.pages is not None and workload.use is not None
        self.machine, self.usable, self.options = machine, task.usable, task.options
        self.domains = divided_by_caches(task.usable, machine)
        self.use, self.pools, children, by_chance = expected_use(workload)
        self._threads, self._makers = workload.threads, workload.makers
        ran, lived = workload.there or (
            ran_of(workload.threads, workload.lives, self.use.activity),
            lived_of(workload.threads, workload.lives),
        )
        # AutoNUMA looks at memory in the time of other threads only.
        self.in_real_time = workload.real_time > MOST
        lasted_s = 0.0 if self.in_real_time else workload.lasted_s
        self._lasted_s: Floats = lasted_s * np.maximum(ran, SHORT)
        self.unbound = Unbound(machine, self.use, lived, len(self.domains.machine.cpus))
        self.exchange_unseen = UNSEEN_BETWEEN in workload.notes
        self._unstable = workload.identity is not None and not workload.identity["stable"]
        self._ordered = not workload.unordered
        self.pages = self._counted(workload.pages)
        self.caches = SharedCaches(self.use.caches, self.pages.accesses, self.pools, self.pages.recorded)
        keeping = np.union1d(self.pages.tied, list(task.nodes)).astype(np.int64)
        tied = [thread for pool in self.pools for thread in np.intersect1d(pool, keeping).tolist()]
        tied += np.setdiff1d(np.array(task.loose, np.int64), np.concatenate([[], *self.pools])).tolist()
        places, staying = self.domains.machine, self.pages.staying
        given = [*task.nodes, *task.cpus]
        use = workload.use
        children = [may_come_first(one, given) for one in children]
        self.children = [one.busy for one in children]
        roaming = [
            thread for own, stays in zip(self.pools, staying, strict=True) if not stays for thread in own
        ]
        # Where lines are estimated, neighbours are not known to exchange more. And who roams is on all nodes.
        dealt_out = [
            may_come_first(one, given)
            for one in by_chance
            if use.exact and not np.isin(one.busy, roaming).any()
        ]
        self.by_chance = [one.busy for one in dealt_out]
        may_work = [one for one in (*dealt_out, *children) if len(one.idle)]
        elsewhere = np.concatenate([given, *(one.idle for one in may_work)])
        twins = may_work + [
            one._replace(idle=np.setdiff1d(one.idle, elsewhere))
            for one in idle_twins(
                workload.threads, self.pools, workload.names, use.accesses, use.lines, workload.keeps
            )
        ]
        others = np.concatenate([given, *self.pools, *(one.idle for one in twins)]).astype(np.int64)
        crowd = idle_crowd(use.accesses, use.lines, others, len(places.cpus))
        self.cpus = CpuSets(places, self.use, self.pools, task.cpus, tied, staying, twins, crowd)
        self.seen_on, self.ranks = task.seen_on, task.ranks
        self.ways = mean_transfers(self.machine, [node.cpus for node in places.nodes])
        self.problem = self._problem(task.nodes, task.cpus)
        # Those that tell of memory, and those that tell of lines.
        self.samples = samples_that_count(workload.pages), float(workload.comm.sum()) / 2

    def _counted(self, pages: PageCounts) -> CountedPages:
        given = self._threads, self._lasted_s
        return CountedPages(pages, self.pools, *given, ordered=self._ordered, makers=self._makers)

    def with_misses(self, pages: PageCounts, times: int = 1) -> "TimedTask":
        """The same, but for what reaches memory when the input is so many times as large."""
        other = copy(self)
        other._lasted_s = self._lasted_s * times
        other.pages = other._counted(pages)
        other.caches = self.caches.smaller(times)
        other.samples = samples_that_count(pages), self.samples[1]
        return other

    def with_lines(self, lines: Floats) -> "TimedTask":
        """The same, but for the (N, N) lines that threads take from each other."""
        other = copy(self)
        other.use = self.use.with_lines(lines)
        return other

    def _problem(self, pinned: Mapping[int, int], cpus: Mapping[int, int]) -> Problem:
        places = self.domains.machine
        lines, share = at_one_price(self.use, self.ways)
        found = new_problem(
            lines,
            self.use.accesses,
            places,
            objective="hop",
            seed=self.options.seed,
            effort=self.options.effort,
            tolerance=1.0,
            pinned=self._pinned_places(pinned, cpus),
            groups=self.rows,
        )
        prices = self.ways.copy()
        np.fill_diagonal(prices, np.diag(prices) * share)
        return replace(found, objective="time", distances=prices)

    def _pinned_places(self, pinned: Mapping[int, int], cpus: Mapping[int, int]) -> dict[int, int]:
        """Place by number of the thread; of a node with several caches in turn, but for pins to a cpu."""
        of_cpu = self.domains.machine.node_of_cpu
        free = [thread for thread in pinned if thread not in cpus]
        turns = self.places_on([pinned[thread] for thread in free]).tolist()
        return dict(zip(free, turns, strict=True)) | {thread: of_cpu[cpu] for thread, cpu in cpus.items()}

    @property
    def fixed(self) -> Nodes:
        """Numbers of the threads whose place is given."""
        given = self.problem.fixed
        answer: Nodes = np.empty(0, np.int64) if given is None else np.flatnonzero(np.asarray(given) >= 0)
        return answer

    @property
    def rows(self) -> NDArray[np.int64]:
        """(places,) row of each place's node in the machine."""
        return self.domains.rows

    @cached_property
    def running(self) -> float:
        """Threads that run at a time: the most that any has beside it, in the mean, and itself; of those with
        more than little to do."""
        busy = self.use.accesses >= LIGHT * self.use.accesses.mean()
        return 1.0 + float(self.use.together[np.ix_(busy, busy)].sum(axis=1).max(initial=0.0))

    @cached_property
    def ids(self) -> NDArray[np.int64]:
        """(places,) id of each place's node."""
        return np.array(self.machine.node_ids)[self.rows]

    @property
    def may_place_pages(self) -> bool:
        """Whether regions may have a place: they are those of the next run, or somebody asked for it."""
        return self._ordered or self.options.next_touch or self.options.place_all

    @property
    def may_leave_pages(self) -> bool:
        """Whether pages may be left to who touches them first where that costs little: who does is known,
        which samples do not show, and nobody asked that pages have a place or follow their users; nor are
        roles found by the memory that they use (`nlaunch --match`), as threads do not keep to them."""
        asked = self.options.next_touch or self.options.place_all
        return self.pages.recorded.exact and not asked and not self._unstable

    def places_on(self, nodes: Sequence[int]) -> Nodes:
        """(N,) places of threads on nodes with these ids; a node's caches get them one after the other."""
        turns: dict[int, int] = {}
        answer = []
        for node in nodes:
            own = np.flatnonzero(self.ids == node)
            turns[node] = turns.get(node, -1) + 1
            answer.append(own[turns[node] % len(own)] if len(own) else 0)
        return np.array(answer, np.int64)

    def mapped(self, method: str, problem: Problem | None = None) -> Nodes:
        """(N,) places that a method finds."""
        return place_threads(find_method(method), problem or self.problem)

    def placed(self, name: str, places: Nodes, spread: Spread = "reads") -> Placement:
        """With pages where most of what counts comes from, or spread."""
        places = self.cpus.with_idle(places)
        counts, next_touch = self.pages.deciding, self.options.next_touch
        pages = place_pages(counts, self.ids[places], self.machine, next_touch=next_touch, spread=spread)
        return replace(self._costed(name, places, pages), spread=spread)

    def without(self, name: str, one: Placement, sites: Collection[Site]) -> Placement:
        """The same, but the regions of these sites are where they are touched first."""
        assert one.pages is not None
        pages = without(one.pages, sites, self.pages.deciding, self.ids[one.places], self.machine)
        return replace(self._costed(name, one.places, pages), spread=one.spread)

    def first_touched(self, name: str, places: Nodes) -> Placement:
        """With pages where the kernel puts them; under a plan it does not move them (AutoNUMA)."""
        places = self.cpus.with_idle(places)
        return self._costed(name, places, None)

    def traffic(
        self, places: Nodes, pages: PagePlan | None, *, roams: bool = False, every: bool = False
    ) -> Floats:
        """(N, K) accesses of each thread to memory of each node, with pages placed or where they are touched
        first, of the kind that counts or every; roams: pools go from place to place."""
        rows, nodes = self.rows[places], len(self.machine.nodes)
        counts = self.pages.roaming if roams else self.pages
        if pages is None:
            answer = counts.first_touch_traffic(rows, nodes, every=every)
        else:
            answer = counts.planned_traffic(pages.tables, rows, nodes, every=every)
        if roams:  # which of its threads is where is chance, also for what one allocated
            for pool in self.pools:
                free = np.setdiff1d(pool, [*counts.tied, *self.fixed])
                answer[free] = answer[free].sum(axis=0) / max(len(free), 1)
        return answer

    def again(self, chosen: Placement) -> Placement:
        """A placement of a task that differs from this one in its misses, at this one's cost."""
        traffic = self.traffic(chosen.places, chosen.pages, roams=chosen.roams)
        traffic = self.reaching(traffic, chosen.places)
        cost = self.cost(chosen.cpus, self.cpus.seats(chosen.places), traffic)
        return replace(chosen, traffic=traffic, cost=cost)

    def _costed(self, name: str, places: Nodes, pages: PagePlan | None) -> Placement:
        seats, traffic = self.cpus.seats(places), self.reaching(self.traffic(places, pages), places)
        first = self.cpus.of_pools(places, seats)
        tried = [(first, self.cost(first, seats, traffic))]
        if tried[0][1].cpu_ns > 0:  # too few cpus: the kernel shares out those of a node best
            wider = self.cpus.wider(places, seats)
            found = [(cpus, self.cost(cpus, seats, traffic)) for cpus in wider]
            tried = [found[0], *tried, *found[1:]]
        limit = min(cost.total_ns for _, cost in tried) * (1 + LITTLE)
        cpus, cost = next(one for one in tried if one[1].total_ns <= limit)
        if cost.cpu_ns > ROAMS * cost.total_ns and (every := self.cpus.roaming(places, seats)):
            free = np.setdiff1d(np.concatenate(self.pools), self.fixed)
            roams = bool(self.cpus.waits(every)[free].max(initial=0.0) > SELDOM)
            apart = self.reaching(self.traffic(places, pages, roams=True), places) if roams else traffic
            roaming = self.cost(every, seats, apart)
            if roaming.total_ns < (1 - ROAMS) * cost.total_ns:
                return Placement(name, places, every, pages, apart, roaming, roams=roams)
        return Placement(name, places, cpus, pages, traffic, cost)

    def reaching(self, traffic: Floats, places: Nodes) -> Floats:
        """(N, K) all that each thread accesses, as far as it misses its place's cache."""
        answer: Floats = self.pages.whole(traffic) * self.caches.misses(places)[:, None]
        return answer

    def cost(
        self, cpus: Sets, seats: Sets, traffic: Floats, moved: PageMoves = STILL, ways: Floats | None = None
    ) -> Cost:
        """What it costs to have these cpus; seats: one of each thread, where it has several; moved: what the
        kernel moves; ways: (N, N) ns that a line takes of those where no cache is shared, if not by seats."""
        taken, places = taken_of(cpus, seats), self.domains.machine
        lines = self.use.lines if ways is not None else lines_between(self.use, places.node_of_cpu, taken)
        if len(set(self.rows.tolist())) > 1:
            lines = lines * (1 + self.unbound.left_behind(cpus))
        cost = placement_cost(
            self.machine,
            taken,
            traffic,
            lines=lines,
            ways=self.line_ways(cpus, seats) if ways is None else ways,
            accesses=self.use.accesses,
            shared=self.cpus.waits(cpus),
            pages_moved=moved.pages,
        )
        more = moved.lines * way_apart(self.machine) + self.unbound.own_lines_ns(cpus)
        return msgspec.structs.replace(cost, lines_ns=cost.lines_ns + more)

    def line_ways(self, cpus: Sets, seats: Sets) -> Floats:
        """(N, N) ns that a line takes from the column's thread to the row's, with these cpus."""
        return line_ways(self.machine, self.domains.machine.node_of_cpu, np.diag(self.ways), cpus, seats)

    def in_turn(self, siblings: Iterable[Nodes], places: Nodes) -> Nodes:
        """(N,) the same places, but siblings whose numbers are chance follow each other in turn on theirs."""
        return self.cpus.with_idle(dealt(siblings, places, self.rows))

    def busy_ns(self, chosen: Placement) -> float:
        """What all threads take together, waiting and not."""
        return float(self.use.accesses.sum()) * ACCESS_NS + chosen.cost.total_ns
