"""Properties of runs and of capacity: memory is covered once, no node holds more than it has."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.analyzer import PageCounts
from numaplan.mapper import RegionKey, place_pages
from numaplan.mapper.memory.capacity import RESERVE, fit_capacity, free_bytes
from numaplan.mapper.memory.run_table import FEW_RUNS, PAGE, RunTable, make_table
from numaplan.profiler import Machine
from tests.support.properties import examples


def key(size: int, name: str = "r") -> RegionKey:
    return RegionKey(kind="heap", name=name, bytes=size)


@given(
    pages=st.integers(1, 5000),
    seen=st.integers(1, 300),
    nodes=st.integers(1, 5),
    limit=st.integers(1, 100),
    seed=st.integers(0, 999),
)
def test_runs_keep_all_accesses_and_no_fewer_at_home_than_one_run(
    pages: int, seen: int, nodes: int, limit: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    which = np.unique(rng.integers(0, pages, seen))
    counts = rng.poisson(rng.choice([0.3, 3, 30]), (len(which), nodes)).astype(float)
    counts[:, 0] += 1
    table = make_table(key(pages * PAGE), which, counts, counts.sum(), limit)
    assert len(table.home) == len(table.accesses) == len(table.first) - 1 <= limit
    assert table.first[0] == 0 and table.first[-1] == pages
    assert (np.diff(table.first) > 0).all()
    assert np.allclose(table.accesses.sum(axis=0), counts.sum(axis=0))
    kept = table.accesses[np.arange(len(table.home)), table.home].sum()
    assert kept >= counts.sum(axis=0).max()


@examples(40)
@given(
    blocks=st.lists(st.integers(1, 40), min_size=1, max_size=FEW_RUNS),
    nodes=st.integers(2, 4),
    first=st.integers(0, 3),
)
def test_blocks_that_are_well_sampled_are_found_to_the_page(
    blocks: list[int], nodes: int, first: int
) -> None:
    home = np.repeat((np.arange(len(blocks)) + first) % nodes, blocks)
    table = make_table(key(len(home) * PAGE), np.arange(len(home)), 50.0 * np.eye(nodes)[home], 1e9, 1000)
    assert table.homes_of(np.arange(len(home))).tolist() == home.tolist()


def test_samples_too_few_for_a_page_tell_of_its_neighbours() -> None:
    """A sample in every third page: none beats chance, a thousand of them do."""
    pages = np.arange(0, 60_000, 3)
    home = pages * 4 // 60_000
    table = make_table(key(60_000 * PAGE), pages, np.eye(4)[home], 1e9, 4096)
    assert (table.homes_of(pages) == home).mean() > 0.97
    assert len(table.home) <= 6


def test_many_runs_only_where_they_make_much_local() -> None:
    rng = np.random.default_rng(0)
    dealt = np.arange(20_000) // 40 % 4  # 500 blocks
    well = make_table(key(20_000 * PAGE), np.arange(20_000), 20 * np.eye(4)[dealt], 1e9, 4096)
    assert len(well.home) == 500
    anybody = make_table(
        key(20_000 * PAGE), np.arange(20_000), rng.poisson(2, (20_000, 4)).astype(float), 1e9, 4096
    )
    assert len(anybody.home) <= FEW_RUNS


@examples(60)
@given(
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=4),
    room=st.lists(st.integers(0, 500), min_size=2, max_size=4),
    seed=st.integers(0, 999),
)
def test_no_node_is_given_more_than_it_has_while_another_has_room(
    sizes: list[int], room: list[int], seed: int
) -> None:
    machine = Machine.from_dict(
        {
            "schema": "numaplan/machine/1",
            "nodes": [{"id": n, "cpus": [n], "memory_bytes": (20 + r) * PAGE} for n, r in enumerate(room)],
        }
    )
    rng = np.random.default_rng(seed)
    region = rng.integers(0, len(sizes), 500)
    page = rng.integers(0, np.array(sizes)[region])
    thread, accesses = rng.integers(0, len(room), 500), rng.integers(1, 50, 500)
    keys = [key(size * PAGE, f"r{i}") for i, size in enumerate(sizes)]
    plan = place_pages(PageCounts(keys, region, page, thread, accesses, accesses), range(len(room)), machine)
    held = np.zeros(len(room))
    for part in plan.memory:
        ends = [run.offset + run.bytes for run in part.runs]
        assert [run.offset for run in part.runs] == [0, *ends[:-1]]
        assert ends[-1] == part.region.bytes
        for run in part.runs:
            held[run.node] += run.bytes
    usable = np.array([node.memory_bytes for node in machine.nodes]) * (1 - RESERVE)
    over, left = np.maximum(held - usable, 0).sum(), np.maximum(usable - held, 0)
    assert over == 0 or left.max() < PAGE  # too much for all of them: then the kernel decides


def machine_of(*pages: int) -> Machine:
    nodes = [{"id": n, "cpus": [n], "memory_bytes": size * PAGE} for n, size in enumerate(pages)]
    return Machine.from_dict({"schema": "numaplan/machine/1", "nodes": nodes})


def table_of(pages: int, copies: float = 1.0, made: float = 500.0) -> RunTable:
    """Used and wanted on node 0."""
    accesses = np.array([[made, 0.0]])
    return RunTable(key(pages * PAGE), np.array([0, pages]), accesses, np.array([0]), copies=copies)


@pytest.mark.parametrize(("blocks", "room", "given"), [(1000, 17_700, 1), (1000, 10_100, 7), (2.5, 40, 2)])
def test_a_node_too_full_of_blocks_of_one_rule_gives_up_pages_of_each(
    blocks: float, room: int, given: int
) -> None:
    """16 pages each. Of the room a tenth is kept: 15,930 pages for 16,000, in the first case."""
    table, machine = table_of(16, blocks), machine_of(room, 20_000)
    fit_capacity([table], machine)
    assert table.first.tolist() == [0, 16 - given, 16] and table.home.tolist() == [0, 1]
    assert free_bytes([table], machine).min() >= 0


def test_where_a_page_of_each_block_has_no_room_single_pages_move() -> None:
    """Node 1 has 54 pages left, and 100 blocks would take 100."""
    rule, single = table_of(8, 100.0, made=1.0), table_of(120, made=1e6)
    fit_capacity([rule, single], machine_of(1003, 60))
    assert rule.home.tolist() == [0]
    assert single.first.tolist() == [0, 102, 120] and single.home.tolist() == [0, 1]


def test_what_no_node_has_room_for_stays() -> None:
    tables = [table_of(16, 1000.0), table_of(1)]
    fit_capacity(tables, machine_of(1000, 0))
    assert [table.home.tolist() for table in tables] == [[0], [0]]


def test_of_nodes_with_room_one_whose_latency_is_not_known_is_not_the_nearest() -> None:
    content = machine_of(100, 1000, 1000).to_dict()
    content["latency_ns"] = [[84, 0, 100], [0, 84, 143], [100, 143, 84]]
    table = RunTable(key(200 * PAGE), np.array([0, 200]), np.array([[9.0, 0.0, 0.0]]), np.array([0]))
    fit_capacity([table], Machine.from_dict(content))
    assert table.home.tolist() == [0, 2]
