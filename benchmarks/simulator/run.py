"""One experiment: tasks arrive and end, the system and a policy place them; what came of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulator.acting import Actuator
from benchmarks.simulator.cache import miss_factor
from benchmarks.simulator.calibration import PHYSICS, Calibration
from benchmarks.simulator.contention import Contention, Demand, Speeds
from benchmarks.simulator.disturbance import undisturbed
from benchmarks.simulator.observe import Counters, observe
from benchmarks.simulator.programs import Task
from benchmarks.simulator.system import (
    Habits,
    balance_nodes,
    displace,
    follow_memory,
    scan_memory,
    sleep_and_wake,
    spread_in_nodes,
    starting_cpus,
)
from benchmarks.simulator.world import BLOCK, World, new_job
from numaplan.mapper.online.actions import Policy

STEP_S = 0.25
_SETTLED, _STIRRED = 2, 8  # rounds of contention.solve in a step


@dataclass(frozen=True)
class Setup:
    """placement: `os`, `direct` (each task bound to the node of its user, `node_of`) or `interleave`;
    grain: the share of a block that the pages a policy names in it make up (1: it names whole stretches);
    confines: threads that the policy left alone are bound to their node once it moved something, as by the
    loop; samples: accesses sampled a second and thread, by what they cost; rounds: each task that ended
    starts again until all have ended so often.
    """

    calibration: Calibration
    tasks: tuple[Task, ...]
    policy: Policy | None = None
    placement: str = "os"
    node_of: Callable[[int], int] = lambda number: number
    habits: Habits = field(default_factory=Habits)
    grain: float = 1.0
    limit_s: float = 20_000.0
    seed: int = 0
    confines: bool = False
    samples: float = 500.0
    rounds: int = 1


@dataclass
class Outcome:
    """ends, starts: seconds by task, of its last round; ran_s: by task, how long it ran in all; remote: share
    of accesses; latency_ns: mean of a miss; migrations: by job number [decisions that moved its memory, its
    threads' moves to other nodes].
    """

    ends: NDArray[np.float64]
    starts: NDArray[np.float64]
    ran_s: NDArray[np.float64]
    remote: float = 0.0
    latency_ns: float = 0.0
    thread_moves: int = 0
    moved_gb: float = 0.0
    migrations: dict[int, list[int]] = field(default_factory=dict)
    instructions: float = 0.0

    @property
    def wall_s(self) -> float:
        """When the last task ended."""
        return float(np.nanmax(self.ends))

    @property
    def task_s(self) -> NDArray[np.float64]:
        """(J,) how long each task took."""
        return self.ends - self.starts


def simulate(setup: Setup) -> Outcome:
    """Run until every task has ended (or the limit); the same setup gives the same outcome."""
    return SimulatedRun(setup).go()


class SimulatedRun:
    """The loop's variables."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.world = World(setup.calibration, setup.seed)
        self.contention = Contention(setup.calibration)
        self.actuator, self.counters = Actuator(setup.grain), Counters()
        count = len(setup.tasks)
        self.outcome = Outcome(np.full(count, np.nan), np.full(count, np.nan), np.zeros(count))
        self.rounds = np.zeros(count, dtype=np.int64)
        self.now, self.memory, self.next_decision = 0.0, None, 0.0
        self.total = np.zeros(3)  # accesses, remote ones, ns waited
        if setup.policy is not None:
            self.next_decision = setup.policy.period_s

    def go(self) -> Outcome:
        """Step until done."""
        while self.now < self.setup.limit_s and np.isnan(self.outcome.ends).any():
            self.arrive()
            if self.world.jobs:
                self._step()
            self.now += STEP_S
        outcome = self.outcome
        for job in self.world.jobs:  # another round of tasks that have ended often enough
            outcome.ran_s[job.number] += self.now - job.started_s
        outcome.remote, outcome.latency_ns = (self.total[1:] / max(self.total[0], 1.0)).tolist()
        outcome.thread_moves, outcome.migrations = self.actuator.thread_moves, self.actuator.by_job
        outcome.moved_gb = self.actuator.moved_bytes / 1e9
        return outcome

    def arrive(self) -> None:
        running = {job.number for job in self.world.jobs}
        for number, task in enumerate(self.setup.tasks):
            done = int(self.rounds[number])
            if number in running or (done and self.setup.rounds == 1):
                continue
            if self.now < task.at_s or (task.after >= 0 and not self.rounds[task.after]):
                continue
            job = new_job(number, task, self.now, self.world.rng)
            job.interleaved = self.setup.placement == "interleave"
            if self.setup.placement == "direct":
                job.bound_node = self.setup.node_of(number)
            self.world.add_threads(job, starting_cpus(self.world, task.threads, job.bound_node))
            if done + 1 == self.setup.rounds:
                self.outcome.starts[number] = self.now
            self._rows_changed()

    def _rows_changed(self) -> None:
        self.actuator.forget_rows()
        self.contention.stir()

    def _step(self) -> None:
        world, setup = self.world, self.setup
        changed = self._system()
        moved = self.actuator.move_pages(world, STEP_S)
        if len(moved):
            self.charge(moved)
            world.memory_changed()
            changed = True
        if changed:
            self.contention.stir()
        rates = world.miss_rates()
        misses = rates / 1e3 * miss_factor(world, rates)
        demand = self._demand(misses)
        speeds = self.contention.solve(demand, _STIRRED if changed else _SETTLED)
        self._advance(speeds, misses)
        if setup.policy is not None and self.now + STEP_S >= self.next_decision - 1e-9:
            self._decide(setup.policy, speeds)
        self._end()

    def _system(self) -> bool:
        """The operating system's turn; whether anything moved."""
        world, habits = self.world, self.setup.habits
        before = world.cpu.copy()
        warm_up = PHYSICS.warm_up_s
        sleep_and_wake(world, habits, STEP_S)
        spread_in_nodes(world)
        if self.setup.policy is None or not self.setup.policy.balances:
            balance_nodes(world, warm_up)
        displace(world, habits, STEP_S, warm_up)
        moved = np.empty(0, dtype=np.int64)
        if habits.autonuma:
            follow_memory(world, habits, STEP_S, warm_up)
            moved = scan_memory(world, habits, STEP_S)
            if len(moved):
                self.charge(moved)
                world.memory_changed()
        return len(moved) > 0 or habits.asleep > 0 or not np.array_equal(before, world.cpu)

    def charge(self, blocks: NDArray[np.int64]) -> None:
        """Threads lose the time that migrating their memory takes, spread over the job's threads, and each of
        them what forgetting the old addresses takes.
        """
        world = self.world
        moved = np.bincount(world.block_job_row[blocks], minlength=len(world.jobs)) * float(BLOCK)
        threads = np.bincount(world.job_row, minlength=len(world.jobs))
        processes = np.array([job.task.processes for job in world.jobs])
        each = moved * PHYSICS.page_move_s / threads + moved / 4096 * PHYSICS.flush_s / processes
        world.lost_s += each[world.job_row]

    def _demand(self, misses: NDArray[np.float64]) -> Demand:
        world = self.world
        active = world.active
        load = np.bincount(world.cpu[active], minlength=len(world.cpu_node))
        share: NDArray[np.float64] = active / np.maximum(load[world.cpu], 1)
        policy = self.setup.policy
        sampled = policy is not None and "accesses" in policy.needs
        share = share * undisturbed(world, self.setup.samples if sampled else 0.0)
        lost = np.minimum(world.lost_s, 0.9 * STEP_S)
        world.lost_s -= lost
        share = share * (1.0 - lost / STEP_S)
        compute = world.cpi / (world.calibration.ghz * 1e9)
        return Demand(
            world.node, compute, misses, world.mlp, share, world.places, world.job_row, world.barrier
        )

    def _advance(self, speeds: Speeds, misses: NDArray[np.float64]) -> None:
        world = self.world
        world.done += speeds.rate * STEP_S
        self.counters.add(world, speeds, misses, STEP_S)
        accesses = (speeds.rate * misses * STEP_S)[:, None] * world.places
        away = np.arange(world.nodes) != world.node[:, None]
        everything = accesses.sum()
        self.total += (
            everything,
            accesses[away].sum(),
            (accesses.sum(axis=1) * speeds.latency_s).sum() * 1e9,
        )
        self.outcome.instructions += float(speeds.rate.sum() * STEP_S)

    def _decide(self, policy: Policy, speeds: Speeds) -> None:
        now = self.now + STEP_S
        seen = observe(self.world, self.counters, speeds, now, "accesses" in policy.needs)
        decision = policy.decide(seen, self.memory)
        self.memory: Any = decision.state
        before = self.world.cpu.copy()
        self.actuator.take(self.world, decision.actions)
        if self.setup.confines:
            self.actuator.confine(self.world)
        if not np.array_equal(before, self.world.cpu):
            self.contention.stir()
        self.counters = Counters()
        self.next_decision = now + policy.period_s

    def _end(self) -> None:
        """Jobs whose threads have all done their work; they ended within the step, when the last one did."""
        world = self.world
        working = np.bincount(world.job_row, world.unfinished, minlength=len(world.jobs))
        ended = [job for job, left in zip(world.jobs, working.tolist(), strict=True) if left == 0]
        for job in ended:
            self.rounds[job.number] += 1
            self.outcome.ran_s[job.number] += self.now + STEP_S - job.started_s
            if self.rounds[job.number] == self.setup.rounds:
                self.outcome.ends[job.number] = self.now + STEP_S
        if ended:
            world.drop_jobs([job.number for job in ended])
            self._rows_changed()
