"""Lines that two threads find in a cache which they share, as they have left their writer's own."""

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.mapper import PlanOptions, make_plan
from numaplan.mapper.planning.cost.timed_task import TimedTask
from numaplan.mapper.planning.planner import plan_task
from numaplan.mapper.workload.from_trace import read_trace
from numaplan.mapper.workload.part_counters import KEPT, WITHIN
from numaplan.mapper.workload.runs import workload_of_traces
from numaplan.mapper.workload.use import ThreadUse
from numaplan.profiler import Machine
from tests.support.timed import nodes_of, workload
from tests.support.traces import write_trace

THREADS, EACH = 4, 600


def trace(
    path: Path,
    shares: list[float],
    moved: dict[tuple[int, int], int],
    *,
    alone: tuple[int, ...] = (),
    again: int = -1,
) -> Path:
    """moved: lines by (writer, reader); shares: of what each thread reads, what the shared cache has; alone:
    those who take all from other caches; again: who writes anew what others read, and has to ask them."""
    number = np.arange(4000)
    thread = number % THREADS
    addr = (1 << 24) + thread * 65536 + number // THREADS % 1024 * 64
    samples = {"time_ns": number * 10, "thread": thread, "addr": addr, "is_write": True, "region": thread}
    regions = [
        (i, "p0", "heap", f"x+{i}", "", (1 << 24) + i * 65536, 65536, i, i, 0, -1) for i in range(THREADS)
    ]
    threads = [(i, "p0", f"0.{i}" if i else "0", i + 1, 1, "x", 0, -1) for i in range(THREADS)]
    transfers = [(0, 40_000, writer, reader, reader, count) for (writer, reader), count in moved.items()]
    counters = []
    for reader, share in enumerate(shares):
        taken = sum(count for (_, other), count in moved.items() if other == reader)
        kept, within = share * taken, (1 - share) * taken
        if reader == again:
            within += sum(count for (writer, _), count in moved.items() if writer == again)
        counters += [(9, reader, "coherence", taken if reader in alone else within)]
        if reader not in alone:
            counters += [(9, reader, KEPT, kept), (9, reader, WITHIN, within)]
    return write_trace(path, samples, threads, regions, {"period": 1}, transfers=transfers, counters=counters)


def use_of(path: Path) -> ThreadUse:
    use = read_trace(path, pages=True, by_phase=False).workload.use
    assert use is not None
    return use


def test_what_is_kept_is_told_by_who_reads(tmp_path: Path) -> None:
    """One reads once what was set up, and finds all in the cache; the others take lines from each other."""
    moved = {(0, 1): 100 * EACH, (2, 3): EACH, (3, 2): EACH, (0, 3): EACH, (3, 0): 3 * EACH}
    use = use_of(trace(tmp_path / "t.db", [0.2, 1.0, 0.0, 0.0], moved))
    assert use.kept is not None and use.lines.sum() == pytest.approx(106 * EACH)
    share = np.divide(use.kept, use.lines, out=np.zeros((4, 4)), where=use.lines > 0)
    assert share[0, 1] == share[1, 0] == 1.0 and share[2, 3] == 0.0
    assert share[0, 3] == pytest.approx(0.2 * 3 / 4)
    assert use.kept.sum() == pytest.approx(100 * EACH + 0.2 * 3 * EACH)
    assert use.near == pytest.approx(use.lines - use.kept)


def test_of_threads_alone_on_their_cache_as_much_is_kept_as_of_the_others(tmp_path: Path) -> None:
    """What they took came from another cache: how much one that they share would have was not seen."""
    moved = {(0, 1): EACH, (1, 0): EACH, (2, 3): EACH, (3, 2): EACH}
    use = use_of(trace(tmp_path / "t.db", [0.5] * 4, moved, alone=(2, 3)))
    assert use.kept is not None
    assert use.kept[2, 3] == pytest.approx(use.lines[2, 3] / 2)
    assert use.kept[0, 1] == pytest.approx(use.lines[0, 1] / 2)


