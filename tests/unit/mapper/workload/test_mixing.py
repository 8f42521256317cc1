"""Threads that keep to their memory and exchange lines with whoever comes: pairs of one run are chance."""

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.mapper import PlanOptions, make_plan
from numaplan.mapper.workload.from_trace import read_trace
from numaplan.mapper.workload.runs import workload_of_traces
from numaplan.mapper.workload.use import ThreadUse
from numaplan.profiler import Machine
from tests.support.timed import workload
from tests.support.traces import write_trace

THREADS, STRETCHES, TIMES = 9, 16, 90
TEAM = np.arange(1, THREADS)


def use_of(path: Path, *, chance: bool, counted: bool = True) -> ThreadUse:
    """Of threads each of which takes lines from another one in each stretch: anybody, or the next one."""
    rng = np.random.default_rng(3)
    number = np.arange(9000)
    thread = number % THREADS
    samples = {
        "time_ns": number * 10,
        "thread": thread,
        "addr": (1 << 24) + thread * 65536 + number // THREADS % 1024 * 64,
        "is_write": True,
        "region": thread,
    }
    transfers = [
        (5000 * stretch, 5000 * (stretch + 1), 1 + other, reader, reader, TIMES)
        for stretch in range(STRETCHES)
        for reader in TEAM.tolist()
        if (other := int(rng.integers(8)) if chance else reader % 8) + 1 != reader
    ]
    threads = [(i, "p0", f"0.{i}" if i else "0", i + 1, 1, "x", 10 if i else 0, -1) for i in range(THREADS)]
    regions = [
        (i, "p0", "heap", f"x+{i}", "", (1 << 24) + i * 65536, 65536, i, i, 0, -1) for i in range(THREADS)
    ]
    meta = {"period": 1, "transfers": "all" if counted else "none"}
    write_trace(path, samples, threads, regions, meta, transfers=transfers if counted else None)
    use = read_trace(path, pages=True, by_phase=False).workload.use
    assert use is not None
    return use


def within(matrix: np.ndarray) -> np.ndarray:
    """Of the team's pairs."""
    own: np.ndarray = matrix[np.ix_(TEAM, TEAM)]
    return own[~np.eye(len(own), dtype=bool)]


def test_their_mean_is_expected_and_how_far_a_run_may_be_off(tmp_path: Path) -> None:
    use = use_of(tmp_path / "t.db", chance=True)
    assert use.chance is not None
    assert within(use.lines).min() == pytest.approx(within(use.lines).max()) and within(use.lines).min() > 0
    assert 0.3 * within(use.lines).mean() < within(use.chance).mean() < 2 * within(use.lines).mean()
    assert use.chance[0].sum() == 0
    halves = use.by_lane(np.arange(THREADS) // 2, 5)
    assert halves.chance is not None
    assert halves.chance[1, 2] == pytest.approx(2 * use.chance[3, 4])  # the root of four squares


def test_pairs_that_do_so_again_stay_as_they_are(tmp_path: Path) -> None:
    use = use_of(tmp_path / "t.db", chance=False)
    assert use.chance is None and np.count_nonzero(within(use.lines)) == 16
    assert use_of(tmp_path / "s.db", chance=True, counted=False).chance is None


def test_two_runs_leave_less_to_chance(tmp_path: Path) -> None:
    one = use_of(tmp_path / "a.db", chance=True)
    both = workload_of_traces([tmp_path / "a.db", tmp_path / "a.db"]).use
    assert one.chance is not None and both is not None and both.chance is not None
    assert within(both.chance) == pytest.approx(within(one.chance) / 2**0.5)
    assert within(both.lines) == pytest.approx(within(one.lines))


def test_a_gain_by_pairs_that_may_be_others_is_no_reason_to_bind_threads() -> None:
    lines = {(one, other): 1e4 for one in range(6) for other in range(one)} | {(0, 5): 3e4, (1, 4): 3e4}
    work = workload(6, lines)
    assert work.use is not None
    machine, options = Machine.load("2x4"), PlanOptions()
    usual = make_plan(work, machine, options).plan
    doubtful = make_plan(
        replace(work, use=replace(work.use, chance=np.full((6, 6), 3e4) * (1 - np.eye(6)))), machine, options
    ).plan
    assert not usual.alone
    assert doubtful.predicted.doubt > usual.predicted.doubt
    assert "less apart than what is unsure" in doubtful.alone
