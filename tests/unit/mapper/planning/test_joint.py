"""Threads and pages together; faster memory; controllers; memory that changes hands; what is not placed."""

import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.analyzer import PageCounts
from numaplan.mapper import PlanOptions, RegionKey, Workload, make_plan, place_pages
from numaplan.mapper.memory.capacity import faster_memory_note
from numaplan.mapper.memory.traffic import first_touch_traffic
from numaplan.mapper.planning.page_notes import page_notes
from numaplan.profiler import Machine

PAGE = 4096


def stats_of(rows: list[tuple[int, int, int, int, int, int]], sizes: list[int], **more: object) -> PageCounts:
    """Rows: region, page, thread, accesses, writes, phase; sizes in pages."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, 6).T
    keys = [RegionKey(kind="heap", name=f"r{i}", bytes=size * PAGE) for i, size in enumerate(sizes)]
    region, page, thread, accesses, writes, phase = columns
    stats = PageCounts(keys, region, page, thread, accesses, writes, phase=phase)
    return replace(stats, **more)  # type: ignore[arg-type]


def machine_of(*nodes: dict[str, object], **more: object) -> Machine:
    content = [{"id": i, **node} for i, node in enumerate(nodes)]
    return Machine.from_dict({"schema": "numaplan/machine/1", "nodes": content, **more})


def test_threads_follow_memory_that_does_not_fit_elsewhere() -> None:
    """Nodes 1 and 2 are alike but for their memory: the threads with much memory belong where there is much.

    Nothing but memory tells them apart, so the plan without memory puts them anywhere.
    """
    machine = machine_of(
        {"cpus": [0, 1], "memory_bytes": 20 * PAGE}, {"cpus": [2, 3], "memory_bytes": 2000 * PAGE}
    )
    comm = np.array([[0.0, 100, 0, 0], [100, 0, 0, 0], [0, 0, 0, 100], [0, 0, 100, 0]])
    threads = [("p0", path) for path in ("0", "0.1", "0.2", "0.3")]
    for big in (0, 2):
        rows = [(0, page, big, 100, 50, 0) for page in range(100)]
        workload = Workload(threads, comm, np.ones(4), {}, pages=stats_of(rows, [100]))
        plan = make_plan(workload, machine, PlanOptions()).plan
        assert plan.threads[big].node == 1
        assert plan.predicted.local_share == 1.0
        assert plan.predicted.remote_comm == 0


def test_pins_hold_when_threads_follow_memory() -> None:
    machine = machine_of({"cpus": [0], "memory_bytes": 20 * PAGE}, {"cpus": [1], "memory_bytes": 2000 * PAGE})
    rows = [(0, page, 0, 100, 50, 0) for page in range(100)]
    workload = Workload(
        [("p0", "0"), ("p0", "0.1")], np.ones((2, 2)), np.ones(2), {}, pages=stats_of(rows, [100])
    )
    plan = make_plan(workload, machine, PlanOptions(pins={"0": "0"})).plan
    assert plan.threads[0].node == 0 and 0 < plan.predicted.local_share < 1


def test_the_hottest_pages_use_fast_memory_and_the_coldest_slow() -> None:
    """Node 1 is like HBM beside node 0: little and fast; node 2 like CXL: far."""
    machine = machine_of(
        {"cpus": [0], "memory_bytes": 50 * PAGE}, {"memory_bytes": 12 * PAGE}, {"memory_bytes": 1000 * PAGE},
        bandwidth_mb_s=[[100, 400, 30], [1, 1, 1], [1, 1, 1]],
        distances=[[10, 13, 30], [13, 10, 40], [30, 40, 10]],
    )  # fmt: skip
    rows = [(r, page, 0, heat, 1, 0) for r, heat in enumerate((5, 100, 1)) for page in range((30, 10, 40)[r])]
    plan = place_pages(stats_of(rows, [30, 10, 40]), [0], machine)
    at = {region.region.name: {run.node for run in region.runs} for region in plan.memory}
    assert at["r1"] == {1} and at["r0"] == {0} and at["r2"] == {0, 2}
    (note,) = faster_memory_note(plan.traffic, machine)
    assert "(node 1) with 4.0 times the bandwidth" in note
    everything = 30 * 5 + 10 * 100 + 40
    assert note.startswith(f"{1000 / everything:.0%} of the accesses")
    slow = place_pages(stats_of([(0, 0, 0, 1, 1, 0)], [1]), [0], machine_of({"cpus": [0]}, {"cpus": [1]}))
    assert faster_memory_note(slow.traffic, machine_of({"cpus": [0]}, {"cpus": [1]})) == []


def test_nothing_is_faster_than_a_bandwidth_that_is_not_known() -> None:
    """A machine file may have 0 there."""
    machine = machine_of(
        {"cpus": [0], "memory_bytes": 50 * PAGE}, {"memory_bytes": 50 * PAGE}, bandwidth_mb_s=[[0, 5], [1, 1]]
    )
    plan = place_pages(stats_of([(0, 0, 0, 10, 1, 0)], [1]), [0], machine)
    assert plan.local_share == 1
    assert faster_memory_note(np.array([[0.0, 10.0], [0.0, 0.0]]), machine) == []


def test_a_region_larger_than_any_node_is_cut() -> None:
    machine = Machine.from_dict({
        "schema": "numaplan/machine/1",
        "nodes": [{"id": n, "cpus": [n], "memory_bytes": 100 * PAGE} for n in range(4)],
    })  # fmt: skip
    rows = [(0, page, 0, 10, 10, 0) for page in range(300)]
    plan = place_pages(stats_of(rows, [300]), [0, 1, 2, 3], machine)
    (region,) = plan.memory
    held = {n: sum(run.bytes for run in region.runs if run.node == n) for n in range(4)}
    assert sum(held.values()) == 300 * PAGE and max(held.values()) <= 90 * PAGE
    assert plan.local_share == pytest.approx(0.3, abs=0.01)


def test_shared_pages_leave_the_busiest_controller() -> None:
    """Every page is written by both nodes, by thread 0 a little more: all would be on node 0."""
    rows = [(r, 0, thread, 52 if thread == 0 else 48, 20, 0) for r in range(10) for thread in (0, 1)]
    plan = place_pages(stats_of(rows, [1] * 10), [0, 1], Machine.load("2x1"))
    on_first = sum(region.runs[0].node == 0 for region in plan.memory)
    assert on_first in (5, 6)
    assert plan.local_share > 0.49  # hardly less than the 0.52 of all on node 0
    private = [(r, 0, 0, 100, 20, 0) for r in range(10)]
    kept = place_pages(stats_of(private, [1] * 10), [0, 1], Machine.load("2x1"))
    assert kept.local_share == 1.0


def test_memory_that_changes_hands_moves_along() -> None:
    """Thread 0 has all pages in the first phase, thread 1, of another team, in the second."""
    machine = Machine.load("2x1")
    rows = [(0, page, phase, 100, 50, phase) for page in range(8) for phase in (0, 1)]
    stats = replace(stats_of(rows, [8], period=100), teams=np.array([0, 1]))
    fixed = place_pages(stats, [0, 1], machine)
    assert fixed.memory[0].policy == "bind" and fixed.local_share == 0.5
    ((key, gain),) = fixed.moving
    assert key.name == "r0" and gain == pytest.approx(0.5, abs=0.01) and not fixed.changing
    moved = place_pages(stats, [0, 1], machine, next_touch=True)
    assert moved.memory[0].policy == "next-touch" and moved.local_share == 1.0
    few = place_pages(replace(stats, period=1), [0, 1], machine, next_touch=True)
    assert few.memory[0].policy == "bind"  # a hundred accesses a page do not pay for moving it
    steady = [(0, page, page % 2, 100, 50, phase) for page in range(8) for phase in (0, 1)]
    found = place_pages(replace(stats_of(steady, [8], period=100), teams=np.array([0, 1])), [0, 1], machine)
    assert not found.moving and not found.changing


def test_phases_of_one_team_are_the_program_s_to_mark() -> None:
    """The launcher marks memory when threads are made: in phases of the same threads it would never move."""
    rows = [(0, page, phase, 100, 50, phase) for page in range(8) for phase in (0, 1)]
    plan = place_pages(stats_of(rows, [8], period=100), [0, 1], Machine.load("2x1"), next_touch=True)
    assert plan.memory[0].policy == "bind" and plan.local_share == 0.5
    assert not plan.moving and [key.name for key, _ in plan.changing] == ["r0"]
    ((key, gain),) = plan.changing
    for name, told in (("app+0x1f", 1), ("libapp.so:grid", 1), ("libjvm.so:.data", 0), ("libc.so.6+0x1", 0)):
        named = replace(plan, changing=((replace(key, name=name), gain),))
        notes = page_notes(named, Machine.load("2x1"), next_touch=True)
        assert sum("numaplan.h" in note for note in notes) == told, (
            "a runtime's memory is not the program's to mark"
        )


def test_a_page_of_two_equal_users_stays_with_the_region() -> None:
    rng = np.random.default_rng(0)
    rows = [(0, page, thread, int(rng.poisson(50)), 20, 0) for page in range(64) for thread in (0, 1)] + [
        (0, page, 0, 30, 10, 0) for page in range(64, 70)
    ]
    plan = place_pages(stats_of(rows, [70]), [0, 1], Machine.load("2x1"))
    assert len(plan.memory[0].runs) <= 6 and plan.local_share < 0.56


def test_memory_that_is_not_placed_counts_where_it_was_touched_first() -> None:
    stats = stats_of([(0, 0, 1, 60, 60, 0)], [1], toucher=np.array([0]), before=np.array([4]))
    stats = replace(stats, elsewhere=np.array([[10.0, 0.0], [20.0, 6.0]]))
    machine = Machine.load("2x1")
    plan = place_pages(stats, [0, 1], machine)
    assert plan.traffic is not None and plan.traffic.tolist() == [[10, 0], [20, 6 + 64]]
    assert plan.local_share == pytest.approx(80 / 100)
    today = first_touch_traffic(stats, [0, 1], machine)
    assert today is not None and today.tolist() == [[10, 0], [20 + 64, 6]]
