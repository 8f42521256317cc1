"""The simulator against arithmetic on cases small enough to work out by hand."""

import numpy as np
import pytest

from benchmarks.simulator.calibration import PHYSICS, Calibration, Physics, calibration
from benchmarks.simulator.contention import Contention, Demand, meet_at_barriers, queueing
from benchmarks.simulator.programs import Phase, Program, Task, changing, steady
from benchmarks.simulator.run import Outcome, Setup, simulate
from benchmarks.simulator.system import Habits, scan_memory, starting_cpus
from benchmarks.simulator.world import BLOCK, World, new_job
from numaplan.profiler import Machine

QUIET = Habits(displaced=0.0, autonuma=False)
SPACIOUS = Calibration(
    Machine.load("2x2"), np.array([[100.0, 200.0], [200.0, 100.0]]), np.full((2, 2), 1e15), 2.0, 1e12
)


def demand(places: list[list[float]], node: list[int], misses: float = 0.01) -> Demand:
    count = len(node)
    return Demand(
        np.array(node), np.full(count, 0.5e-9), np.full(count, misses), np.full(count, 1.0), np.ones(count),
        np.array(places), np.arange(count), np.zeros(count),
    )  # fmt: skip


def test_speed_without_contention_is_the_formula() -> None:
    """0.5 ns and 0.01 misses of 100 ns, or 200 ns remotely, an instruction."""
    speeds = Contention(SPACIOUS).solve(demand([[1, 0], [1, 0]], [0, 1]), 3)
    assert speeds.rate.tolist() == pytest.approx([1e9 / 1.5, 1e9 / 2.5], rel=1e-6)
    assert speeds.latency_s.tolist() == pytest.approx([1e-7, 2e-7], rel=1e-6)
    assert speeds.traffic.sum() == pytest.approx((1e9 / 1.5 + 1e9 / 2.5) * 0.01 * PHYSICS.line_bytes)


def test_delays_agree_with_the_speeds_they_cause() -> None:
    tight = Calibration(SPACIOUS.machine, SPACIOUS.latency_ns, np.full((2, 2), 2e9), 2.0, 1e12)
    contention = Contention(tight)
    speeds = contention.solve(demand([[1, 0]] * 4, [0, 0, 1, 1], 0.02), 400)
    load = speeds.traffic.sum(axis=0)[0] / 2e9
    assert 0.5 < load < 1.05  # what a controller can do, though twice as much is wanted
    expected = queueing(np.array([load, speeds.traffic[1, 0] / 2e9]), PHYSICS.queue)
    assert speeds.access_s[0, 0] == pytest.approx(1e-7 * (1 + expected[0]), rel=0.02)
    assert speeds.access_s[1, 0] == pytest.approx(2e-7 * (1 + expected.sum()), rel=0.02)


def test_congestion_makes_spreading_better_than_one_controller() -> None:
    tight = Calibration(SPACIOUS.machine, SPACIOUS.latency_ns, np.full((2, 2), 2e9), 2.0, 1e12)
    one = Contention(tight).solve(demand([[1, 0]] * 4, [0, 0, 0, 0], 0.05), 200).rate.sum()
    two = Contention(tight).solve(demand([[1, 0]] * 2 + [[0, 1]] * 2, [0, 0, 1, 1], 0.05), 200).rate.sum()
    assert two > 1.5 * one


def test_queueing_grows_and_is_continuous_at_the_knee() -> None:
    points = np.linspace(0, 2, 400)
    delay = queueing(points, 0.35)
    assert (np.diff(delay) >= 0).all()
    assert queueing(np.array([0.5]), 1.0)[0] == pytest.approx(0.5)
    assert np.diff(queueing(np.array([0.9499, 0.9501]), 1.0))[0] < 0.1


def test_barriers_hold_threads_to_the_slowest_of_their_task() -> None:
    rates = np.array([4.0, 2.0, 3.0])
    met = meet_at_barriers(rates, np.array([0, 0, 1]), np.array([0.5, 1.0]))
    assert met.tolist() == [3.0, 2.0, 3.0]


def one_thread(placement: str = "os", **more: object) -> Outcome:
    program = Program("one", 10, steady(10, 0.0), 64, shared=0, halo=0, serial=0, cpi=1.0, mlp=1.0)
    setup = Setup(SPACIOUS, (Task(program, 1),), habits=QUIET, placement=placement, **more)  # type: ignore[arg-type]
    return simulate(setup)


