"""Carry out actions on running processes, within the budget, so that each can be undone."""

import errno
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from numaplan.mapper import CROWDED, Action, Ints, MovePages, MoveThread, Observation

from ..process import page_moves as kernel
from .bindings import Bindings
from .system import Cpus

_SAVED_SECONDS = 4.0  # of the budget
_PROBLEMS = {
    errno.ESRCH: "it has ended",
    errno.EPERM: "not permitted",
    errno.EINVAL: "none of these cpus is allowed here",
}


@dataclass
class Budget:
    """How much may be moved: so many threads and megabytes of pages a second, saved up for a few seconds."""

    moves: float = 8.0
    megabytes: float = 256.0

    def __post_init__(self) -> None:
        self._moves = self.moves * _SAVED_SECONDS
        self._bytes = self.megabytes * 1e6 * _SAVED_SECONDS
        self._then: float | None = None

    def refill(self, now: float) -> None:
        """Add what the time since the last call allows. now: seconds."""
        passed = 0.0 if self._then is None else max(0.0, now - self._then)
        self._then = now
        self._moves = min(self._moves + passed * self.moves, max(1.0, self.moves * _SAVED_SECONDS))
        self._bytes = min(self._bytes + passed * self.megabytes * 1e6, self.megabytes * 1e6 * _SAVED_SECONDS)

    def take_moves(self, count: int) -> bool:
        """Whether so many threads may be moved now; if so they are paid for."""
        if count > self._moves:
            return False
        self._moves -= count
        return True

    def take_bytes(self, wanted: int) -> int:
        """How many of the wanted bytes may be moved now; they are paid for."""
        granted = int(min(wanted, max(0.0, self._bytes)))
        self._bytes -= granted
        return granted

    def give_back_bytes(self, unused: int) -> None:
        """What was granted but not moved."""
        self._bytes += unused


@dataclass(frozen=True)
class ActionResult:
    """One action and what came of it. moved: threads or pages; before: masks by tid; pages_before: (pid, page
    numbers, their nodes before); problem: why (some of) it was not done.
    """

    action: Action
    moved: int = 0
    before: tuple[tuple[int, Cpus], ...] = ()
    pages_before: tuple[int, Ints, Ints] | None = None
    problem: str = ""


