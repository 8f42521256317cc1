"""Which regions of a plan hold for other sizes of them, and how that is known."""

import msgspec
import numpy as np
import pytest

from numaplan.analyzer import PageCounts
from numaplan.common import UsageError
from numaplan.mapper import Plan, PlanMachine, PlanRegion, RegionKey, Run, Scales
from numaplan.mapper.plan_file.diff import differences
from numaplan.mapper.plan_file.summary import summary
from numaplan.mapper.scaling.regions import with_scales
from numaplan.profiler import Machine
from tests.unit.mapper.plan_file.test_plan_file import small_plan

PAGE = 4096
THREADS = [("p0", "0"), *(("p0", f"0.{i}") for i in range(1, 8))]
NODES = [0, 0, 1, 1, 2, 2, 3, 3]


def key(pages: int) -> RegionKey:
    return RegionKey(kind="heap", name="app+0x1", bytes=pages * PAGE, thread="0", sequence=1)


def counts(owner: list[int], made: list[int] | None = None) -> PageCounts:
    """A region whose pages are used by one thread each."""
    pages = len(owner)
    used = np.array(made or [100] * pages)
    zeros = np.zeros(pages, np.int64)
    return PageCounts(
        regions=[key(pages)],
        region=zeros,
        page=np.arange(pages),
        thread=np.array(owner),
        accesses=used,
        writes=used,
    )


def planned(owner: list[int]) -> PlanRegion:
    """Each page where its user is."""
    runs: list[Run] = []
    for page, thread in enumerate(owner):
        node = NODES[thread]
        if runs and runs[-1].node == node:
            runs[-1] = msgspec.structs.replace(runs[-1], bytes=runs[-1].bytes + PAGE)
        else:
            runs.append(Run(offset=page * PAGE, bytes=PAGE, node=node))
    return PlanRegion(region=key(len(owner)), policy="bind", runs=tuple(runs))


def scaled(owner: list[int], *others: list[int]) -> PlanRegion:
    found = with_scales((planned(owner),), counts(owner), [counts(one) for one in others], THREADS, NODES)
    return found[0]


def parts(pages: int, turns: int = 1) -> list[int]:
    return [page * 8 * turns // pages % 8 for page in range(pages)]


def test_a_region_of_which_each_thread_uses_its_part_scales() -> None:
    found = scaled(parts(64))
    assert found.scales == Scales(known="shares")
    larger = found.runs_of(512 * PAGE)
    assert [(run.offset, run.bytes, run.node) for run in larger] == [
        (128 * PAGE * node, 128 * PAGE, node) for node in range(4)
    ]


def test_parts_are_even_though_pages_of_a_small_region_are_not() -> None:
    """Of 20 pages for 8 threads a border is up to half a page off; of 1000 times as many it is not."""
    found = scaled(parts(20))
    assert [run.offset for run in found.runs] == [20 * PAGE * node // 4 for node in range(4)]
    assert found.runs_of(20_000 * PAGE)[1].offset == 5000 * PAGE


def test_two_arrays_in_one_block_scale_together() -> None:
    found = scaled(parts(64, turns=2))
    assert found.scales and [run.node for run in found.runs] == [0, 1, 2, 3, 0, 1, 2, 3]


@pytest.mark.parametrize("turns", [3, 4])
def test_chunks_dealt_in_turn_scale_only_if_another_size_shows_that_they_grow(turns: int) -> None:
    """Chunks of a fixed size look like as many arrays in one block, until there are more of them."""
    dealt = parts(24 * turns, turns)
    entry = scaled(dealt)
    assert not entry.scales and entry == planned(dealt)
    arrays, chunks = parts(48 * turns, turns), parts(48 * turns, 2 * turns)
    assert scaled(dealt, arrays).scales == Scales(known="sizes")
    assert scaled(dealt, chunks) == planned(dealt)


def test_parts_in_reverse_order_scale() -> None:
    found = scaled(parts(64)[::-1])
    assert found.scales == Scales(known="shares") and [run.node for run in found.runs] == [3, 2, 1, 0]


def test_a_region_that_one_node_uses_scales_if_all_of_it_is_used() -> None:
    assert scaled([2, 3] * 8).scales == Scales(known="alike")
    head = counts([2] * 4)
    only_head = msgspec.structs.replace(head, regions=[key(64)])
    entry = msgspec.structs.replace(
        planned([2] * 64), runs=(Run(offset=0, bytes=64 * PAGE, node=1),), region=key(64)
    )
    assert not with_scales((entry,), only_head, [], THREADS, NODES)[0].scales


def test_parts_by_no_order_do_not_scale_by_one_recording() -> None:
    assert not scaled([0] * 30 + [5] * 3 + [2] * 9 + [7] * 2 + [3] * 20).scales


def test_another_size_tells_more_than_one_recording() -> None:
    uneven = [0] * 32 + [2] * 16 + [4] * 8 + [6] * 8
    twice = [thread for thread in uneven for _ in range(2)]
    found = scaled(uneven, twice)
    assert found.scales == Scales(known="sizes") and len(found.runs) == 4
    # In order in the one, but the first thread's part stays as it is in the other.
    fixed_head = [0] * 8 + [1 + page * 7 // 120 for page in range(120)]
    assert not scaled([0] * 8 + [1 + page * 7 // 56 for page in range(56)], [7] * 64 + fixed_head[:64]).scales


def test_rules_static_data_and_what_is_interleaved_stay_as_they_are() -> None:
    owner = parts(64)
    static = msgspec.structs.replace(
        planned(owner), region=msgspec.structs.replace(key(64), kind="static", sequence=0)
    )
    spread = msgspec.structs.replace(planned(owner), policy="interleave")
    assert with_scales((static, spread), counts(owner), [], THREADS, NODES) == (static, spread)


def test_the_plan_keeps_and_shows_it() -> None:
    entry = scaled(parts(64))
    small = small_plan()
    plan = msgspec.structs.replace(
        small,
        machine=PlanMachine.of(Machine.load("4x2")),
        threads=(),
        memory=(entry,),
        predicted=msgspec.structs.replace(small.predicted, node_loads=(), baselines={}),
    )
    again = Plan.from_json(plan.to_json())
    assert again.memory == (entry,)
    assert any("scale with their size  1 of 1 region" in line for line in summary(again))
    fixed = msgspec.structs.replace(again, memory=(msgspec.structs.replace(entry, scales=msgspec.UNSET),))
    assert "of its planned size -> scales with its size" in "\n".join(differences(fixed, again))
    with pytest.raises(UsageError, match="known"):
        Plan.from_json(plan.to_json().replace(b'"shares"', b'"hearsay"'))


def test_runs_of_a_region_that_does_not_scale_are_as_planned() -> None:
    entry = planned(parts(64))
    assert entry.runs_of(512 * PAGE) == entry.runs
