"""Policies on the simulated machines: what each is for shows, and ours stays still where nothing is to
gain.
"""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.simulator.calibration import calibration
from benchmarks.simulator.observe import Counters, observe
from benchmarks.simulator.programs import Program, Task, steady
from benchmarks.simulator.run import Outcome, Setup, simulate
from benchmarks.simulator.system import Habits
from benchmarks.simulator.world import World
from numaplan.mapper.online.registry import make_policy, policy_names

HPL = calibration("hpl-4x10")
OWN = Program("own", 150, steady(25), 240, shared=0.05, halo=0.05, serial=0.0, mlp=10.0)
SERIAL = replace(OWN, name="serial", serial=1.0)
STEADY = Habits(displaced=0.0, autonuma=False)


def outcome(
    policy: str | None, program: Program, habits: Habits, threads: int = 10, seed: int = 0
) -> Outcome:
    made = None if policy is None else make_policy(policy)
    return simulate(Setup(HPL, (Task(program, threads),), made, habits=habits, seed=seed, limit_s=600))


def test_numaplan_stays_still_on_a_well_placed_program() -> None:
    program = replace(OWN, giga_instructions=1000, halo=0.0, shared=0.0, phases=steady(5))
    alone, ours = outcome(None, program, STEADY, 40), outcome("numaplan", program, STEADY, 40)
    assert (ours.thread_moves, ours.moved_gb) == (0, 0.0)
    assert ours.wall_s <= alone.wall_s * 1.04  # 2 % of it is sampling


@pytest.mark.parametrize("policy", ["numaplan", "lmma"])
def test_memory_initialised_by_one_thread_is_spread_to_its_users(policy: str) -> None:
    program = replace(SERIAL, giga_instructions=1200)
    alone, ours = outcome(None, program, STEADY, 40), outcome(policy, program, STEADY, 40)
    assert alone.remote > 0.6
    assert ours.remote < alone.remote - 0.1
    assert ours.wall_s < alone.wall_s


@pytest.mark.parametrize("policy", ["nimar", "cimar", "numaplan"])
def test_displaced_threads_come_back_to_their_memory(policy: str) -> None:
    habits = Habits(displaced=0.05, autonuma=False)
    alone, ours = outcome(None, OWN, habits, 30), outcome(policy, OWN, habits, 30)
    assert ours.remote < 0.7 * alone.remote
    assert ours.wall_s < alone.wall_s


@pytest.mark.parametrize("policy", [*policy_names(), "nimar+next-touch", "excl+next-touch"])
def test_every_policy_runs_to_the_end(policy: str) -> None:
    program = replace(OWN, giga_instructions=30)
    tasks = (Task(program, 12), Task(SERIAL, 12, at_s=2.0), Task(program, 20, at_s=3.0, processes=4))
    ended = simulate(Setup(HPL, tasks, make_policy(policy), habits=Habits(asleep=0.1), limit_s=600))
    assert not np.isnan(ended.ends).any()


def test_an_observation_agrees_with_the_machine() -> None:
    run = Setup(HPL, (Task(OWN, 10), Task(SERIAL, 8, processes=4)), habits=STEADY)
    seen = []

    class Look:
        needs = frozenset({"accesses"})
        balances = False
        period_s = 1.0

        def decide(self, observation, state):  # type: ignore[no-untyped-def]
            from numaplan.mapper.online.actions import Decision

            seen.append(observation)
            return Decision((), state)

    simulate(replace(run, policy=Look(), limit_s=5))
    last = seen[-1]
    assert last.processes.count == 5
    assert last.threads.leader.sum() == 5
    local = last.threads.accesses[np.arange(18), last.threads.node] / last.threads.accesses.sum(axis=1)
    assert local[:10].min() > 0.8
    sampled = np.bincount(last.touches.thread, last.touches.accesses, minlength=18)
    assert sampled.sum() == pytest.approx(last.threads.accesses.sum(), rel=0.15)
    assert (np.diff(last.pages.process) >= 0).all()
    assert last.processes.pages.sum() == last.pages.count * 1024


def test_counters_follow_threads_that_come_and_go() -> None:
    world, counters = World(HPL, 0), Counters()
    empty = observe(world, counters, None, 1.0, False)  # type: ignore[arg-type]
    assert (empty.threads.count, empty.pages.count) == (0, 0)
