"""The loop: observe, judge the last moves, undo them or ask the policy, act, write it down."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numaplan.common import MachineLacksError
from numaplan.mapper import Policy
from numaplan.profiler import LiveSamples, Sampler, no_samples

from ..process.soft_dirty import SoftDirtyProbe
from .actuator import ActionResult, Actuator
from .example import example_observation
from .judge import Cost, PendingMoves, cost_of, verdict
from .observer import Observer
from .reporting import Journal, Tally, action_entry
from .samples import Interval

_TRIAL_INTERVALS = 3  # intervals in which moves may show what they did
_WORSE_INTERVALS = 2  # intervals in a row that must be worse before moves are undone
_MOST_FAILURES = 3  # times in a row that moves had to be undone
_PROTECTIONS = 8  # times an interval, at most, that pages are write-protected to make touches visible
_IDLE_INTERVALS = 4  # intervals without a move before observing less often
_IDLE_STRETCH = 2.0  # periods between two observations then
_KNOWN_SHARE = 0.5  # of accesses that threads of before must make for their cost to tell what the moves did


@dataclass
class Loop:
    """Refines the placement of `roots()` and their descendants until `stop` is set or nothing helps.

    waiting_only: the policy is judged by the waiting for cpus alone; sampler: None when the policy needs
    none; restart: a new one when perf has died, None likewise; confines: threads that a placement rests on
    are bound to their nodes; on_interval: called after each.
    """

    name: str
    policy: Policy
    observer: Observer
    actuator: Actuator
    journal: Journal
    probe: SoftDirtyProbe
    roots: Callable[[], Sequence[int]]
    sampler: Sampler | None
    restart: Callable[[], Sampler | None] | None = None
    own_share: float = 0.01  # of all cpus' time, that the loop itself may take
    waiting_only: bool = False
    confines: bool = False
    on_interval: Callable[[Interval, Tally], None] = lambda _interval, _tally: None
    stop: threading.Event = field(default_factory=threading.Event)
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self._system = self.observer.bindings.system
        self._state: Any = None
        self._pending: PendingMoves | None = None
        self._cost: Cost | None = None  # of the last interval
        self._previous_tids = np.empty(0, dtype=np.int64)  # in the last interval
        self._cooldown = 0  # intervals without asking the policy
        self._failures = 0
        self._idle = 0
        self._restarted = False
        self.last: Interval | None = None  # that had threads in it
        self._pids: list[int] = []
        self._spent = 0.0  # seconds of cpu that the last step took

    def run(self) -> None:
        """Until stopped, the processes are gone, or nothing helps; never raises for what the system does."""
        self._write_protect()
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
            if self._failures >= _MOST_FAILURES:
                self._end(f"the last {_MOST_FAILURES} attempts did not help and were undone")
                return
            self._spent = time.process_time() - began

    def warm_up(self, pid: int) -> None:
        """Look once at a process that does not matter: what is loaded at first use is loaded then."""
        interval = self.observer.observe(self._samples(), [pid])
        cost_of(interval)
        self.policy.decide(example_observation(self.observer.machine), None)

    def step(self) -> None:
        """One interval."""
        interval = self.observer.observe(self._samples(), self.roots())
        observation = interval.observation
        if not observation.threads.count:
            return
        self.last = interval
        self.tally.intervals += 1
        self.tally.lost += interval.lost
        threads, pids = observation.threads, observation.processes.pid
        self.actuator.pid_of = dict(zip(threads.tid.tolist(), pids[threads.process].tolist(), strict=True))
        cost = cost_of(interval, self.waiting_only)
        if not np.isnan(cost.local_share):
            self.tally.local_shares.append(cost.local_share)
        effect = self._judge(cost, interval)
        done = self._act(interval, cost)
        self._note(interval, cost, effect, done)
        self.on_interval(interval, self.tally)
        counts = np.bincount(np.searchsorted(pids, interval.samples.pid), minlength=len(pids))
        self.probe.update_costs(dict(zip(pids.tolist(), counts.tolist(), strict=True)))
        self._pids = pids.tolist()
        self._write_protect()

    def _samples(self) -> LiveSamples:
        if self.sampler is None:
            return no_samples()
        try:
            return self.sampler.take()
        except MachineLacksError as error:
            if self._restarted or self.restart is None:
                raise
            self._restarted = True
            self.journal.write(
                time_s=self._system.now(), policy=self.name, note=f"{error.what}; started again"
            )
            self.sampler.close()
            self.sampler = self.restart()
            return no_samples()

    def _judge(self, cost: Cost, interval: Interval) -> str:
        """What the pending moves did; undoes them when accesses cost more since, and because of them."""
        pending, before, self._cost = self._pending, self._cost, self._measure(cost)
        known = self._previous_tids if pending is None else pending.tids
        self._previous_tids = interval.observation.threads.tid
        if before is not None and interval.share_of(known) < _KNOWN_SHARE:
            self._pending = None
            return "other threads"
        if pending is None:
            changed = before is not None and verdict(before, cost) == "worse"
            return self._start_anew() if changed else ""
        pending.age += 1
        outcome = verdict(pending.before, cost)
        pending.worse = pending.worse + 1 if outcome == "worse" else 0
        if outcome == "worse" and not pending.at_fault(interval):
            return self._start_anew()
        if outcome == "worse" and pending.worse < _WORSE_INTERVALS:
            return "worse once"  # programs vary by themselves
        if outcome == "worse":
            went_back = self.actuator.undo(pending.done)
            self._pending, self._state = None, None
            self._failures += 1
            self.tally.undone += went_back
            self._cooldown = _TRIAL_INTERVALS * self._failures
            return f"worse: {went_back} moves undone"
        if outcome == "better":
            self._failures = 0
        if outcome == "better" or pending.age >= _TRIAL_INTERVALS:
            self._pending = None
        return outcome

    def _measure(self, cost: Cost) -> Cost | None:
        """What later costs may be compared with: not the first's, in which programs make their data."""
        return cost if self.tally.intervals > 1 else None

    def _start_anew(self) -> str:
        """The program does something else now: what the policy learnt of it before would mislead it."""
        self._pending, self._state = None, None
        self._idle = 0
        return "worse, but because the program changed"

    def _act(self, interval: Interval, cost: Cost) -> list[ActionResult]:
        observation = interval.observation
        if self._cooldown:
            self._cooldown -= 1
            return []
        decision = self.policy.decide(observation, self._state)
        self._state = decision.state
        self.actuator.budget.refill(observation.time_s)
        done = self.actuator.apply(decision.actions)
        moved = [one for one in done if one.moved]
        self._idle = 0 if moved else self._idle + 1
        self.tally.refused.update(one.problem for one in done if one.problem and not one.moved)
        if moved and self._pending is None and self._measure(cost):
            self._pending = PendingMoves(cost, interval.avoidable, observation.threads.tid)
        if self.confines and (self.actuator.threads_moved or self.actuator.pages_moved):
            moved += self.actuator.confine(observation)
        if self._pending is not None:
            self._pending.add(moved, observation)
        return done

    def _note(self, interval: Interval, cost: Cost, effect: str, done: list[ActionResult]) -> None:
        observation = interval.observation
        self.journal.write(
            time_s=observation.time_s, policy=self.name,
            observed={
                "threads": observation.threads.count, "processes": observation.processes.count,
                "pages": observation.pages.count,
                "samples": len(interval.samples.pid), "lost": interval.lost, "local_share": cost.local_share,
                "cost": cost.mean, "waiting": interval.waiting,
            },
            actions=[action_entry(one) for one in done], effect=effect, spent_s=self._spent,
        )  # fmt: skip

    def _wait(self, seconds: float) -> bool:
        """Until the next step, making touches visible on the way; True when the loop is to stop."""
        for _ in range(_PROTECTIONS - 1):
            if self._system.wait(self.stop, seconds / _PROTECTIONS):
                return True
            self._write_protect()
        return self._system.wait(self.stop, seconds / _PROTECTIONS)

    def _write_protect(self) -> None:
        if self.sampler is not None and self.sampler.what.backend == "faults":
            self.probe.write_protect(self._pids or self.roots(), time.monotonic())

    def _pause(self) -> float:
        """Seconds to the next step: longer when nothing happens, and when a step is dear."""
        stretch = 1.0 if self._idle < _IDLE_INTERVALS or self._pending is not None else _IDLE_STRETCH
        least_pause = self._spent / (self.own_share * max(1, len(self.observer.machine.cpu_ids)))
        return max(self.policy.period_s * stretch, least_pause)

    def _end(self, reason: str) -> None:
        self.tally.ended = reason
        self.journal.write(time_s=self._system.now(), policy=self.name, note=f"stopped: {reason}")
