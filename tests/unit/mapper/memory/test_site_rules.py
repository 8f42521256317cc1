"""Blocks that are used alike get one rule for their call site; those that are not keep homes of their own."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.analyzer import PageCounts
from numaplan.common import UsageError
from numaplan.mapper import Plan, PlanOptions, RegionKey, Workload, make_plan, place_pages
from numaplan.mapper.plan_file.diff import differences
from numaplan.profiler import Machine

PAGE = 4096
MACHINE = Machine.load("2x2")
NODES = [0, 0, 1, 1]  # of threads


class Place(NamedTuple):
    """A page of a block of so many."""

    block: int
    page: int
    pages: int


Use = Callable[[Place], dict[int, int]]  # accesses by thread


def counts_of(use: Use, sizes: list[int], name: str = "app+0x10", thread: str = "0") -> PageCounts:
    """Blocks of one site, one after another in time; sizes: pages of each."""
    keys = [
        RegionKey(kind="heap", name=name, bytes=size * PAGE, thread=thread, sequence=number + 1)
        for number, size in enumerate(sizes)
    ]
    rows = [
        (number, page, user, accesses, accesses)
        for number, size in enumerate(sizes)
        for page in range(size)
        for user, accesses in use(Place(number, page, size)).items()
    ]
    columns = np.array(rows, np.int64).reshape(-1, 5).T
    lives = np.array([(number, number + 1) for number in range(len(sizes))])
    return PageCounts(keys, *columns, lives=lives)


def by_halves(at: Place) -> dict[int, int]:
    return {0 if at.page < at.pages // 2 else 2: 100}


def test_blocks_in_the_same_parts_have_one_rule_whatever_their_sizes() -> None:
    plan = place_pages(counts_of(by_halves, [32, 64, 48, 40]), NODES, MACHINE)
    (entry,) = plan.memory
    assert entry.region == RegionKey(kind="heap", name="app+0x10", bytes=64 * PAGE, thread="0", sequence=None)
    assert [(run.offset, run.bytes, run.node) for run in entry.runs] == [
        (0, 32 * PAGE, 0),
        (32 * PAGE, 32 * PAGE, 1),
    ]
    assert entry.rule is not None and (entry.rule.least, entry.rule.most, entry.rule.seen) == (0, None, 4)
    assert plan.local_share == 1.0
    assert entry.share == 1.0


def test_many_blocks_are_one_entry() -> None:
    plan = place_pages(counts_of(lambda _: {2: 5}, [16] * 3000), NODES, MACHINE)
    (entry,) = plan.memory
    assert entry.rule is not None and entry.rule.seen == 3000
    assert [run.node for run in entry.runs] == [1]


def test_a_block_that_differs_keeps_its_own_homes() -> None:
    def use(at: Place) -> dict[int, int]:
        return {2: 100} if at.block == 3 else {0: 100}

    plan = place_pages(counts_of(use, [16] * 8), NODES, MACHINE)
    homes = {entry.region.sequence: entry.runs[0].node for entry in plan.memory}
    assert homes == {None: 0, 4: 1}
    assert plan.local_share == 1.0


def test_one_busy_block_does_not_decide_for_many() -> None:
    def use(at: Place) -> dict[int, int]:
        return {2: 100_000} if at.block == 3 else {0: 100}

    plan = place_pages(counts_of(use, [16] * 8), NODES, MACHINE)
    homes = {entry.region.sequence: entry.runs[0].node for entry in plan.memory}
    assert homes[4] == 1
    assert homes.get(None, 0) == 0  # the others are hardly worth a line


def test_blocks_that_each_node_has_for_itself_have_no_rule() -> None:
    """Read by one thread each: taken together they would look like everybody's."""
    keys = counts_of(lambda at: {at.block % 4: 100}, [16] * 8)
    stats = replace(keys, writes=np.zeros_like(keys.writes))
    plan = place_pages(stats, NODES, MACHINE)
    assert all(entry.rule is None and entry.policy == "bind" for entry in plan.memory)
    assert len(plan.memory) == 8
    assert plan.local_share == 1.0


