"""The simulator's local share is what the lab counts of a program that uses memory in the same way."""

import numpy as np
import pytest

from benchmarks.simulator.calibration import Calibration
from benchmarks.simulator.programs import Program, Task, steady
from benchmarks.simulator.world import World, new_job
from numaplan.profiler import Machine
from tests.support.guests import SharedGuest, guest_program

pytestmark = [pytest.mark.lab, pytest.mark.slow]

ACCESSES = 500_000
COMPACT, DEALT = (0, 1, 2, 3, 4, 5, 6, 7), (0, 2, 4, 6, 1, 3, 5, 7)
# shared, halo, serial (shares), places that threads move on by at half time, cpus, interleaved
CASES = [
    (0.0, 0.0, 0.0, 0, COMPACT, False),
    (0.0, 0.4, 0.0, 0, COMPACT, False),
    (0.0, 0.4, 0.0, 0, DEALT, False),
    (0.5, 0.2, 0.0, 0, COMPACT, False),
    (0.2, 0.2, 0.6, 0, COMPACT, False),
    (0.1, 0.2, 0.0, 2, COMPACT, False),
    (0.2, 0.2, 0.3, 4, DEALT, False),
    (0.2, 0.2, 0.3, 0, COMPACT, True),
]


def simulated(
    shared: float, halo: float, serial: float, turn: int, cpus: tuple[int, ...], interleaved: bool
) -> float:
    """The share of accesses to their own node, half of them before threads moved on."""
    machine = Machine.load("4x2")
    world = World(Calibration(machine, np.full((4, 4), 100.0), np.full((4, 4), 1e12), 2.0, 1e7), seed=0)
    memory = 100 * 4.0 * len(cpus) / (1.0 - shared)  # a hundred blocks a thread
    program = Program("pattern", 1, steady(1), memory, shared=shared, halo=halo, serial=serial)
    job = new_job(0, Task(program, len(cpus)), 0.0, world.rng)
    job.interleaved = interleaved
    world.add_threads(job, np.array([machine.cpus.index(cpu) for cpu in cpus]))
    rows = np.arange(len(cpus))
    before = world.places[rows, world.node].mean()
    world.cpu = np.roll(world.cpu, -turn)
    return float((before + world.places[rows, world.node].mean()) / 2)


def test_local_shares_agree_within_two_points(four_nodes: SharedGuest) -> None:
    """Counted: 0.998, 0.801, 0.603, 0.529, 0.456, 0.457, 0.535, 0.249; all within 0.008."""
    shares = {}
    for case in CASES:
        shared, halo, serial, turn, cpus, interleaved = case
        words = [ACCESSES, *(round(1000 * share) for share in (shared, halo, serial)), turn, *cpus]
        config = "interleave" if interleaved else "no-autonuma"
        result = four_nodes.run(guest_program("pattern"), *words, config=config)
        assert result["exit_code"] == 0
        shares[case] = (result["local_share"], simulated(*case))
    assert all(abs(counted - ours) < 0.02 for counted, ours in shares.values()), shares
    assert max(counted for counted, _ in shares.values()) > 0.95
    assert min(counted for counted, _ in shares.values()) < 0.3
