"""What is made of samples, wherever they come from."""

import numpy as np
from numpy.typing import NDArray

from numaplan.launcher.look.read.model import Sampled
from numaplan.launcher.look.read.sampling import shares
from numaplan.profiler import LiveSamples

NODES = {0: 0, 1: 0, 2: 1, 3: 1}
Column = NDArray[np.int64]


def samples(tid: Column, cpu: Column, page: Column, missed: Column | None = None) -> LiveSamples:
    count = len(tid)
    return LiveSamples(
        time_ns=np.arange(count),
        pid=np.full(count, 10),
        tid=tid,
        cpu=cpu,
        addr=(page << 12).astype(np.uint64),
        event=np.zeros(count, dtype=np.uint8),
        is_write=np.zeros(count, dtype=np.bool_),
        latency_ns=np.full(count, np.nan),
        missed=np.zeros(count, dtype=np.bool_) if missed is None else missed.astype(np.bool_),
        count=np.ones(count),
        instructions=(),
        lost=0,
    )


def halves(_pid: int, pages: Column) -> Column:
    """Pages below 100 are on node 0, those from 200 on unknown."""
    return np.where(pages < 100, 0, np.where(pages < 200, 1, -2))


def test_parts_of_threads_on_the_wrong_nodes() -> None:
    tid = np.repeat([11, 12], 500)
    cpu = np.repeat([0, 2], 500)
    page = np.concatenate([100 + np.arange(500) % 50, np.arange(500) % 50])
    assert shares(samples(tid, cpu, page), NODES, frozenset([10]), halves) == {10: Sampled(1000, 1.0, 1.0)}


def test_shared_memory_is_nobodys_own() -> None:
    rng = np.random.default_rng(1)
    tid = rng.integers(11, 15, 4000)
    found = shares(samples(tid, tid - 11, rng.integers(0, 200, 4000)), NODES, frozenset([10]), halves)
    assert found[10].accesses == 4000 and abs(found[10].remote - 0.5) < 0.05 and found[10].own < 0.1


def test_few_samples_are_seen_in_larger_blocks() -> None:
    tid = np.repeat([11, 12], 60)
    page = np.concatenate([np.arange(60), 512 * 7 + np.arange(60)])
    found = shares(samples(tid, tid - 11, page), NODES, frozenset([10]), lambda _pid, pages: pages * 0)
    assert found[10] == Sampled(120, 0.0, 1.0)


def test_what_caches_answered_and_what_is_unknown_is_left_out() -> None:
    tid = np.full(40, 11)
    page = np.repeat([0, 100, 200], [20, 10, 10])
    missed = np.repeat([0, 1], [20, 20])
    found = shares(samples(tid, tid - 11, page, missed), NODES, frozenset([10]), halves)
    assert (found[10].accesses, found[10].remote) == (10, 1.0)
    assert shares(samples(tid, tid - 11, page), NODES, frozenset([99]), halves) == {}
