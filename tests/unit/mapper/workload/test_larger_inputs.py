"""Whether a plan is right for larger inputs: what these would miss, and what another plan would save."""

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.mapper import PlanOptions, make_plan
from numaplan.mapper.plan_file.parts import AtInput
from numaplan.mapper.plan_file.summary import summary
from numaplan.mapper.workload.from_trace import workload_of_trace
from numaplan.mapper.workload.larger_inputs import LargerInput
from numaplan.mapper.workload.part import Part
from numaplan.profiler import LEVEL_CODE, Machine
from tests.support.timed import workload
from tests.support.traces import write_trace

PAGE, START, ROUNDS = 4096, 1 << 24, 60
SIZES = tuple(1 << power for power in range(16, 26))  # 64K to 32M


def record(path: Path, reach: int = 5, **meta: object) -> Path:
    """Two threads, each with its own page; every second access misses the smallest `reach` of the caches."""
    number = np.arange(4 * ROUNDS)
    samples = {
        "time_ns": number,
        "thread": number % 2,
        "addr": START + number % 2 * PAGE + number // 2 % 64 * 64,
        "region": 0,
        "reach": np.where(number // 2 % 2, reach, 0),
        "level": LEVEL_CODE["l2"],
    }
    threads = [(0, "p0", "0", 1, 1, "x", 0, -1), (1, "p0", "0.1", 2, 1, "x", 0, -1)]
    regions = [(0, "p0", "heap", "app+0x1", "", START, 2 * PAGE, 0, 1, 0, -1)]
    facts = {"period": 1, "llc_sizes": ":".join(map(str, SIZES)), "footprint": 1 << 20, "clock": "accesses"}
    return write_trace(path, samples, threads, regions, facts | meta)


def shares(path: Path, **more: object) -> list[tuple[int, float]]:
    found = workload_of_trace(path, larger=True, **more).larger  # type: ignore[arg-type]
    return [
        (one.times, 0.0 if one.pages.missed is None else float(one.pages.missed.sum() / 2)) for one in found
    ]


def test_inputs_that_miss_no_more_are_left_out_but_for_the_largest(tmp_path: Path) -> None:
    # A part has no counters: its samples say what is missed. Below 1M, as of 32 times, half of them do.
    part = Part(start="0", end="100%")
    path = record(tmp_path / "t.db", 5)
    assert shares(path, part=part) == [(32, ROUNDS), (256, ROUNDS)]
    assert shares(record(tmp_path / "small.db", 0), part=part) == [(256, 0)]
    found = workload_of_trace(path, larger=True, part=part)
    assert [one.bytes for one in found.larger] == [32 << 20, 256 << 20]
    assert found.pages is not None and (found.larger[0].pages.accesses == found.pages.accesses).all()
    assert workload_of_trace(path).larger == ()


def test_the_part_that_begins_later_is_counted_alike(tmp_path: Path) -> None:
    path = record(tmp_path / "t.db")
    assert shares(path, part=Part(start="50%")) == [(32, ROUNDS / 2), (256, ROUNDS / 2)]


def test_larger_than_what_the_recording_stands_for(tmp_path: Path) -> None:
    stated = record(tmp_path / "t.db", for_llc=1 << 20, for_footprint=32 << 20)
    found = workload_of_trace(stated, larger=True, part=Part(start="0")).larger
    assert [(one.times, one.bytes) for one in found] == [(4, 128 << 20)]  # a 32nd was not modelled
    assert shares(record(tmp_path / "none.db", llc_sizes=""), part=Part(start="0")) == []


def test_larger_than_what_was_recorded_where_it_is_to_stand_for_a_smaller_input(tmp_path: Path) -> None:
    """A unit was forgotten: the caches are the recorded input's, and so are sizes."""
    stated = record(tmp_path / "t.db", for_llc=SIZES[-1], for_footprint=1 << 10)
    found = workload_of_trace(stated, larger=True, part=Part(start="0")).larger
    assert [(one.times, one.bytes) for one in found] == [(32, 32 << 20), (256, 256 << 20)]


EVERYONE = {(one, other): 1e6 for one in range(4) for other in range(one)}


SLOW = {
    "schema": "numaplan/machine/1",
    "nodes": [{"id": node, "cpus": list(range(4 * node, 4 * node + 4))} for node in range(4)],
    "bandwidth_mb_s": [[4000 if one == other else 2000 for one in range(4)] for other in range(4)],
}


def outlook(misses: int) -> list[str]:
    """Of four threads that share lines, and miss `misses` times as much with an input four times as large."""
    work = workload(lines=EVERYONE, users=[[0], [1], [2], [3]])
    assert work.pages is not None and work.pages.missed is not None
    pages = replace(work.pages, missed=work.pages.missed * misses, period=1)
    work = replace(work, larger=(LargerInput(4, 4 << 30, pages), LargerInput(32, 0, pages)))
    made = make_plan(work, Machine.from_dict(SLOW), PlanOptions())
    assert [one.times for one in made.larger] == [4, 32]
    for one in made.larger:
        assert one.changes == (one.best_cost < 0.98 * one.cost)
        assert one.best_here >= made.plan.predicted.cost * (1 - 0.01)
    return [line for line in summary(made.plan, None, made.larger) if line.startswith("larger inputs")]


def test_one_plan_for_all_or_where_it_changes() -> None:
    (same,) = outlook(1)
    assert same.endswith("the plan is right up to 32 times as large")
    (changes,) = outlook(1000)  # one memory has too much to do
    assert "from 4 times as large (4 GiB) on another plan saves" in changes and "more here" in changes


def test_leaving_it_alone_may_be_right_for_the_small_input_only() -> None:
    work = workload(users=[[0], [1], [2], [3]], missed=False)
    assert work.pages is not None
    untold = replace(work.pages, toucher=None)  # that the kernel would move pages is not seen
    pages = replace(work.pages, toucher=work.pages.thread, missed=work.pages.accesses)
    made = make_plan(
        replace(work, pages=untold, larger=(LargerInput(4, 0, pages),)), Machine.load("4x1"), PlanOptions()
    )
    assert made.plan.alone and made.larger[0].changes
    text = "\n".join(summary(made.plan, None, made.larger))
    assert "from 4 times as large on a plan saves" in text
    assert made.larger[0].best_cost < made.larger[0].alone == pytest.approx(made.larger[0].cost)


def test_pools_and_one_node() -> None:
    work = workload(lines=EVERYONE, users=[[0, 1, 2, 3]], keeps=False)
    assert work.pages is not None
    work = replace(work, larger=(LargerInput(4, 0, work.pages),))
    (found,) = make_plan(work, Machine.load("4x2"), PlanOptions()).larger
    assert not found.changes
    assert make_plan(work, Machine.load("1x4"), PlanOptions()).larger == ()


def test_another_plan_that_costs_no_more_here_is_said_to() -> None:
    work = workload(lines=EVERYONE, users=[[0], [1], [2], [3]])
    plan = make_plan(work, Machine.load("2x2"), PlanOptions()).plan
    here = plan.predicted.cost
    for loses, words in ((-0.02, "costs no more here"), (0.1, "costs 10% more here")):
        there = AtInput(
            times=32,
            bytes=0,
            cost=4e6,
            alone=8e6,
            best="scatter",
            best_cost=3e6,
            best_here=here * (1 + loses),
            changes=True,
        )
        (line,) = (one for one in summary(plan, None, [there]) if one.startswith("larger"))
        assert f"from 32 times as large on another plan saves 25% there and {words}" in line
