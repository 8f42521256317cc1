"""What placements of a workload's threads and pages cost on a machine (machine/cost.py): objective `time`.

Places are the machine's nodes, or its last-level caches where nodes have several. Threads of a pool may be
exchanged, so each of them counts as their mean. Without a plan the kernel starts threads on one node after
the other, moves them about, and puts pages where they are touched first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from numaplan.analyzer import PageCounts
from numaplan.machine import (
    ACCESS_NS,
    OVERLAP,
    Cost,
    divided_by_caches,
    latencies,
    mean_transfers,
    placement_cost,
)

from ..memory.page_moves import pages_moved
from ..memory.pages import PagePlan, place_pages
from ..memory.run_table import Spread
from ..memory.traffic import first_touches, planned_traffic
from ..threads.cost import one_hot
from ..threads.mapping import place_threads
from ..threads.methods import find_method
from ..threads.phases import goal_of
from ..threads.problem import Floats, Nodes, Problem, new_problem
from ..threads.refine import refine
from ..threads.seats import assign_cpus
from ..workload.pools import exchanged_matrix, exchanged_pages, exchanged_vector, pools_of
from ..workload.use import ThreadUse
from .predict import node_shares
from .task import PlanTask

MOST_ROUNDS = 4
WORTH = 1e-3  # of the cost, that a round must save
STAYS = 0.5  # of the time, that a thread nobody binds is where it first was
MOST_SHIFTS = 16  # placements that stand for all that the kernel may choose
LITTLE = 1e-3  # of what decides where pages go
LIGHT = 0.05  # of the mean thread's accesses, below which one needs no cpu of its own
SURE = 2.0  # standard errors


@dataclass(frozen=True)
class Placement:
    """places: (N,) positions among the task's places, bound: whether threads stay there; cpus: of each;
    pages: where they are put, None: where they are touched first; traffic: (N, K) expected accesses of each
    thread to memory of each node, of the kind that counts."""

    name: str
    places: Nodes
    cpus: list[tuple[int, ...]]
    pages: PagePlan | None
    traffic: Floats
    cost: Cost
    bound: bool = True


class TimedTask:
    """A workload on a machine, whose placements have a cost; of workloads that tell of memory and use."""

    def __init__(self, task: PlanTask) -> None:
        workload, machine = task.workload, task.machine
        assert workload.pages is not None and workload.use is not None
        self.machine, self.usable, self.options, self.pinned_cpus = (
            machine,
            task.usable,
            task.options,
            task.cpus,
        )
        self.domains = divided_by_caches(task.usable, machine)
        self.pools = pools_of(workload.threads, workload.keeps) if workload.keeps else []
        self.use: ThreadUse = msgspec.structs.replace(
            workload.use,
            accesses=exchanged_vector(workload.use.accesses, self.pools),
            lines=exchanged_matrix(workload.use.lines, self.pools),
            together=exchanged_matrix(workload.use.together, self.pools),
        )
        self.by_memory = workload.pages.memory_accesses is not None
        self.accesses = exchanged_pages(workload.pages, self.pools)
        self.stats = misses_of(self.accesses)
        self._deciding = _deciding(self.accesses, self.stats)
        self.seen_on = task.seen_on
        self.problem = self._problem(task.nodes)
        self._samples = float(_samples(workload.pages)), float(workload.comm.sum()) / 2

    def _problem(self, pinned: Mapping[int, int]) -> Problem:
        places = self.domains.machine
        found = new_problem(
            self.use.lines,
            self.use.accesses,
            places,
            objective="hop",
            seed=self.options.seed,
            effort=self.options.effort,
            tolerance=1.0,
            pinned=self._pinned_places(pinned),
        )
        prices = mean_transfers(self.machine, [node.cpus for node in places.nodes])
        return replace(found, objective="time", distances=prices)

    def _pinned_places(self, pinned: Mapping[int, int]) -> dict[int, int]:
        """Place by number of the thread; of a node with several caches in turn, but for pins to a cpu."""
        own: dict[int, list[int]] = {}
        for place, node in enumerate(self.ids.tolist()):
            own.setdefault(node, []).append(place)
        of_cpu = self.domains.machine.node_of_cpu
        answer = {thread: of_cpu[cpu] for thread, cpu in self.pinned_cpus.items()}
        for turn, (thread, node) in enumerate(pinned.items()):
            answer.setdefault(thread, own[node][turn % len(own[node])])
        return answer

    @property
    def rows(self) -> NDArray[np.int64]:
        """(places,) row of each place's node in the machine."""
        return self.domains.rows

    @cached_property
    def running(self) -> float:
        """Threads that run at a time: the most that any has beside it, in the mean, and itself."""
        return 1.0 + float(self.use.together.sum(axis=1).max(initial=0.0))

    @cached_property
    def ids(self) -> NDArray[np.int64]:
        """(places,) id of each place's node."""
        return np.array(self.machine.node_ids)[self.rows]

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
        next_touch = self.options.next_touch
        pages = place_pages(
            self._deciding, self.ids[places], self.machine, next_touch=next_touch, spread=spread
        )
        rows = self.rows[places]
        traffic, _ = planned_traffic(self.stats, pages.tables, rows, len(self.machine.nodes))
        return self._costed(name, places, pages, traffic)

    def first_touched(self, name: str, places: Nodes) -> Placement:
        """With pages where the kernel puts them."""
        moved = pages_moved(self._first_touches, self.rows[places])
        return self._costed(name, places, None, self._first_touch(places), moved)

    def _first_touch(self, places: Nodes) -> Floats:
        """(N, K) what each thread accesses of each node's memory where it is touched first."""
        return planned_traffic(self._touched, {}, self.rows[places], len(self.machine.nodes))[0]

    @cached_property
    def _first_touches(self) -> PageCounts:
        return first_touches(self.accesses)

    @cached_property
    def _touched(self) -> PageCounts:
        """What counts, of pages whose first touch is known."""
        known, stats = self._first_touches, self.stats
        every = self.accesses.all_accesses
        kept = np.divide(known.all_accesses, every, out=np.zeros(len(every)), where=every > 0)
        return msgspec.structs.replace(
            stats, accesses=stats.all_accesses * kept, before=None, toucher=known.toucher
        )

    def _costed(
        self, name: str, places: Nodes, pages: PagePlan | None, traffic: Floats, moved: float = 0.0
    ) -> Placement:
        seated, traffic = self.seated(places), self._whole(traffic)
        tried = [self._seated(places, seated, seated, traffic, moved)]
        if tried[0][1].cpu_ns > 0:  # too few cpus: the kernel shares out those of a node best
            wider = (self._light_on_places(places), self._on_places(places))
            tried += [self._seated(places, seated, cpus, traffic, moved) for cpus in wider]
        cpus, cost = min(tried, key=lambda one: one[1].total_ns)
        return Placement(name, places, cpus, pages, traffic, cost)

    def _seated(
        self,
        places: Nodes,
        seated: Sequence[tuple[int, ...]],
        cpus: Sequence[tuple[int, ...]],
        traffic: Floats,
        moved: float,
    ) -> tuple[list[tuple[int, ...]], Cost]:
        """The cpus with those of pools and pins, and what having them costs; seated: one of each thread."""
        held = [seated[t] if t in self.pinned_cpus else own for t, own in enumerate(cpus)]
        found = self._in_pools(places, held)
        seats = [own[0] if len(own) == 1 else seat[0] for own, seat in zip(found, seated, strict=True)]
        return found, self._cost(seats, traffic, self._waits(found), moved)

    def seated(self, places: Nodes) -> list[tuple[int, ...]]:
        """A cpu of its own for each thread, as far as there are any."""
        return assign_cpus(
            self.use.lines, self.domains.machine, places.tolist(), self.pinned_cpus, self.use.accesses
        )

    def _on_places(self, places: Nodes) -> list[tuple[int, ...]]:
        """All cpus of each thread's place."""
        nodes = self.domains.machine.nodes
        return [nodes[place].cpus for place in places.tolist()]

    def _light_on_places(self, places: Nodes) -> list[tuple[int, ...]]:
        """Cpus of their own for the threads that have most to do, all of their place for the others."""
        busy = np.flatnonzero(self.use.accesses >= LIGHT * self.use.accesses.mean())
        answer = self._on_places(places)
        lines, made = self.use.lines[np.ix_(busy, busy)], self.use.accesses[busy]
        own = assign_cpus(lines, self.domains.machine, places[busy].tolist(), None, made)
        for thread, cpus in zip(busy.tolist(), own, strict=True):
            answer[thread] = cpus
        return answer

    def _in_pools(self, places: Nodes, cpus: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """The cpus of each thread: its own, or for a pool's all of the places that the pool is on."""
        answer = list(cpus)
        for pool in self.pools:
            nodes = self.domains.machine.nodes
            everywhere = tuple(cpu for place in np.unique(places[pool]).tolist() for cpu in nodes[place].cpus)
            for thread in pool.tolist():
                answer[thread] = everywhere if thread not in self.pinned_cpus else answer[thread]
        return answer

    def pool_numbers(self) -> list[int]:
        """(N,) number of each thread's pool, from 1 on; 0: it is of none."""
        numbers = np.zeros(self.problem.threads, np.int64)
        for number, pool in enumerate(self.pools, 1):
            numbers[pool] = number
        numbers[list(self.pinned_cpus)] = 0
        answer: list[int] = numbers.tolist()
        return answer

    def _cost(self, seats: Sequence[int], traffic: Floats, waits: Floats, moved: float) -> Cost:
        return placement_cost(
            self.machine,
            seats,
            traffic,
            lines=self.use.lines,
            accesses=self.use.accesses,
            shared=waits,
            pages_moved=moved,
        )

    def _waits(self, cpus: Sequence[tuple[int, ...]]) -> Floats:
        """(N,) how long each thread waits for a cpu, in its own time, when it may run on these.

        On one cpu it is in turns with all others there; on several the kernel finds it an idle one.
        """
        sets = {own: number for number, own in enumerate(dict.fromkeys(cpus))}
        # What part of its time the one (row) is on cpus of the other.
        meet = np.array([[len(set(a) & set(b)) / len(a) for b in sets] for a in sets])
        of = np.array([sets[own] for own in cpus])
        running = self.use.together @ one_hot(of, len(sets)) @ meet  # (N, sets) beside each thread, there
        seats = np.array([len(own) for own in sets])
        mine = running[np.arange(len(of)), of]
        answer: Floats = np.maximum((1.0 + mine) / seats[of] - 1.0, 0.0)
        return answer

    def _whole(self, traffic: Floats) -> Floats:
        """(N, K) the same for all that each thread accesses, where it is not known of some where it is."""
        stats = self.stats
        known = (stats.thread >= 0) & (stats.thread < len(traffic))
        made = np.bincount(stats.thread[known], stats.all_accesses[known], len(traffic))
        if stats.elsewhere is not None:
            made = made + stats.elsewhere.sum(axis=1)
        seen = traffic.sum(axis=1)
        shares = np.full_like(traffic, 1.0 / traffic.shape[1])
        np.divide(traffic, seen[:, None], out=shares, where=seen[:, None] > 0)
        answer: Floats = shares * (np.maximum(made, seen) * stats.period)[:, None]
        return answer

    def alone(self) -> Placement:
        """Without a plan: threads where they were recorded, or one node after the other, and moved about."""
        start = self._begun()
        traffic = self._whole(self._first_touch(start))
        everywhere = np.array([cpu for node in self.domains.machine.nodes for cpu in node.cpus])
        turn = {cpu: place for place, cpu in enumerate(everywhere.tolist())}
        first = np.array([turn[own[0]] for own in self.seated(start)])
        cpus = [tuple(everywhere.tolist())] * len(first)
        waits = self._waits(cpus)
        shifts = np.unique(np.linspace(0, len(turn), MOST_SHIFTS, endpoint=False).astype(int))
        seats = [everywhere[(first + shift) % len(turn)] for shift in shifts]
        moved = pages_moved(self._first_touches, self.rows[start])
        costs = [self._cost(seat.tolist(), traffic, waits, moved) for seat in seats]
        weights = np.append(STAYS, np.full(len(costs) - 1, (1 - STAYS) / max(len(costs) - 1, 1)))
        parts = [[getattr(cost, field) for field in Cost.__struct_fields__] for cost in costs]
        mean = Cost(*(weights @ np.array(parts) / weights.sum()).tolist())
        return Placement("alone", start, cpus, None, traffic, mean, bound=False)

    def local_shares(self, chosen: Placement) -> tuple[float, float]:
        """Share of all accesses to memory of the thread's own node, and of those that count; -1: none."""
        return self._local(chosen, self._all_traffic(chosen)), self._local(chosen, chosen.traffic)

    def node_shares(self, chosen: Placement) -> tuple[float, ...]:
        """(K,) share of all accesses of each node's threads to its own memory; -1 where there are none."""
        return node_shares(self._on(chosen).T @ self._all_traffic(chosen))

    def _all_traffic(self, chosen: Placement) -> Floats:
        """(N, K) accesses of any kind of each thread to memory of each node."""
        counted = self.accesses if chosen.pages else self._first_touches
        tables = chosen.pages.tables if chosen.pages else {}
        return planned_traffic(counted, tables, self.rows[chosen.places], len(self.machine.nodes))[0]

    def between_nodes(self, chosen: Placement) -> Floats:
        """(K, K) expected accesses that count, from each node to memory of each."""
        answer: Floats = self._on(chosen).T @ chosen.traffic
        return answer

    def busy_ns(self, chosen: Placement) -> float:
        """What all threads take together, waiting and not."""
        return float(self.use.accesses.sum()) * ACCESS_NS + chosen.cost.total_ns

    def _on(self, chosen: Placement) -> Floats:
        """(N, K) share of its time that each thread is on each node."""
        here = one_hot(self.rows[chosen.places], len(self.machine.nodes))
        if chosen.bound:
            return here
        sizes = np.array([len(node.cpus) for node in self.machine.nodes])
        answer: Floats = STAYS * here + (1 - STAYS) * sizes / sizes.sum()
        return answer

    def _local(self, chosen: Placement, traffic: Floats) -> float:
        total = float(traffic.sum())
        if total <= 0:
            return -1.0
        return float((traffic * self._on(chosen)).sum()) / total

    def _begun(self) -> Nodes:
        """(N,) place of each thread as it begins."""
        return self.places_on(self.seen_on) if self.seen_on else self.mapped("scatter")

    def improved(self, name: str, places: Nodes) -> Placement:
        """Threads and pages in turn, from a placement on, as long as that pays."""
        best = self.placed(name, places)
        for _ in range(MOST_ROUNDS):
            assert best.pages is not None and best.pages.homes is not None
            sizes = np.bincount(best.places, minlength=len(self.rows))
            goal = goal_of(replace(self.problem, sizes=sizes), self._pull(best.pages.homes))
            found = self.placed(name, refine(goal, best.places))
            if found.cost.total_ns >= best.cost.total_ns * (1 - WORTH):
                break
            best = found
        return best

    def _pull(self, homes: Nodes) -> Floats:
        """(N, places) ns that each thread would wait on each for the pages where they are."""
        stats = self.stats
        used = (homes >= 0) & (stats.thread >= 0) & (stats.thread < self.problem.threads)
        counts = np.zeros((self.problem.threads, len(self.machine.nodes)))
        np.add.at(counts, (stats.thread[used], homes[used]), stats.all_accesses[used])
        answer: Floats = counts @ latencies(self.machine)[self.rows].T * (stats.period / OVERLAP)
        return answer

    def doubt(self, one: Placement, other: Placement) -> float:
        """ns by which the difference of two costs may be off because it is told from samples."""
        memory = abs(one.cost.memory_ns + one.cost.queue_ns - other.cost.memory_ns - other.cost.queue_ns)
        lines = abs(one.cost.lines_ns - other.cost.lines_ns)
        parts = np.array([memory, lines]) / np.sqrt(np.maximum(self._samples, 1.0))
        return SURE * float(np.hypot(*parts))


def misses_of(stats: PageCounts) -> PageCounts:
    """The same of what reached memory, where that is known; all accesses otherwise."""
    memory = stats.memory_accesses
    if memory is None:
        return stats
    used, begun = memory
    return msgspec.structs.replace(stats, accesses=used, before=begun, elsewhere=stats.elsewhere_missed)


def _deciding(accesses: PageCounts, counted: PageCounts) -> PageCounts:
    """What decides where pages go: accesses, each with the share of it that is expected to count.

    In the unit of accesses, by whose number it is judged what is chance; a little of all accesses decides
    where nothing was seen to miss.
    """
    made, counting = float(accesses.accesses.sum()), float(counted.accesses.sum())
    if counting <= 0 or made <= 0:
        return accesses
    weight = counted.accesses * ((1 - LITTLE) * made / counting) + LITTLE * accesses.accesses
    return msgspec.structs.replace(accesses, accesses=weight)


def _samples(stats: PageCounts) -> float:
    """How many samples tell of what counts."""
    if stats.missed is None:
        counted, apart = stats.all_accesses, stats.elsewhere
    else:
        counted, apart = stats.missed, stats.elsewhere_missed
    return float(counted.sum()) + (0.0 if apart is None else float(apart.sum()))
