"""Small blocks of the heap have no places in a plan: what it says of them, and that they still count."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from numaplan.mapper import Plan, PlanOptions, make_plan
from numaplan.mapper.plan_file.summary import summary
from numaplan.mapper.workload.from_trace import workload_of_trace
from numaplan.profiler import Machine
from tests.support.traces import write_trace

PAGE, START = 4096, 0x10100  # small blocks begin within a page
MACHINE = Machine.load("2x1")
THREADS = [("p0", "0"), ("p0", "0.1")]


def trace_of(folder: Path, fill: list[int], use: list[int], period: int = 1) -> Path:
    """A page of small blocks for each item (who touches it first, who uses it 9 times), and a large block."""
    thread = [*fill, *(user for user in use for _ in range(9)), *[0] * 100]
    page = [*range(len(fill)), *(page for page in range(len(use)) for _ in range(9))]
    addr = [START // PAGE * PAGE + at * PAGE + 0x200 for at in page] + [0x900000 + 8 * i for i in range(100)]
    region = [0] * len(page) + [1] * 100
    samples = {
        "time_ns": np.arange(1, len(thread) + 1) * 10,
        "thread": np.array(thread),
        "addr": np.array(addr),
        "region": np.array(region),
        "is_write": True,
    }
    return write_trace(
        folder / "trace.db",
        samples,
        threads=[(i, process, path, 10 + i, 10, "", 0, -1) for i, (process, path) in enumerate(THREADS)],
        regions=[
            (0, "p0", "small", "small", "", START, len(fill) * PAGE, -1, 0, 0, -1),
            (1, "p0", "heap", "app+0x10", "", 0x900000, 1 << 16, 0, 1, 0, -1),
        ],
        meta={"period": period},
        machine="2x1",
    )


def plan_of(folder: Path, fill: list[int], use: list[int], period: int = 1) -> Plan:
    workload = workload_of_trace(trace_of(folder, fill, use, period))
    return make_plan(workload, MACHINE, PlanOptions(objective="balanced", pins={"0": "0", "0.1": "1"})).plan


@pytest.mark.parametrize(
    ("fill", "use", "local", "said"),
    [
        ([0, 0, 1, 1], [0, 0, 1, 1], 1.0, "bound threads fill and use their own"),
        ([0, 0, 0, 0], [1, 1, 1, 1], 4 / 40, "other nodes use what one thread fills"),
        ([0, 0, 0, 0], [0, 0, 0, 1], 31 / 40, "bound threads fill and use their own"),
    ],
)
def test_who_uses_them(tmp_path: Path, fill: list[int], use: list[int], local: float, said: str) -> None:
    plan = plan_of(tmp_path, fill, use)
    assert plan.predicted.small_share == pytest.approx(40 / 140)
    assert plan.predicted.small_local == pytest.approx(local)
    (line,) = [line for line in summary(plan) if line.startswith("small blocks")]
    assert said in line and "28.6%" in line
    assert {region.region.kind for region in plan.memory} == {"heap"}
    # They count where they are touched first.
    assert plan.predicted.local_share == pytest.approx((100 + 40 * local) / 140)


def test_a_page_that_was_seen_once_says_nothing(tmp_path: Path) -> None:
    """Where accesses are sampled, the first one of each page is local by what it tells."""
    assert plan_of(tmp_path, [0] * 4, [1] * 4, period=1000).predicted.small_local == 0.0


def test_little_is_not_worth_a_line(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, [], [])
    assert plan.predicted.small_share == -1.0
    assert not [line for line in summary(plan) if "small" in line]


def test_plans_from_before_say_nothing_of_them(tmp_path: Path) -> None:
    content = msgspec.json.decode(plan_of(tmp_path, [0], [0]).to_json())
    del content["predicted"]["small_share"], content["predicted"]["small_local"], content["app"]["executable"]
    for entry in content["memory"]:
        del entry["share"]
    old = Plan.from_json(msgspec.json.encode(content))
    assert (old.predicted.small_share, old.memory[0].share) == (-1.0, msgspec.UNSET)
    assert not [line for line in summary(old) if "small" in line]
