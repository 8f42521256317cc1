"""Small memory of libraries that needs no plan is left out of it; what would become remote is not."""

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.analyzer import PageCounts
from numaplan.mapper import PlanOptions, RegionKey, Workload, make_plan, place_pages
from numaplan.profiler import Machine

PAGE = 4096
MACHINE = Machine.load("2x1")


def stats_of(names: list[str], touchers: list[int], size: int = 4, busy: int = 1000) -> PageCounts:
    """A busy region of the program, and one of each name that thread 1 uses after `toucher` touched it."""
    keys = [RegionKey(kind="heap", name="app+0x1", bytes=PAGE)]
    keys += [RegionKey(kind="static", name=name, bytes=size * PAGE) for name in names]
    number = np.arange(len(keys))
    accesses = np.where(number > 0, 10, busy)
    toucher = np.array([0, *touchers])
    zero = np.zeros(len(keys), np.int64)
    return PageCounts(keys, number, zero, np.minimum(number, 1), accesses, zero, toucher=toucher)


def placed(stats: PageCounts) -> list[str]:
    return [region.region.name for region in place_pages(stats, [0, 1], MACHINE).memory]


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("libc.so.6:.data", True),
        ("libstdc++.so.6:.bss", True),
        ("libmpi.so.40+0x1f", True),
        ("plugin.so:table", True),
        ("app:table", False),
        ("my.software+0x10", False),
    ],
)
def test_only_regions_of_libraries(name: str, left: bool) -> None:
    assert placed(stats_of([name], [1])) == ["app+0x1", *([] if left else [name])]


def test_what_its_user_did_not_touch_first_is_planned() -> None:
    assert placed(stats_of(["libc.so.6:.data"], [0])) == ["app+0x1", "libc.so.6:.data"]
    assert placed(stats_of(["libc.so.6:.data"], [-1])) == ["app+0x1", "libc.so.6:.data"]


def test_what_is_large_is_planned() -> None:
    assert placed(stats_of(["liba.so:heap"], [1], size=256)) == ["app+0x1", "liba.so:heap"]


def test_what_may_become_remote_is_little_in_all() -> None:
    """Each would lose 10 accesses of 100,000: ten of them are left, and the ten least used of all regions."""
    names = [f"lib{i}.so:.data" for i in range(20)]
    stats = stats_of(names, [0] * 20, busy=100_000 - 200)
    plan = place_pages(stats, [0, 1], MACHINE)
    assert len(plan.left) == 10
    assert len(plan.memory) == 1
    assert plan.local_share == pytest.approx(1 - 20 * 10 / 100_000)


def test_the_plan_says_what_was_left_out() -> None:
    stats = stats_of(["libc.so.6:.data", "libc.so.6:.bss"], [1, 1])
    workload = Workload([("p0", "0"), ("p0", "0.1")], np.zeros((2, 2)), np.ones(2), {}, pages=stats)
    made = make_plan(workload, MACHINE, PlanOptions(pins={"0": "0"}))
    assert [region.region.name for region in made.plan.memory] == ["app+0x1"]
    assert any(note.startswith("2 small regions of libraries, 32 KiB, are as good") for note in made.notes)
    assert made.plan.predicted.local_share == 1


class Watched(np.ndarray[Any, Any]):
    """Counts the elements that are compared with something."""

    compared = 0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [np.asarray(one) for one in inputs]
        Watched.compared += sum(one.size for one in plain) if ufunc in (np.equal, np.not_equal) else 0
        return getattr(ufunc, method)(*plain, **kwargs)


def test_the_counts_are_not_read_once_for_each_region() -> None:
    count = 300
    stats = stats_of([f"lib{i}.so:.data" for i in range(count)], [1] * count)
    watched = replace(stats, region=stats.region.view(Watched))
    assert place_pages(watched, [0, 1], MACHINE).left == place_pages(stats, [0, 1], MACHINE).left
    assert Watched.compared < 20 * count