def test_sizes_that_are_used_in_other_ways_have_rules_of_their_own() -> None:
    def use(at: Place) -> dict[int, int]:
        return {0: 100} if at.pages < 32 else {2: 100}

    plan = place_pages(counts_of(use, [16, 64, 20, 80, 17, 70]), NODES, MACHINE)
    found = {(entry.rule.least, entry.rule.most): entry.runs[0].node for entry in plan.memory if entry.rule}
    assert found == {(0, 64 * PAGE - 1): 0, (64 * PAGE, None): 1}


def test_nothing_is_assumed_of_other_sizes_where_some_blocks_differ() -> None:
    def use(at: Place) -> dict[int, int]:
        return {0: 100} if at.pages < 32 else {at.block: 100}

    plan = place_pages(counts_of(use, [40, 16, 16, 40]), [0, 0, 0, 1], MACHINE)
    rules = [entry.rule for entry in plan.memory if entry.rule]
    assert [(rule.least, rule.most) for rule in rules] == [(16 * PAGE, 32 * PAGE - 1)]
    assert sorted(entry.region.sequence or 0 for entry in plan.memory) == [0, 1, 4]


def test_few_samples_are_no_difference() -> None:
    """Blocks of a rule that were hardly seen: what their own homes would gain is chance."""
    rng = np.random.default_rng(1)

    def use(_: Place) -> dict[int, int]:
        return {0 if rng.random() < 0.9 else 2: 1} if rng.random() < 0.2 else {}

    plan = place_pages(counts_of(use, [32] * 200), NODES, MACHINE)
    assert [entry.region.sequence for entry in plan.memory] == [None]


def test_room_is_for_those_that_live_at_the_same_time() -> None:
    small = Machine.from_dict(
        {
            "schema": "numaplan/machine/1",
            "nodes": [{"id": node, "cpus": [node], "memory_bytes": 100 * PAGE} for node in range(2)],
        }
    )
    stats = counts_of(lambda _: {0: 10}, [40] * 10)
    one_by_one = place_pages(stats, [0, 1], small)
    assert {run.node for run in one_by_one.memory[0].runs} == {0}
    assert stats.lives is not None
    together = place_pages(replace(stats, lives=np.full_like(stats.lives, -1)), [0, 1], small)
    assert {run.node for run in together.memory[0].runs} == {0, 1}


def test_mappings_and_static_data() -> None:
    stats = counts_of(by_halves, [32, 32], name="app:table")
    assert all(entry.rule is None for entry in place_pages(stats, NODES, MACHINE).memory)
    mapped = [replace(key, kind="mmap", name="app+0x9") for key in stats.regions]
    (entry,) = place_pages(replace(stats, regions=mapped), NODES, MACHINE).memory
    assert entry.rule is not None and entry.region.kind == "mmap"


def plan_of(stats: PageCounts) -> Plan:
    threads = [("p0", f"0.{i}" if i else "0") for i in range(4)]
    return make_plan(
        Workload(threads, np.ones((4, 4)), np.ones(4), {}, pages=stats), MACHINE, PlanOptions()
    ).plan


def test_rules_in_a_file(tmp_path: Path) -> None:
    plan = plan_of(counts_of(by_halves, [32, 64]))
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == plan
    text = (tmp_path / "plan.json").read_text()
    assert '"sequence": null' in text and '"blocks": {"least": 0, "most": null, "seen": 2}' in text
    for old, new in (
        ('"sequence": null', '"sequence": 3'),
        ('"most": null', '"most": 5'),
        ('"kind": "heap"', '"kind": "static"'),
    ):
        with pytest.raises(UsageError, match=r"rule|size"):
            Plan.from_json(text.replace(old, new))


def test_differences_of_rules_are_of_homes_not_of_sizes_seen() -> None:
    first, second = (plan_of(counts_of(by_halves, sizes)) for sizes in ([32, 64], [128, 64, 32]))
    assert not [line for line in differences(first, second) if "app" in line]
    moved = plan_of(counts_of(lambda _: {0: 100}, [32, 64]))
    (line,) = [line for line in differences(first, moved) if "app" in line]
    assert line.startswith("heap app+0x10 by thread 0, every block: bind on ")