@dataclass
class Actuator:
    """Moves threads and pages.

    node_cpus: node id -> its cpus; pid_of: process of each thread; the totals count all moves, undoing too.
    """

    node_cpus: dict[int, Cpus]
    bindings: Bindings
    budget: Budget
    pid_of: dict[int, int] = field(default_factory=dict)
    threads_moved: int = 0
    pages_moved: int = 0
    _confined: set[int] = field(default_factory=set)  # tids
    _placed: set[int] = field(default_factory=set)  # processes whose threads a policy moved
    _busy: frozenset[int] = frozenset()  # tids in the interval before

    def apply(self, actions: Sequence[Action]) -> list[ActionResult]:
        """Carry them out in this order; both halves of a swap, or neither."""
        done: list[ActionResult] = []
        swapped: set[int] = set()
        partners = {action.tid: action for action in actions if isinstance(action, MoveThread)}
        for action in actions:
            if isinstance(action, MovePages):
                done.append(self._move_pages(action))
            elif action.tid not in swapped:
                other = partners.get(action.partner) if action.partner is not None else None
                swapped |= {action.tid, action.partner} if other and action.partner is not None else set()
                done += self._move_threads([action, other] if other else [action])
        return done

    def confine(self, observation: Observation) -> list[ActionResult]:
        """Bind the threads that nobody bound yet to the node they are on, if that has a cpu for each.

        What a policy chose for pages and threads rests on where the other threads are; the kernel does not
        know that, and would move them. Moves nothing, and so costs nothing of the budget. When threads ended,
        those bound so on nodes that the kernel would balance are let go instead.
        """
        threads, machine = observation.threads, observation.machine
        before, self._busy = self._busy, frozenset(threads.tid[threads.running].tolist())
        if before - frozenset(threads.tid.tolist()) and self._let_go(observation):
            return []
        crowded = np.bincount(threads.node, threads.busy, machine.nodes) > machine.seats + CROWDED
        rows = np.flatnonzero(threads.movable & ~crowded[threads.node] & threads.running)
        done = []
        for row in rows.tolist():
            tid, node = int(threads.tid[row]), int(machine.node_ids[threads.node[row]])
            old = self.bindings.mask(tid)
            cpus = self.bindings.usable_cpus(self.pid_of.get(tid, -1), self.node_cpus.get(node, frozenset()))
            if (
                old is None or not cpus or self.bindings.is_bound(tid) or old <= cpus
            ):  # closer already, by a plan
                continue
            if not self._bind(tid, cpus):
                self._confined.add(tid)
                done.append(ActionResult(MoveThread(tid, node, "stays where it is"), 0, ((tid, old),)))
        return done

    def _let_go(self, observation: Observation) -> bool:
        """Give confined threads on the fuller nodes their first masks back, but for processes whose threads
        were placed; whether there were any.
        """
        threads, seats = observation.threads, observation.machine.seats
        count = np.bincount(threads.node, threads.busy, len(seats))
        with_one_more = ((count + 1) / np.maximum(seats, 1))[seats > 0].min(initial=np.inf)
        fuller = (count - CROWDED) / np.maximum(seats, 1) > with_one_more
        self._confined &= set(threads.tid.tolist())
        free = [
            tid
            for tid, node in zip(threads.tid.tolist(), threads.node.tolist(), strict=True)
            if fuller[node] and tid in self._confined and self.pid_of.get(tid) not in self._placed
        ]
        for tid in free:
            self.bindings.release(tid)
        self._confined -= set(free)
        return bool(free)

    def undo(self, done: Sequence[ActionResult]) -> int:
        """Put back what these actions moved, the last first; returns how many threads and pages went back."""
        count = 0
        for one in reversed(done):
            for tid, mask in one.before:
                count += self._rebind(tid, mask)
            if one.pages_before is not None:
                count += self._return_pages(*one.pages_before)
        return count

    def _move_threads(self, actions: list[MoveThread]) -> list[ActionResult]:
        if not self.budget.take_moves(len(actions)):
            return [ActionResult(action, problem="over the budget") for action in actions]
        before: list[tuple[int, Cpus]] = []
        for action in actions:
            cpus = self.bindings.usable_cpus(self.pid_of.get(action.tid, -1), self._cpus(action))
            old = self.bindings.mask(action.tid)
            problem = self._bind(action.tid, cpus) if old is not None and cpus else "no cpu of it is allowed"
            if problem:
                for tid, mask in before:
                    self._rebind(tid, mask)
                return [ActionResult(one, problem=problem) for one in actions]
            before.append((action.tid, old or cpus))
        self.threads_moved += len(actions)
        self._placed |= {self.pid_of.get(action.tid, -1) for action in actions}
        return [ActionResult(action, 1, (mask,)) for action, mask in zip(actions, before, strict=True)]

    def _cpus(self, action: MoveThread) -> Cpus:
        return self.node_cpus.get(action.node, frozenset()) if action.cpu is None else frozenset({action.cpu})

    def _bind(self, tid: int, cpus: Cpus) -> str:
        try:
            self.bindings.bind(tid, cpus)
        except OSError as error:
            return _PROBLEMS.get(error.errno or 0, error.strerror or "failed")
        return ""

    def _rebind(self, tid: int, mask: Cpus) -> int:
        if self._bind(tid, mask):
            return 0
        self.threads_moved += 1
        return 1

    def _move_pages(self, action: MovePages) -> ActionResult:
        granted = self.budget.take_bytes(len(action.pages) * kernel.PAGE_BYTES) // kernel.PAGE_BYTES
        pages = action.pages[:granted]
        short = f"{len(action.pages) - granted} pages over the budget" if granted < len(action.pages) else ""
        try:
            nodes = self.bindings.system.page_nodes(action.pid, pages)
            away = (nodes >= 0) & (nodes != action.node)
            pages, nodes = pages[away], nodes[away]
            arrived = self.bindings.system.move_pages(action.pid, pages, action.node) == action.node
        except OSError as error:
            self.budget.give_back_bytes(granted * kernel.PAGE_BYTES)
            return ActionResult(action, problem=_PROBLEMS.get(error.errno or 0, error.strerror or "failed"))
        moved = int(np.count_nonzero(arrived))
        self.budget.give_back_bytes((granted - moved) * kernel.PAGE_BYTES)
        self.pages_moved += moved
        stuck = f"{len(pages) - moved} pages did not move" if moved < len(pages) else ""
        return ActionResult(action, moved, (), (action.pid, pages[arrived], nodes[arrived]), short or stuck)

    def _return_pages(self, pid: int, pages: Ints, nodes: Ints) -> int:
        back = 0
        for node in np.unique(nodes).tolist():
            try:
                where = self.bindings.system.move_pages(pid, pages[nodes == node], node)
            except OSError:
                return back
            back += int(np.count_nonzero(where == node))
        self.pages_moved += back
        return back
