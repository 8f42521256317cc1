"""What a placement costs: each part by itself, and how the parts move with the placement."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from numaplan.machine import Machine, placement_cost
from numaplan.machine.cost import (
    ACCESS_NS,
    LOCAL_MB_S,
    LOCAL_NS,
    MORE_NS,
    OVERLAP,
    REMOTE_MB_S,
    SHARED_L3,
    bandwidths,
    latencies,
    transfers,
)

MACHINE = Machine.load("2x4")


def test_memory_waits_for_the_distance_to_its_node() -> None:
    latency = latencies(MACHINE)
    assert latency[0, 0] == LOCAL_NS
    assert latency[0, 1] == pytest.approx(143.0)
    near = placement_cost(MACHINE, [0], [[1000, 0]], accesses=[1e9])
    far = placement_cost(MACHINE, [0], [[0, 1000]], accesses=[1e9])
    assert near.memory_ns == pytest.approx(1000 * 84 / OVERLAP)
    assert far.memory_ns == pytest.approx(1000 * 143 / OVERLAP)


def test_distances_of_another_scale_wait_as_those_of_the_kernel() -> None:
    def of(*rows: tuple[float, ...]) -> np.ndarray:
        return latencies(replace(MACHINE, distances=rows))

    assert of((1, 2), (2, 1)) == pytest.approx(of((10, 20), (20, 10)))
    assert of((20, 60), (40, 20)) == pytest.approx(of((10, 30), (20, 10)))
    assert of((10, 17), (17, 17))[1, 1] == LOCAL_NS + 7 * MORE_NS  # a node that is far from its own memory
    assert of((0, 0), (0, 0)).tolist() == [[LOCAL_NS] * 2] * 2


def test_what_the_machine_tells_goes_before_what_is_usual() -> None:
    machine = Machine.load("hpl-4x10")
    assert latencies(machine)[0, 1] == 254.7
    assert bandwidths(machine)[0, 0] == 59497.0


def test_what_nobody_could_measure_is_not_taken_for_nothing() -> None:
    """Nodes 2 and 3 have no cpus: their rows are not known, and node 3's column is not, either."""
    nodes = [{"id": n, "cpus": cpus} for n, cpus in enumerate(([0], [1], [], []))]
    machine = Machine.from_dict({
        "schema": "numaplan/machine/1",
        "nodes": nodes,
        "distances": [[10, 21, 17, 28], [21, 10, 28, 17], [17, 28, 10, 28], [28, 17, 28, 10]],
        "latency_ns": [[90, 150, 110, 170], [150, 0, 170, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
        "bandwidth_mb_s": [[80e3, 17e3, 300e3, 0], [17e3, 0, 17e3, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
    })  # fmt: skip
    band, latency = bandwidths(machine), latencies(machine)
    assert np.diag(band).tolist() == [80e3, LOCAL_MB_S, 300e3, LOCAL_MB_S]
    assert band[0, 3] == band[2, 0] == REMOTE_MB_S
    assert np.diag(latency).tolist() == [90.0, LOCAL_NS, LOCAL_NS, LOCAL_NS]
    assert latency[1, 3] == latency[2, 0] == pytest.approx(LOCAL_NS + 7 * MORE_NS)


def test_lines_wait_for_the_way_between_the_cpus() -> None:
    ways = transfers(Machine.load("opteron-4x8"), [0, 1, 4, 8])
    assert ways[0, 0] == 0
    assert ways[0, 1] == SHARED_L3 * LOCAL_NS
    assert ways[0, 1] < ways[0, 2] < ways[0, 3]


def test_threads_on_one_cpu_wait_for_each_other() -> None:
    apart = placement_cost(MACHINE, [0, 1], np.zeros((2, 2)), accesses=[1000, 1000])
    together = placement_cost(MACHINE, [0, 0], np.zeros((2, 2)), accesses=[1000, 1000], shared=[1.0, 1.0])
    assert apart.total_ns == 0
    assert together.cpu_ns == 2000 * ACCESS_NS


def test_a_memory_that_all_use_at_its_full_speed_makes_them_wait() -> None:
    machine = Machine.load("2x32")
    one, both = np.zeros((64, 2)), np.full((64, 2), 5e5)
    one[:, 0] = 1e6
    crowded, spread = (placement_cost(machine, machine.cpus, memory) for memory in (one, both))
    assert crowded.memory_ns == pytest.approx(spread.memory_ns)
    assert crowded.queue_ns > 1.5 * spread.queue_ns
    idle = placement_cost(machine, machine.cpus, one, accesses=np.full(64, 1e9))
    assert idle.queue_ns < crowded.queue_ns / 50


def test_a_page_that_moves_is_read_here_and_written_there() -> None:
    still, moved = (placement_cost(MACHINE, [0], [[8, 0]], pages_moved=pages) for pages in (0, 10))
    assert moved.moves_ns == pytest.approx(10 * 64 * (84 + 143) / OVERLAP)
    assert moved.total_ns == pytest.approx(still.total_ns + moved.moves_ns)
    assert placement_cost(Machine.load("1x4"), [0], [[8]], pages_moved=10).moves_ns == 0


counts = st.lists(st.floats(0, 1e9), min_size=8, max_size=8)


@given(counts, counts, st.floats(1.0, 100.0))
def test_more_of_everything_costs_as_much_more(memory: list[float], made: list[float], times: float) -> None:
    missed, accesses = np.array(memory).reshape(4, 2), np.array(made[:4]) + 1
    once = placement_cost(MACHINE, range(4), missed, accesses=accesses)
    more = placement_cost(MACHINE, range(4), missed * times, accesses=accesses * times)
    assert more.total_ns == pytest.approx(once.total_ns * times, rel=1e-6, abs=1e-6)
    assert once.total_ns >= 0


def test_no_accesses_cost_nothing() -> None:
    assert placement_cost(MACHINE, range(8), np.zeros((8, 2))).total_ns == 0
    assert placement_cost(MACHINE, [], np.zeros((0, 2))).total_ns == 0
