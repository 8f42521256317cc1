"""What the papers blame, each mechanism of the simulator by itself against arithmetic."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.simulator.acting import Actuator
from benchmarks.simulator.cache import miss_factor
from benchmarks.simulator.calibration import PHYSICS, Calibration, calibration
from benchmarks.simulator.disturbance import undisturbed
from benchmarks.simulator.programs import Program, Task, steady
from benchmarks.simulator.run import Setup, SimulatedRun, simulate
from benchmarks.simulator.system import Habits, balance_nodes, scan_periods
from benchmarks.simulator.world import BLOCK, World, new_job
from numaplan.mapper.online.actions import Action, MovePages, MoveThread
from numaplan.profiler import Machine

QUIET = Habits(displaced=0.0, autonuma=False)
PLAIN = Program("p", 10, steady(10, 0.0), 64, shared=0.0, halo=0.0, serial=0.0, cpi=1.0, mlp=1.0)
SPACIOUS = Calibration(
    Machine.load("2x2"), np.array([[100.0, 200.0], [200.0, 100.0]]), np.full((2, 2), 1e15), 2.0, 1e12
)


def world(cpus: list[int], program: Program, *, tasks: int = 1) -> World:
    """Each task has as many of the cpus' threads."""
    made = World(calibration("barcelona-4x4"), seed=0)
    each = len(cpus) // tasks
    for number in range(tasks):
        job = new_job(number, Task(program, each), 0.0, made.rng)
        made.add_threads(job, np.array(cpus[number * each : (number + 1) * each]))
    return made


def test_a_thread_alone_on_a_node_has_its_cache() -> None:
    crowd = world([0, 4, 8, 12], PLAIN, tasks=4)
    assert miss_factor(crowd, np.full(4, 30.0)).tolist() == [1.0] * 4


def test_equal_threads_push_out_one_anothers_lines_and_heavy_ones_light_ones() -> None:
    crowd = world([0, 1, 2, 3], PLAIN, tasks=4)
    equal = miss_factor(crowd, np.full(4, 30.0))
    assert equal.tolist() == pytest.approx([1 + PHYSICS.overflow * 0.75] * 4)
    heavy = miss_factor(crowd, np.array([97.0, 1.0, 1.0, 1.0]))
    assert heavy.tolist() == pytest.approx([1 + PHYSICS.overflow * 0.03] + [1 + PHYSICS.overflow * 0.99] * 3)


def test_what_all_share_is_found_in_the_cache_by_those_who_are_together() -> None:
    shared = replace(PLAIN, shared=0.5)
    together, apart = world([0, 1, 2, 3], shared), world([0, 4, 8, 12], shared)
    near, far = (miss_factor(each, np.zeros(4)).mean() for each in (together, apart))
    assert (near, far) == pytest.approx((1 - PHYSICS.reuse * 0.5, 1.0))


def test_moved_pages_cost_their_copy_once_and_each_thread_a_flush() -> None:
    run = SimulatedRun(Setup(SPACIOUS, (Task(PLAIN, 4),), habits=QUIET))
    run.arrive()
    run.charge(np.arange(3))
    pages = 3 * BLOCK / 4096
    each = 3 * BLOCK * PHYSICS.page_move_s / 4 + pages * PHYSICS.flush_s
    assert run.world.lost_s.tolist() == pytest.approx([each] * 4)


def test_scans_slow_down_when_memory_is_private_or_local_and_speed_up_when_not() -> None:
    private = world([0, 4, 8, 12], PLAIN)
    for _ in range(40):  # ten seconds, ten tenths of faults private
        periods = scan_periods(private, 0.25)
    assert periods.tolist() == pytest.approx([1.0 + 10 * 0.3])
    mixed = world([0, 4, 8, 12], replace(PLAIN, shared=0.8))
    mixed.jobs[0].scan_period = 20.0
    mixed.places = np.full((4, 4), 0.25)  # two tenths private, two local: five lack
    assert scan_periods(mixed, 1.0).tolist() == pytest.approx([20.0 - 0.5])
    mixed.places = np.eye(4)
    assert scan_periods(mixed, 1.0).tolist() == pytest.approx([19.5 + 0.3])


def test_tasks_start_again_until_all_have_ended_so_often() -> None:
    short, long = replace(PLAIN, giga_instructions=2), replace(PLAIN, giga_instructions=10)
    outcome = simulate(Setup(SPACIOUS, (Task(short, 1), Task(long, 1)), habits=QUIET, rounds=2))
    each = outcome.task_s  # 3 and 15 seconds at 1.5 ns an instruction
    assert each.tolist() == pytest.approx([3.0, 15.0], abs=0.5)
    assert outcome.starts.tolist() == pytest.approx([each[0], each[1]], abs=0.5)
    assert outcome.ran_s.tolist() == pytest.approx([2 * each[1]] * 2, abs=0.5)  # both to the end


@pytest.mark.parametrize(("threads", "reads"), [(2, 0.0), (4, 4.0)])
def test_reading_samples_takes_a_cpu_where_none_is_idle(threads: int, reads: float) -> None:
    """Thread 0 is bound to a cpu; the reader takes `reads` threads' cost from it now and then."""
    busy = World(SPACIOUS, seed=0)
    busy.add_threads(new_job(0, Task(PLAIN, threads), 0.0, busy.rng), np.arange(threads))
    busy.bound_cpu[0] = busy.cpu[0]
    left = np.array([undisturbed(busy, 20_000.0)[0] for _ in range(200)])
    cost = 20_000.0 * PHYSICS.sample_s
    assert left.min() == pytest.approx((1 - cost) * (1 - PHYSICS.noise - reads * cost))
    assert left.max() == pytest.approx(1 - cost)


@pytest.mark.parametrize(("placed", "after"), [(False, [1, 1, 1, 1]), (True, [2, 2, 0, 0])])
def test_when_others_end_confined_threads_even_out_but_for_those_that_were_placed(
    placed: bool, after: list[int]
) -> None:
    """Two threads a node; those of the second task, on nodes 2 and 3, end."""
    full, actuator = world([0, 1, 4, 5, 8, 9, 12, 13], PLAIN, tasks=2), Actuator()
    first = int(full.tid[0])
    pages = MovePages(first, full.block_number[:1], 1, "test")
    away: tuple[Action, ...] = (MoveThread(first, 1, "test"), MoveThread(first, 0, "test")) if placed else ()
    actuator.take(full, (pages, *away))
    actuator.confine(full)
    assert full.bound_node.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    full.drop_jobs([1])
    actuator.confine(full)
    balance_nodes(full, 0.0)
    assert np.bincount(full.node, minlength=4).tolist() == after
    actuator.confine(full)
    assert full.bound_node.tolist() == full.node.tolist()