def test_a_task_takes_as_long_as_its_instructions() -> None:
    """10 G at (0.5 + 0.01 x 100) ns, less the share of a core that the system takes of one of two."""
    expected = 15.0 / (1 - PHYSICS.noise / 2)
    assert one_thread().wall_s == pytest.approx(expected, abs=0.26)


def test_interleaved_memory_is_half_remote() -> None:
    outcome = one_thread("interleave")
    assert outcome.remote == pytest.approx(0.5)
    assert outcome.latency_ns == pytest.approx(150.0)
    assert outcome.wall_s == pytest.approx(20.0 / (1 - PHYSICS.noise / 2), abs=0.26)


def test_two_threads_on_one_cpu_take_twice_as_long() -> None:
    program = Program("pair", 20, steady(0.0, 0.0), 8, shared=0, halo=0, serial=0, cpi=1.0, barrier=0.0)
    single = Calibration(Machine.load("1x1"), np.array([[100.0]]), np.full((1, 1), 1e15), 2.0, 1e12)
    outcome = simulate(Setup(single, (Task(program, 2),), habits=QUIET))
    assert outcome.wall_s == pytest.approx(10.0 / (1 - PHYSICS.noise), abs=0.26)


def test_first_touch_puts_serial_memory_with_the_first_thread() -> None:
    world = World(calibration("hpl-4x10"), seed=0)
    program = Program("p", 1, steady(1), 400, shared=0.0, halo=0.0, serial=1.0)
    job = new_job(0, Task(program, 8), 0.0, world.rng)
    world.add_threads(job, starting_cpus(world, 8))
    assert np.bincount(world.node, minlength=4).tolist() == [2, 2, 2, 2]  # the idlest node each time
    assert set(world.block_node.tolist()) == {int(world.node[0])}
    assert world.places.sum(axis=1) == pytest.approx(np.ones(8))
    own = Program("p", 1, steady(1), 400, shared=0.0, halo=0.0, serial=0.0)
    world.add_threads(new_job(1, Task(own, 8), 0.0, world.rng), starting_cpus(world, 8))
    mine = world.job == 1
    assert world.places[mine][np.arange(8), world.node[mine]] == pytest.approx(np.ones(8))


def test_tasks_arrive_when_they_should_and_leave_nothing_behind() -> None:
    program = Program("p", 4, changing(1, 9, 3), 64)
    tasks = (Task(program, 2), Task(program, 2, at_s=30.0), Task(program, 2, after=0))
    outcome = simulate(Setup(SPACIOUS, tasks, habits=QUIET))
    assert outcome.starts[1] == 30.0
    assert outcome.starts[2] == outcome.ends[0]
    assert not np.isnan(outcome.ends).any()


def test_autonuma_brings_private_memory_to_its_thread() -> None:
    world = World(calibration("hpl-4x10"), seed=1)
    program = Program("p", 1, (Phase(1.0, 1.0),), 100, shared=0.0, halo=0.0, serial=0.0)
    world.add_threads(new_job(0, Task(program, 4), 0.0, world.rng), starting_cpus(world, 4))
    world.block_node[:] = (world.block_node + 1) % 4
    for _ in range(100):
        scan_memory(world, Habits(scan=1e9), 0.25)
    world.memory_changed()
    assert world.places[np.arange(4), world.node].min() == pytest.approx(1.0)


def test_the_same_seed_gives_the_same_outcome() -> None:
    tasks = (Task(Program("p", 20, steady(20), 200), 4),)
    setup = Setup(calibration("opteron-2x4"), tasks, seed=5)
    first, second = simulate(setup), simulate(setup)
    assert first.wall_s == second.wall_s
    assert first.remote == second.remote
    assert Physics() == PHYSICS
    assert BLOCK % 4096 == 0


@pytest.mark.parametrize(("placement", "expected"), [("os", 0.25), ("interleave", 0.25)])
def test_local_shares_are_those_that_the_lab_counts(placement: str, expected: float) -> None:
    """Eight threads on four nodes of two cpus, memory initialised by one: the lab counted 0.25 both ways."""
    machine = Machine.load("4x2")
    latency = np.where(np.eye(4, dtype=bool), 100.0, 200.0)
    four = Calibration(machine, latency, np.full((4, 4), 1e11), 2.0, 1e7)
    program = Program("serial", 40, steady(10, 0.0), 256, shared=0.0, halo=0.0, serial=1.0)
    outcome = simulate(Setup(four, (Task(program, 8),), habits=QUIET, placement=placement))
    assert 1 - outcome.remote == pytest.approx(expected, abs=0.01)
