"""What the emulation counts, when, and whose it was: exactly, and the same every time."""

from pathlib import Path

import numpy as np
import pytest

from numaplan.profiler.recording.attribution import RegionFinder
from numaplan.profiler.sample_block import SampleBlock
from numaplan.profiler.trace.reader import Trace
from tests.support.commands import succeed
from tests.support.emulating import BASE, MARKS, Recorder, build
from tests.support.programs import OPTIMISED, PROGRAMS, compiled
from tests.support.waiting import until

pytestmark = MARKS


@pytest.fixture(scope="module")
def program() -> Path:
    return build()


@pytest.fixture
def run(program: Path, tmp_path: Path) -> Recorder:
    return Recorder(program, tmp_path)


# Loads and stores of each kind of instruction in programs/recording/access_kinds.c; 16 bytes are two
# accesses of 8.
KINDS = (
    *((1, 0),) * 4,
    *((0, 1),) * 2,
    *((1, 1),) * 4,
    *((1, 0), (2, 0), (0, 2), (4, 0), (0, 4)),
    *((5, 5), (0, 3), (1, 2), (0, 0), (0, 0)),
)


@pytest.mark.parametrize(("threads", "signals"), [(1, ()), (4, ("signals",)), (32, ())])
def test_every_kind_of_access_is_counted(run: Recorder, threads: int, signals: tuple[str, ...]) -> None:
    program = compiled(PROGRAMS / "recording/access_kinds.c", flags=(*OPTIMISED, "-D_GNU_SOURCE"))
    seen = run(300, threads, *signals, executable=program)
    assert seen.recording.exit_code == 0
    place = (seen.samples["addr"] - np.uint64(BASE)) // np.uint64(64 << 10)
    for thread in range(threads):
        for kind, (loads, stores) in enumerate(KINDS):
            here = place == thread * 64 + kind
            writes = int((here & seen.samples["is_write"]).sum())
            assert (kind, int(here.sum()) - writes, writes) == (kind, 300 * loads, 300 * stores)


def test_a_program_that_uses_up_its_descriptors_is_recorded(run: Recorder) -> None:
    seen = run("full", 3, 30_000, 30_000, 10)
    assert seen.recording.exit_code == 0 and sum(lost for _, lost in seen.recording.losses) == 0
    place = (seen.samples["addr"] - np.uint64(BASE)) // np.uint64(1 << 20)
    for thread in range(1, 4):
        assert int((place == thread).sum()) == thread * 60_000 + 2 * 10


def test_one_thread_is_recorded_the_same_every_time(run: Recorder) -> None:
    first, second = (run("count", 1, 3000, 3000, 10, period=7, identity=True) for _ in range(2))
    other = run("count", 1, 3000, 3000, 10, period=7, identity=True, options={"seed": "2"})
    for name in ("time_ns", "addr", "ip", "event", "level", "cpu"):
        assert np.array_equal(first.samples[name], second.samples[name])
    assert not np.array_equal(first.samples["addr"], other.samples["addr"])
    lives = [
        [(r.kind, r.name, r.start_ns, r.end_ns) for r in seen.recording.identity.regions]
        for seen in (first, second)
        if seen.recording.identity is not None
    ]
    assert lives[0] == lives[1] and len(lives[0]) > 10


def test_threads_that_wake_each_other_run_in_the_same_order(run: Recorder) -> None:
    program = compiled(PROGRAMS / "recording/handed_on.c")
    found: list[bytes] = []

    def comes_again() -> bool:
        """A host that leaves a woken thread waiting for a third of a second upsets a recording."""
        samples = run(4, executable=program, period=3, identity=True).samples
        assert len(samples["time_ns"]) > 10_000
        found.append(np.stack([samples[name] for name in ("time_ns", "addr", "ip")]).tobytes())
        return found.count(found[-1]) > 1

    until(comes_again)


def test_time_is_counted_in_accesses(run: Recorder) -> None:
    seen = run("count", 2, 5000, 5000, 100, identity=True)
    accesses = sum(sum(seen.counter(name).values()) for name in ("loads", "stores"))
    span = seen.samples["time_ns"].max() - seen.samples["time_ns"].min()
    assert len(seen.samples["time_ns"]) <= span < 1.1 * accesses
    identity = seen.recording.identity
    assert identity is not None
    assert all(0 <= thread.start_ns <= thread.end_ns <= 1.1 * accesses for thread in identity.threads)


def test_samples_find_blocks_that_come_and_go_at_one_address(run: Recorder) -> None:
    program = compiled(PROGRAMS / "recording/reused_blocks.c")
    seen = run(50, executable=program, identity=True)
    identity = seen.recording.identity
    assert identity is not None and seen.recording.exit_code == 0
    heap = [region for region in identity.regions if region.bytes == 200_000]
    assert len(heap) == 50 and len({region.start_addr for region in heap}) == 1
    start = heap[0].start_addr
    mine = (seen.samples["addr"] >= start) & (seen.samples["addr"] < start + 200_000)
    block = SampleBlock(**{name: value[mine] for name, value in seen.samples.items()})
    found = RegionFinder(identity.regions).find(block.pid, block.addr, block.time_ns)
    for turn, region in enumerate(sorted(heap, key=lambda region: region.sequence)):
        # Each block is written at an offset of its own, once in each of its first 1000 lines.
        own = block.addr[found == identity.regions.index(region)]
        written = own[own % np.uint64(64) == turn]
        assert len(written) == 1000
        others = own % np.uint64(64)
        assert set(others[(own >= start + 4096) & (own < start + 60_000)].tolist()) == {turn}


def test_a_process_that_forks_and_execs_is_one(tmp_path: Path) -> None:
    output = tmp_path / "t.db"
    succeed("nprof", "record", "--backend", "emulate", "-o", output, "sh", "-c", "ls / >/dev/null; ls /")
    with Trace.open(output) as trace:
        assert trace.rows("SELECT process, path FROM threads ORDER BY 1") == [
            ("p0", "0"),
            ("p0.1", "0"),
            ("p0.2", "0"),
        ]
