"""Our policy: solve the mapping again with what was learnt, and move only what pays back within a horizon.

It considers: leaving threads where they are, bringing them to their memory as it is, and the mapper's
solutions of the decayed communication matrix, balanced and not. Each is judged with the pages that would
follow. What is saved is the waiting predicted to vanish over `horizon` seconds, less what threads that wait
less ask for more where load slows controllers; what it costs, the copying of pages and the cold caches of
threads. Threads move only if the best saves more than it costs, and `gain` of all waiting; each page only if
its own saving covers its own copy and those of the unsampled pages that go along. What a page saves is
expected to last only as long as such savings have been missed so far, for copies are most of the price. After
threads moved, others must wait until what followed was seen; when solving finds nothing, the next time comes
later and later, unless threads come or go.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ...actions import Action, Decision, MoveThread
from ...observation import Floats, Ints, Observation
from ..page_sets import move_actions, split_keys
from ..parameters import parameter, period
from .grouping import Grouping
from .huge_pages import NONE as NO_PAGES, SMALL_PAGES, Sent, as_one, huge_pages, in_huge, sent_pages
from .knowledge import NONE, Sharing, Uses, in_rows, learn
from .outlook import Outlook, fit_outlook
from .seating import free_seats, group_threads, labelled, near_memory, seated


class Memory(NamedTuple):
    """What is remembered: uses, tids of the last interval, when to solve again, how long to wait
    then, what the mapper put together by objective, pages sent away last, huge pages, thread-seconds waited
    so far that better places might have saved.
    """

    uses: Uses
    tids: frozenset[int]
    solve_at: float
    pause: float
    groupings: dict[str, Grouping]
    sent: Sent = Sent()
    huge: Ints = NO_PAGES
    avoidable: float = 0.0


class Present(NamedTuple):
    """An interval, and how it is now: thread-seconds of waiting a second, how much of that is lost time
    (misses overlap, so no more than threads are busy), what is left of a saving once threads that wait less
    ask for more, (M,) thread-seconds that moving each page takes, thread-seconds waited so far that better
    places might have saved, and for how many seconds a page's saving is expected to last.
    """

    observation: Observation
    outlook: Outlook
    waiting: float
    overlap: float
    left: float
    prices: Floats
    avoidable: float
    page_horizon: float

    @property
    def worth(self) -> float:
        """Seconds won by a second of waiting less."""
        return max(self.overlap * self.left, 1e-9)


class Prospect(NamedTuple):
    """A placement: (T,) thread nodes, (M,) page nodes, (M,) ns a second each page saves, waiting in s a
    second.
    """

    name: str
    nodes: Ints
    pages: Ints
    saved: np.ndarray[tuple[int], np.dtype[np.float64]]
    waiting: float
    at_worst: float


@dataclass(frozen=True)
class Numaplan:
    """Parameters are in seconds, or shares."""

    horizon: float = parameter(10.0, "seconds within which a move must pay back, for pages at most", low=0.01)
    decay: float = parameter(0.5, "weight that older samples keep per interval", high=0.99)
    gain: float = parameter(0.05, "share of all waiting that moving threads must save", high=1.0)
    page_cost: float = parameter(6.6e-6, "seconds to migrate 4 KiB (next-touch: 2.5 us and 1 GB/s)")
    flush: float = parameter(1e-6, "seconds that this costs each running thread of the process")
    warm_up: float = parameter(0.003, "seconds a thread loses to cold caches on another node")
    settle: float = parameter(2.0, "seconds after moving threads before moving more")
    patience: float = parameter(16.0, "longest time between intervals in s while nothing pays")
    fill: int = parameter(512, "small pages between two of one destination that go along")
    pages: int = parameter(1 << 20, "uses of pages remembered", low=1)
    period_s: float = period(1.0)
    needs: ClassVar[frozenset[str]] = frozenset({"accesses"})
    balances: ClassVar[bool] = False
    trades_distance: ClassVar[bool] = False

    def decide(self, observation: Observation, state: Memory | None) -> Decision:
        """Threads and pages that pay back."""
        before = state or Memory(NONE, frozenset(), 0.0, 0.0, {})
        uses = learn(before.uses, observation, self.decay if state else 0.0, self.pages)
        tids = frozenset(observation.threads.tid.tolist())
        huge = np.union1d(before.huge, huge_pages(before.sent, observation))
        memory = before._replace(uses=uses, tids=tids, huge=huge, sent=Sent())
        sharing = in_rows(as_one(uses, huge), observation)
        if not len(sharing.keys):
            return Decision((), memory)
        present = self._present(observation, sharing, huge, before.avoidable)
        memory = memory._replace(avoidable=present.avoidable)
        stay = self._prospect(present, "stay", observation.threads.node)
        best, memory = stay, self._due(memory, before, observation)
        if memory.solve_at <= observation.time_s:
            best, memory = self._best(present, stay, memory)
            memory = self._solve_again(memory, observation.time_s, best is not stay)
        threads = self._thread_actions(observation, best, stay)
        memory = memory._replace(sent=sent_pages(observation, sharing, best.pages))
        return Decision(threads + self._page_actions(observation, sharing, best), memory)

    def _due(self, memory: Memory, before: Memory, observation: Observation) -> Memory:
        """Solve at once when threads came or went."""
        if memory.tids != before.tids:
            return memory._replace(solve_at=observation.time_s, pause=0.0)
        return memory

    def _solve_again(self, memory: Memory, now: float, moved: bool) -> Memory:
        pause = 0.0 if moved else min(self.patience, max(self.period_s, 2.0 * memory.pause))
        wait = self.settle if moved else pause
        return memory._replace(solve_at=now + wait, pause=pause)

    def _present(self, observation: Observation, sharing: Sharing, huge: Ints, avoidable: float) -> Present:
        """avoidable: until this interval."""
        outlook, threads = fit_outlook(observation, sharing), observation.threads
        waiting, _ = outlook.waiting(threads.node, sharing.node)
        busy: Floats = np.bincount(threads.process, threads.busy, observation.processes.count).astype(float)
        overlap = min(1.0, float(busy.sum()) / waiting) if waiting > 0 else 0.0
        left = outlook.left_of_savings(sharing.node)
        prices = self._prices(observation, sharing, huge, busy)
        rate = max(waiting - outlook.least_waiting(), 0.0)  # rounding can leave less than none
        avoidable += rate * observation.interval_s
        lasts = min(self.horizon, avoidable / rate) if rate > 0 else self.horizon
        return Present(observation, outlook, waiting, overlap, left, prices, avoidable, lasts)

    def _prices(self, observation: Observation, sharing: Sharing, huge: Ints, busy: Floats) -> Floats:
        """(M,) thread-seconds that moving each page takes. busy: (P,) threads of each process that run."""
        process, _ = split_keys(sharing.keys)
        along = self._between(observation, sharing)
        pages = 1.0 + (along + np.append(0, along[:-1])) / 2.0  # each end pays for one half
        # What lies beside a huge page's sample is mostly of itself.
        pages = np.where(in_huge(observation, sharing, huge), SMALL_PAGES, pages)
        each = (self.page_cost + self.flush * busy[process]) * observation.pages.bytes_per_page / 4096
        prices: Floats = each * pages
        return prices

    def _prospect(self, present: Present, name: str, nodes: Ints) -> Prospect:
        price = present.prices / present.page_horizon / present.worth * 1e9
        goal, saved = present.outlook.page_goals(nodes, present.outlook.sharing.node, price)
        return Prospect(name, nodes, goal, saved, *present.outlook.waiting(nodes, goal))

    def _best(self, present: Present, stay: Prospect, memory: Memory) -> tuple[Prospect, Memory]:
        """The prospect that saves most after its price, `stay` unless another saves enough."""
        movers = seated(present.observation)
        seats = free_seats(present.observation, movers)
        if len(movers) < 1 or np.count_nonzero(seats) < 2:
            return stay, memory
        reluctance = self.warm_up / self.horizon / present.worth * 1e9
        options = [
            ("to memory", near_memory(present.outlook, present.observation, movers, seats, reluctance))
        ]
        groupings = group_threads(present.outlook, present.observation, movers, seats, memory.groupings)
        options += [
            (name, labelled(present.outlook, present.observation, movers, seats, grouping.group))
            for name, grouping in groupings.items()
        ]
        prospects = [self._prospect(present, name, nodes) for name, nodes in options]
        best = max(prospects, key=lambda prospect: self._net(present, prospect, stay))
        saved = _sure(best, stay) * present.left
        worth = self._net(present, best, stay) > 0 and saved > self.gain * present.waiting
        return best if worth else stay, memory._replace(groupings=groupings)

    def _net(self, present: Present, prospect: Prospect, stay: Prospect) -> float:
        """Seconds gained over staying, at the worse of both outlooks, less the price."""
        place = present.outlook.sharing.node
        cost = present.prices[prospect.pages != place].sum() - present.prices[stay.pages != place].sum()
        cost += np.count_nonzero(prospect.nodes != stay.nodes) * self.warm_up
        return float(_sure(prospect, stay) * present.worth * self.horizon - cost)

    def _thread_actions(self, observation: Observation, best: Prospect, stay: Prospect) -> tuple[Action, ...]:
        if best is stay:
            return ()
        share = 1.0 - best.waiting / max(stay.waiting, 1e-300)
        reason = f"{best.name}: waits {share:.0%} less"
        threads, machine = observation.threads, observation.machine
        rows = np.flatnonzero(best.nodes != threads.node)
        return tuple(
            MoveThread(int(threads.tid[row]), int(machine.node_ids[best.nodes[row]]), reason)
            for row in rows.tolist()
        )

    def _between(self, observation: Observation, sharing: Sharing) -> Ints:
        """(M,) how many unsampled pages lie between each page and the next, 0 where too many to go along."""
        after = np.diff(sharing.keys, append=sharing.keys[-1] + 1) - 1
        return np.where(after <= self.fill * 4096 // observation.pages.bytes_per_page, after, 0)

    def _page_actions(self, observation: Observation, sharing: Sharing, best: Prospect) -> tuple[Action, ...]:
        """Pages that pay for themselves, those that save most first, with the unsampled ones between them."""
        rows = np.flatnonzero((best.pages != sharing.node) & (best.pages >= 0) & (sharing.node >= 0))
        if not len(rows):
            return ()
        keys, goal = sharing.keys, best.pages
        after = self._between(observation, sharing)
        joined = (after > 0) & (goal == np.append(goal[1:], -1))
        gaps = rows[joined[rows]]
        between = np.concatenate(
            [np.arange(keys[row] + 1, keys[row + 1]) for row in gaps.tolist()] or [keys[:0]]
        )
        order = rows[np.argsort(-best.saved[rows], kind="stable")]
        moved = np.concatenate([keys[order], between])
        goals = np.concatenate([goal[order], np.repeat(goal[gaps], after[gaps])])
        return move_actions(observation, moved, goals, "its users wait less there")


def _sure(prospect: Prospect, stay: Prospect) -> float:
    """Waiting saved over staying, at the worse of both outlooks."""
    return min(stay.waiting - prospect.waiting, stay.at_worst - prospect.at_worst)
