"""Page placement, capacity, and seats within nodes."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from numaplan.analyzer import PageCounts
from numaplan.mapper import (
    Plan,
    PlanOptions,
    RegionKey,
    Workload,
    assign_cpus,
    make_plan,
    place_pages,
)
from numaplan.mapper.memory.pages import MAX_REGIONS
from numaplan.mapper.planning.cost.counted_pages import CountedPages
from numaplan.profiler import Machine
from tests.support.properties import examples

PAGE = 4096


def stats_of(rows: list[tuple[int, int, int, int, int]], sizes: list[int]) -> PageCounts:
    """Rows: region, page, thread, accesses, writes."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    keys = [RegionKey(kind="heap", name=f"r{i}", bytes=size) for i, size in enumerate(sizes)]
    return PageCounts(keys, *columns)


def test_pages_go_to_who_uses_them_and_merge_into_runs() -> None:
    rows = [(0, page, page // 4, 10, 5) for page in range(8)] + [(0, 1, 3, 3, 3)]
    plan = place_pages(stats_of(rows, [8 * PAGE]), [0, 1, 1, 1], Machine.load("2x2"))
    (region,) = plan.memory
    assert region.policy == "bind"
    assert [(run.offset, run.bytes, run.node) for run in region.runs] == [
        (0, 4 * PAGE, 0),
        (4 * PAGE, 4 * PAGE, 1),
    ]
    assert plan.local_share == pytest.approx(80 / 83)


def test_read_mostly_shared_pages_are_interleaved() -> None:
    rows = [(0, page, thread, 10, 0) for page in range(6) for thread in range(4)]
    plan = place_pages(stats_of(rows, [6 * PAGE - 100]), [0, 1, 2, 3], Machine.load("4x1"))
    (region,) = plan.memory
    assert region.policy == "interleave"
    assert [run.node for run in region.runs] == [0, 1, 2, 3]
    assert sum(run.bytes for run in region.runs) == 6 * PAGE - 100
    assert plan.local_share == pytest.approx(0.25)


def test_nodes_that_hardly_use_what_is_interleaved_have_no_part_of_it() -> None:
    """Two nodes read all of it, one a little more than a quarter of an even share, one a single time."""
    rows = [(0, page, thread, 1000, 0) for page in range(6) for thread in (1, 2)]
    rows += [(0, 3, 0, 1, 0), (0, 4, 3, 900, 0)]
    plan = place_pages(stats_of(rows, [6 * PAGE]), [0, 1, 2, 3], Machine.load("4x1"))
    (region,) = plan.memory
    assert region.policy == "interleave"
    assert [run.node for run in region.runs] == [1, 2, 3]
    assert sum(run.bytes for run in region.runs) == 6 * PAGE


def test_where_misses_decide_written_shared_pages_are_not_taken_for_read_ones() -> None:
    """Three tenths are writes of a region that misses much, beside one with 20 times as many accesses."""
    rows = [(0, page, thread, 10_000, 5000) for page in range(8) for thread in range(4)]
    rows += [(1, page, thread, 500, 150) for page in range(8) for thread in range(4)]
    counts = stats_of(rows, [8 * PAGE, 8 * PAGE])
    missed = np.where(counts.region == 1, 50, 1)
    counts = replace(counts, missed=missed, missed_before=0 * missed, exact=True)
    deciding = CountedPages(counts).deciding
    assert (deciding.writes / deciding.accesses).tolist() == pytest.approx([0.5] * 32 + [0.3] * 32)
    plan = place_pages(deciding, [0, 1, 2, 3], Machine.load("4x1"))
    assert {region.region.name: region.policy for region in plan.memory} == {"r0": "bind", "r1": "bind"}


def test_written_shared_pages_are_not_interleaved() -> None:
    rows = [(0, page, thread, 10, 5) for page in range(6) for thread in range(4)]
    assert (
        place_pages(stats_of(rows, [6 * PAGE]), [0, 1, 2, 3], Machine.load("4x1")).memory[0].policy == "bind"
    )


def test_node_capacity_is_respected_and_memory_only_nodes_take_the_overflow() -> None:
    machine = Machine.from_dict({
        "schema": "numaplan/machine/1",
        "nodes": [
            {"id": 0, "cpus": [0, 1], "memory_bytes": 100 * PAGE},
            {"id": 4, "memory_bytes": 1000 * PAGE},
        ],
    })  # fmt: skip
    rows = [(r, page, 0, 100 if r else 1, 1) for r in range(2) for page in range(60)]
    plan = place_pages(stats_of(rows, [60 * PAGE, 60 * PAGE]), [0], machine)
    nodes = {region.region.name: {run.node for run in region.runs} for region in plan.memory}
    assert nodes == {"r1": {0}, "r0": {0, 4}}  # the busy region stays with its thread, the other as far
    held = sum(run.bytes for region in plan.memory for run in region.runs if run.node == 0)
    assert 89 * PAGE <= held <= 90 * PAGE  # as there is room: a tenth is left to everything else


def parts_of_eight(machine: Machine, pages: int = 64) -> Plan:
    """A plan of eight neighbours, each of which uses its eighth of a region."""
    rows = [(0, page, page * 8 // pages, 100, 50) for page in range(pages)]
    near = np.diag(np.ones(7), 1) * 1000
    workload = Workload(
        [("p0", f"0.{i}" if i else "0") for i in range(8)],
        near + near.T,
        np.ones(8),
        {},
        pages=stats_of(rows, [pages * PAGE]),
    )
    return make_plan(workload, machine, PlanOptions(objective="balanced")).plan


def two_nodes(first: int, second: int, **more: object) -> Machine:
    """Of four cpus each, with so many pages of memory."""
    nodes = [
        {"id": 0, "cpus": [0, 1, 2, 3], "memory_bytes": first * PAGE},
        {"id": 1, "cpus": [4, 5, 6, 7], "memory_bytes": second * PAGE},
    ]
    return Machine.from_dict({"nodes": nodes, **more})


def held_by(plan: Plan) -> dict[int, int]:
    """Pages of the only region on each node."""
    (region,) = plan.memory
    return {node: sum(r.bytes for r in region.runs if r.node == node) // PAGE for node in (0, 1, 2)}


def test_parts_of_threads_are_not_put_where_there_was_no_room_for_them() -> None:
    """Regions whose threads have parts in order scale: not with parts that had to go elsewhere."""
    assert held_by(parts_of_eight(two_nodes(1000, 1000))) == {0: 32, 1: 32, 2: 0}
    assert parts_of_eight(two_nodes(1000, 1000)).memory[0].scales
    full = parts_of_eight(two_nodes(20, 1000))
    assert held_by(full) == {0: 18, 1: 46, 2: 0}
    assert not full.memory[0].scales
    assert held_by(parts_of_eight(two_nodes(1000, 0))) == {0: 64, 1: 0, 2: 0}


def test_parts_of_threads_stay_in_the_faster_memory_that_they_were_given() -> None:
    fast = {"id": 2, "memory_bytes": 1000 * PAGE}
    plain = two_nodes(1000, 1000).to_dict()
    machine = Machine.from_dict({
        "nodes": [*plain["nodes"], fast],
        "distances": [[10, 21, 13], [21, 10, 23], [13, 23, 10]],
        "bandwidth_mb_s": [[80, 20, 300], [20, 80, 40], [0, 0, 0]],
    })  # fmt: skip
    assert held_by(parts_of_eight(machine)) == {0: 0, 1: 32, 2: 32}


def test_nothing_is_spread_over_nodes_without_memory() -> None:
    rows = [(0, page, thread, 10, 0) for page in range(6) for thread in range(4)]
    (region,) = place_pages(stats_of(rows, [6 * PAGE]), [0, 0, 1, 1], two_nodes(1000, 1000)).memory
    assert (region.policy, {run.node for run in region.runs}) == ("interleave", {0, 1})
    (region,) = place_pages(stats_of(rows, [6 * PAGE]), [0, 0, 1, 1], two_nodes(1000, 0)).memory
    assert {run.node for run in region.runs} == {0}


@pytest.mark.slow
@pytest.mark.parametrize("regions,pages", [(1, 25_000_000), (5000, 5000)])
def test_a_plan_for_100_gb_stays_under_1_mb(regions: int, pages: int, tmp_path: Path) -> None:
    """100 GB of memory, homes as mixed as can be: neighbouring samples never agree."""
    rng = np.random.default_rng(1)
    region, page = rng.integers(0, regions, 200_000), rng.integers(0, pages, 200_000)
    thread, counts = rng.integers(0, 8, 200_000), rng.integers(1, 100, 200_000)
    name = "libsomething_long.so.1.2.3+0xdeadbeef"
    keys = [
        RegionKey(
            kind="heap", name=name, bytes=pages * PAGE, build_id="c0ffee" * 6, thread="0.3.1", sequence=i
        )
        for i in range(regions)
    ]
    stats = PageCounts(keys, region, page, thread, counts, counts)
    workload = Workload(
        [("p0", f"0.{i}" if i else "0") for i in range(8)], np.ones((8, 8)), np.ones(8), {}, pages=stats
    )
    plan = make_plan(workload, Machine.load("4x2"), PlanOptions()).plan
    plan.save(tmp_path / "plan.json")
    assert (tmp_path / "plan.json").stat().st_size < 1 << 20
    assert sum(run.bytes for region in plan.memory for run in region.runs) == len(plan.memory) * pages * PAGE
    assert len(plan.memory) == min(regions, MAX_REGIONS)
    assert Plan.load(tmp_path / "plan.json") == plan


def test_nothing_counted_places_nothing() -> None:
    plan = place_pages(stats_of([], [PAGE]), [0], Machine.load("2x1"))
    assert plan.memory == () and plan.local_share == -1.0


@examples(60)
@given(
    pages=st.integers(1, 400),
    nodes=st.integers(1, 4),
    limit=st.integers(1, 8),
    seed=st.integers(0, 999),
    tail=st.integers(0, PAGE - 1),
)
def test_runs_cover_the_region_once_within_the_limit(
    pages: int, nodes: int, limit: int, seed: int, tail: int
) -> None:
    rng = np.random.default_rng(seed)
    size = pages * PAGE - tail
    rows = [(0, int(rng.integers(-1, pages + 1)), int(rng.integers(nodes)), 5, 5) for _ in range(200)]
    plan = place_pages(stats_of(rows, [size]), list(range(nodes)), Machine.load(f"{nodes}x1"), max_runs=limit)
    for region in plan.memory:
        assert len(region.runs) <= max(limit, nodes)
        assert region.runs[0].offset == 0
        for before, after in zip(region.runs[:-1], region.runs[1:], strict=True):
            assert before.offset + before.bytes == after.offset
        assert region.runs[-1].offset + region.runs[-1].bytes == size
        assert 0 <= plan.local_share <= 1


def smt_machine() -> Machine:
    """One node of two last-level caches, each of two cores with two hwthreads."""
    return Machine.from_dict({
        "schema": "numaplan/machine/1",
        "nodes": [{"id": 0, "cpus": list(range(8))}],
        "cores": [{"cpus": [c, c + 4], "node": 0, "l3": c // 2} for c in range(4)],
    })  # fmt: skip


def seats(comm: np.ndarray, machine: Machine, nodes: list[int]) -> list[int]:  # type: ignore[type-arg]
    return [cpus[0] for cpus in assign_cpus(comm, machine, nodes)]


def test_threads_that_share_get_the_same_cache_and_core() -> None:
    comm = np.zeros((8, 8))
    for first, second, weight in ((0, 5, 100), (1, 6, 100), (2, 7, 100), (3, 4, 100), (0, 1, 9), (2, 3, 9)):
        comm[first, second] = comm[second, first] = weight
    cpus = seats(comm, smt_machine(), [0] * 8)
    assert sorted(cpus) == list(range(8))
    cores = [cpu % 4 for cpu in cpus]
    assert cores[0] == cores[5] and cores[1] == cores[6] and cores[2] == cores[7] and cores[3] == cores[4]
    assert cores[0] // 2 == cores[1] // 2 != cores[2] // 2 == cores[3] // 2


def test_cores_are_not_shared_while_there_are_enough() -> None:
    comm = np.ones((4, 4)) - np.eye(4)
    assert sorted(cpu % 4 for cpu in seats(comm, smt_machine(), [0] * 4)) == [0, 1, 2, 3]


def test_more_threads_than_cpus_share_evenly() -> None:
    cpus = seats(np.zeros((20, 20)), smt_machine(), [0] * 20)
    assert set(np.bincount(cpus, minlength=8)) <= {2, 3}


def test_cores_unknown() -> None:
    machine = Machine.from_dict({"schema": "numaplan/machine/1", "nodes": [{"id": 2, "cpus": [1, 3, 9]}]})
    assert sorted(seats(np.zeros((3, 3)), machine, [2, 2, 2])) == [1, 3, 9]