def test_a_few_lines_tell_nothing_of_those_of_others(tmp_path: Path) -> None:
    moved = {(0, 1): 8, (2, 3): 100 * EACH, (3, 2): EACH}
    use = use_of(trace(tmp_path / "t.db", [0.5] * 4, moved, alone=(2, 3)))
    assert use.kept is not None and use.kept.sum() == 0


def test_who_writes_anew_what_another_read_asks_for_it_too(tmp_path: Path) -> None:
    """The reader finds all in the cache, and the writer takes it out of the reader's own each time."""
    use = use_of(trace(tmp_path / "t.db", [0.0, 1.0], {(0, 1): EACH}, again=0))
    assert use.kept is not None and use.lines.sum() == pytest.approx(2 * EACH)
    assert use.kept.sum() == pytest.approx(EACH)


def test_of_several_runs_it_is_the_mean(tmp_path: Path) -> None:
    moved = {(0, 1): EACH, (1, 0): EACH, (2, 3): EACH, (3, 2): EACH}
    paths = [
        trace(tmp_path / f"{number}.db", shares, moved)
        for number, shares in enumerate(([0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]))
    ]
    use = workload_of_traces(paths, pages=True, by_phase=False).use
    assert use is not None and use.kept is not None
    assert use.kept[0, 1] == pytest.approx(0.25 * use.lines[0, 1]) and use.kept[2, 3] == 0.0


def test_of_lanes_it_is_the_sum_between_them() -> None:
    pairs = np.ones((4, 4)) - np.eye(4)
    use = ThreadUse(np.ones(4), 4 * pairs, pairs, kept=pairs).by_lane(np.array([0, 0, 1, 1]), 2)
    assert use.kept is not None and use.kept.tolist() == [[0, 4], [4, 0]] and use.lines[0, 1] == 16


def lines_of(*pairs: tuple[int, int]) -> np.ndarray:
    found = np.zeros((4, 4))
    for one, other in pairs:
        found[one, other] = found[other, one] = 1e6
    return found


def test_who_finds_lines_in_the_cache_is_put_there() -> None:
    """All exchange as much, on two nodes of two cpus: together are those whose lines the cache has."""
    every = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    work = workload(lines=dict.fromkeys(every, 2e6))
    assert work.use is not None
    for pairs in (((0, 3), (1, 2)), ((0, 1), (2, 3))):
        use = replace(work.use, kept=lines_of(*pairs))
        nodes = nodes_of(make_plan(replace(work, use=use), Machine.load("2x2"), PlanOptions()).plan)
        assert all(nodes[one] == nodes[other] for one, other in pairs) and len(set(nodes)) == 2


def test_at_one_price_pairs_apart_cost_as_much_more_than_together() -> None:
    work = workload(lines={(0, 1): 2e6, (0, 2): 2e6, (1, 2): 4e6, (2, 3): 2e6})
    assert work.use is not None
    work = replace(work, use=replace(work.use, kept=lines_of((0, 1))))
    task = TimedTask(plan_task(work, Machine.load("2x2"), PlanOptions())[0])
    prices, within = task.problem.distances, task.ways[0, 0]
    solved = task.problem.comm * (prices[0, 1] - prices[0, 0])
    real = task.use.lines * task.ways[0, 1] - task.use.near * within
    assert solved == pytest.approx(real) and real[0, 1] > real[0, 2] > 0


def test_with_fewer_lines_as_few_of_them_are_kept() -> None:
    work = workload(lines={(0, 1): 2e6, (2, 3): 2e6})
    assert work.use is not None
    work = replace(work, use=replace(work.use, kept=lines_of((0, 1)) / 2))
    task = TimedTask(plan_task(work, Machine.load("2x2"), PlanOptions())[0])
    fewer = task.with_lines(task.use.lines / 4)
    assert fewer.use.near == pytest.approx(task.use.near / 4)
