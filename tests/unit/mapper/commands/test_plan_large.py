"""A plan for 100 GB of which samples show few pages: small, and as local as the program allows."""

from bisect import bisect
from pathlib import Path

import numpy as np
import pytest

from numaplan.mapper import Plan, PlanRegion
from numaplan.mapper.commands.plan import PlanCommand
from numaplan.profiler import EVENT_CODE, LEVEL_CODE
from tests.support.traces import write_trace

pytestmark = pytest.mark.slow

THREADS, NODES, BLOCKS = 16, 4, 512
GB, PAGE = 1 << 30, 4096
SIZES = (60 * GB, 30 * GB, 10 * GB)  # a slice a thread; blocks dealt out in turn; a table for everybody
SHARES = (0.5, 0.3, 0.2)


@pytest.mark.parametrize("samples", [20_000, 400_000])
def test_a_trace_of_100_gb_makes_a_small_plan_that_is_local(samples: int, tmp_path: Path) -> None:
    write(tmp_path / "trace.db", samples)
    PlanCommand(traces=[tmp_path / "trace.db"], output=tmp_path / "plan.json").run()
    plan = Plan.load(tmp_path / "plan.json")
    assert (tmp_path / "plan.json").stat().st_size < 1 << 20
    assert [region.region.bytes for region in plan.memory] == list(SIZES)
    assert all(sum(run.bytes for run in part.runs) == part.region.bytes for part in plan.memory)
    node_of = {thread.thread: thread.node for thread in plan.threads}
    slices, blocks = (
        [node_at(part, i * part.region.bytes // count) for i in range(count)]
        for part, count in zip(plan.memory, (THREADS, BLOCKS), strict=False)
    )
    assert slices == [node_of[t] for t in range(THREADS)]
    right = [node == node_of[b % THREADS] for b, node in enumerate(blocks)]
    possible = SHARES[0] + SHARES[1] + SHARES[2] / NODES
    if samples > 100 * BLOCKS:
        assert plan.predicted.local_share == pytest.approx(possible, abs=0.03)
        assert np.mean(right) > 0.9
    assert plan.predicted.local_share > SHARES[0]


def node_at(part: PlanRegion, offset: int) -> int:
    """Where the plan has this byte of a region, to the nearest of its pages."""
    return part.runs[bisect([run.offset for run in part.runs], offset + PAGE) - 1].node


def write(path: Path, samples: int) -> None:
    """Threads that use their slices, every THREADS-th block, and any place of the table."""
    rng = np.random.default_rng(3)
    starts = (1 << 44) + np.arange(3) * 200 * GB
    thread = rng.integers(0, THREADS, samples)
    region = rng.choice(3, samples, p=SHARES)
    within = rng.random(samples)
    own = (thread + within) / THREADS
    dealt = (rng.integers(0, BLOCKS // THREADS, samples) * THREADS + thread + within) / BLOCKS
    share = np.choose(region, [own, dealt, within])
    addr = starts[region] + (share * np.array(SIZES)[region]).astype(np.int64) // 8 * 8
    is_write = rng.random(samples) < 0.3
    kind = ("p0", "mmap")
    write_trace(
        path,
        {
            "time_ns": np.arange(samples, dtype=np.int64) * 1000 + 20,
            "thread": thread,
            "cpu": thread,
            "node": thread // 4,
            "addr": addr,
            "event": np.where(is_write, EVENT_CODE["store"], EVENT_CODE["load"]),
            "is_write": is_write,
            "level": LEVEL_CODE["local_dram"],
            "latency": 0,
            "region": region,
        },
        [(t, "p0", f"0.{t}" if t else "0", t + 1, 1, "", 10 if t else 0, -1) for t in range(THREADS)],
        [(i, *kind, f"program+{i}", "", int(starts[i]), SIZES[i], 0, i, 0, -1) for i in range(3)],
        {"backend": "pebs", "period": 1000, "duration_ns": samples * 1000},
        f"{NODES}x4",
    )
