"""The loop: observe, judge the last moves, undo them or ask the policy, act, write it down."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numaplan.common import MachineLacksError
from numaplan.launcher.online.acting import Done, Hands
from numaplan.launcher.online.actions import Policy
from numaplan.launcher.online.journal import Journal, action_entries
from numaplan.launcher.online.judge import Cost, cost_of, verdict
from numaplan.launcher.online.observing import Looked, Observer
from numaplan.launcher.online.rehearsal import rehearsal
from numaplan.launcher.online.reveal import Revealer
from numaplan.launcher.online.trial import Trial
from numaplan.profiler.live_samples import LiveSamples, Sampler, no_samples

_PATIENCE = 3  # intervals in which moves may show what they did
_SURE = 2  # looks in a row that must be worse before moves are undone
_GIVE_UP = 3  # times in a row that moves had to be undone
_REVEALS = 8  # times between two looks that touches are made visible, at most
_IDLE = 4  # intervals without a move before looking less often
_STRETCH = 2.0  # periods between two looks then
_SAME = 0.5  # of accesses that threads of before must make, or what they cost is no measure of what they did


@dataclass
class Tally:
    """What the loop did, for the summary."""

    intervals: int = 0
    undone: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    local: list[float] = field(default_factory=list)
    ended: str = ""


@dataclass
class Loop:
    """Refines the placement of `roots()` and their descendants until `stop` is set or nothing helps.

    waiting_only: the policy is judged by the waiting for cpus alone; sampler: None when the policy needs
    none; restart: a new one when perf has died; confines: threads that a placement rests on are bound to
    their nodes; told: hears of each interval.
    """

    name: str
    policy: Policy
    observer: Observer
    hands: Hands
    journal: Journal
    revealer: Revealer
    roots: Callable[[], Sequence[int]]
    sampler: Sampler | None
    restart: Callable[[], Sampler] | None = None
    own_share: float = 0.01  # of all cpus' time, that the loop itself may take
    waiting_only: bool = False
    confines: bool = False
    told: Callable[[Looked, Tally], None] = lambda _looked, _tally: None
    stop: threading.Event = field(default_factory=threading.Event)
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self._state: Any = None
        self._trial: Trial | None = None
        self._cost: Cost | None = None  # at the last look
        self._known = np.empty(0, dtype=np.int64)  # tids of then
        self._rest = 0  # intervals without asking the policy
        self._failures = 0
        self._idle = 0
        self._restarted = False
        self._last: Looked | None = None
        self._pids: list[int] = []
        self._spent = 0.0  # seconds of cpu that the look before took

    @property
    def last(self) -> Looked | None:
        """The last observation with threads in it."""
        return self._last

    def run(self) -> None:
        """Until stopped, the processes are gone, or nothing helps; never raises for what the system does."""
        self._reveal()
        while not self._wait(self._pause()):
            began = time.process_time()
            if not self.roots():
                self.tally.ended = "the processes have ended"
                return
            try:
                self.step()
            except MachineLacksError as error:
                self._end(f"{error.what}")
                return
            if self._failures >= _GIVE_UP:
                self._end(f"the last {_GIVE_UP} attempts did not help and were undone")
                return
            self._spent = time.process_time() - began

    def warm_up(self, pid: int) -> None:
        """Look once at a process that does not matter: what is loaded at first use is loaded then."""
        looked = self.observer.look(self._samples(), [pid])
        cost_of(looked)
        self.policy.decide(rehearsal(self.observer.machine), None)

    def step(self) -> None:
        """One interval."""
        looked = self.observer.look(self._samples(), self.roots())
        seen = looked.observation
        if not seen.threads.count:
            return
        self._last = looked
        self.tally.intervals += 1
        self.tally.lost += looked.lost
        self.hands.pid_of = dict(
            zip(seen.threads.tid.tolist(), seen.processes.pid[seen.threads.process].tolist(), strict=True)
        )
        cost = cost_of(looked, self.waiting_only)
        if not np.isnan(cost.local_share):
            self.tally.local.append(cost.local_share)
        effect = self._judge(cost, looked)
        done = self._act(looked, cost)
        self._note(looked, cost, effect, done)
        self.told(looked, self.tally)
        pids = seen.processes.pid
        counts = np.bincount(np.searchsorted(pids, looked.fresh.pid), minlength=len(pids))
        self.revealer.settle(dict(zip(pids.tolist(), counts.tolist(), strict=True)))
        self._pids = pids.tolist()
        self._reveal()

    def _samples(self) -> LiveSamples:
        if self.sampler is None:
            return no_samples()
        try:
            return self.sampler.take()
        except MachineLacksError as error:
            if self._restarted or self.restart is None:
                raise
            self._restarted = True
            self.journal.write(time_s=time.monotonic(), policy=self.name, note=f"{error.what}; started again")
            self.sampler.close()
            self.sampler = self.restart()
            return no_samples()

    def _judge(self, cost: Cost, looked: Looked) -> str:
        """What the pending moves did; undoes them when accesses cost more since, and because of them."""
        trial, before, self._cost = self._trial, self._cost, self._measure(cost)
        known, self._known = self._known if trial is None else trial.tids, looked.observation.threads.tid
        if before is not None and looked.share_of(known) < _SAME:
            self._trial = None
            return "other threads"
        if trial is None:
            changed = before is not None and verdict(before, cost) == "worse"
            return self._start_anew() if changed else ""
        trial.age += 1
        outcome = verdict(trial.before, cost)
        trial.worse = trial.worse + 1 if outcome == "worse" else 0
        if outcome == "worse" and not trial.at_fault(looked):
            return self._start_anew()
        if outcome == "worse" and trial.worse < _SURE:
            return "worse once"  # programs vary from look to look by themselves
        if outcome == "worse":
            went_back = self.hands.undo(trial.done)
            self._trial, self._state = None, None
            self._failures += 1
            self.tally.undone += went_back
            self._rest = _PATIENCE * self._failures
            return f"worse: {went_back} moves undone"
        if outcome == "better":
            self._failures = 0
        if outcome == "better" or trial.age >= _PATIENCE:
            self._trial = None
        return outcome

    def _measure(self, cost: Cost) -> Cost | None:
        """What later costs may be compared with: not the first look's, in which programs make their data."""
        return cost if self.tally.intervals > 1 else None

    def _start_anew(self) -> str:
        """The program does something else now: what the policy learnt of it before would mislead it."""
        self._trial, self._state = None, None
        self._idle = 0
        return "worse, by the program's own doing"

    def _act(self, looked: Looked, cost: Cost) -> list[Done]:
        seen = looked.observation
        if self._rest:
            self._rest -= 1
            return []
        decision = self.policy.decide(seen, self._state)
        self._state = decision.state
        self.hands.budget.refill(seen.time_s)
        done = self.hands.apply(decision.actions)
        moved = [one for one in done if one.moved]
        self._idle = 0 if moved else self._idle + 1
        self.tally.refused.update(one.problem for one in done if one.problem and not one.moved)
        if moved and self._trial is None and self._measure(cost):
            self._trial = Trial(cost, looked.avoidable, seen.threads.tid)
        if self.confines and (self.hands.threads_moved or self.hands.pages_moved):
            moved += self.hands.confine(seen)
        if self._trial is not None:
            self._trial.add(moved, seen)
        return done

    def _note(self, looked: Looked, cost: Cost, effect: str, done: list[Done]) -> None:
        seen = looked.observation
        self.journal.write(
            time_s=seen.time_s, policy=self.name,
            observed={
                "threads": seen.threads.count, "processes": seen.processes.count, "pages": seen.pages.count,
                "samples": len(looked.fresh.pid), "lost": looked.lost, "local_share": cost.local_share,
                "cost": cost.mean, "waiting": looked.waiting,
            },
            actions=action_entries(done), effect=effect, spent_s=self._spent,
        )  # fmt: skip

    def _wait(self, seconds: float) -> bool:
        """Until the next look, making touches visible on the way; True when the loop is to stop."""
        for _ in range(_REVEALS - 1):
            if self.stop.wait(seconds / _REVEALS):
                return True
            self._reveal()
        return self.stop.wait(seconds / _REVEALS)

    def _reveal(self) -> None:
        if self.sampler is not None and self.sampler.what.backend == "faults":
            self.revealer.reveal(self._pids or self.roots(), time.monotonic())

    def _pause(self) -> float:
        """Seconds to the next look: longer when nothing happens, and when looking is dear."""
        stretch = 1.0 if self._idle < _IDLE or self._trial is not None else _STRETCH
        dear = self._spent / (self.own_share * max(1, len(self.observer.machine.cpu_ids)))
        return max(self.policy.period_s * stretch, dear)

    def _end(self, why: str) -> None:
        self.tally.ended = why
        self.journal.write(time_s=time.monotonic(), policy=self.name, note=f"stopped: {why}")
