"""The emulate backend on small programs whose accesses are known, under the real QEMU."""

import os
import signal
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from numaplan.common import MachineLacksError, UsageError
from numaplan.profiler.backends.emulation.qemu import find_qemu
from numaplan.profiler.trace.schema import LEVEL_CODE
from tests.support.emulating import AREA, BASE, MARKS, Recorder, build

pytestmark = MARKS


@pytest.fixture(scope="module")
def program() -> Path:
    return build()


@pytest.fixture
def run(program: Path, tmp_path: Path) -> Recorder:
    return Recorder(program, tmp_path)


@pytest.mark.parametrize("options", [{}, {"cache": "off"}, {"schedule": "free"}])
def test_every_access_of_every_thread_is_recorded_exactly(run: Recorder, options: dict[str, str]) -> None:
    seen = run("count", 3, 2000, 1000, 500, options=options)
    assert seen.recording.exit_code == 0
    tids = set()
    for thread in (1, 2, 3):
        area = seen.of_area(thread)
        writes = int(area["is_write"].sum())
        assert writes == 1000 * thread + 500
        assert len(area["addr"]) - writes == 2000 * thread + 500
        assert len(set(area["tid"].tolist())) == 1
        tids.add(int(area["tid"][0]))
        loads = area["addr"][~area["is_write"]][: 2000 * thread]
        assert np.array_equal(loads, BASE + thread * AREA + np.arange(2000 * thread, dtype=np.uint64) * 8)
    assert len(tids) == 3


def test_counters_equal_samples_at_period_one(run: Recorder) -> None:
    seen = run("count", 2, 3000, 1000, 100)
    for name, writes in (("loads", False), ("stores", True)):
        for tid, value in seen.counter(name).items():
            mine = (seen.samples["tid"] == tid) & (seen.samples["is_write"] == writes)
            assert int(mine.sum()) == value


def test_counters_are_exact_when_only_some_accesses_are_sampled(run: Recorder) -> None:
    few, many = (run("count", 1, loads, 0, 0, period=1000) for loads in (1_000_000, 3_000_000))
    difference = max(many.counter("loads").values()) - max(few.counter("loads").values())
    assert difference == 2_000_000
    loads = int((~many.of_area(1)["is_write"]).sum())
    assert 2700 < loads < 3300  # mean gap 1000, standard deviation of the count about 22


def test_times_are_strictly_increasing_in_the_total_order(run: Recorder) -> None:
    seen = run("count", 4, 5000, 5000, 100)
    assert (np.diff(seen.samples["time_ns"]) > 0).all()
    assert seen.samples["time_ns"][0] >= seen.recording.start_ns


def test_turns_interleave_threads_on_few_cores(run: Recorder) -> None:
    seen = run("share", 4, 20000)
    tid = seen.of_area(0)["tid"]
    assert len(tid) == 4 * 2 * 20000
    switches = int((np.diff(tid) != 0).sum())
    assert switches > 40  # a thread alone would do all its 40,000 accesses at a stretch
    levels = seen.of_area(0)["level"]
    assert (levels == LEVEL_CODE["remote_cache"]).sum() > 10
    assert max(seen.counter("coherence").values()) > 10


def test_threads_sit_on_the_machine_in_order(run: Recorder) -> None:
    seen = run("count", 4, 1000, 0, 0, machine="4x2")
    for thread, (cpu, node) in {1: (1, 0), 2: (2, 1), 3: (3, 1), 4: (4, 2)}.items():
        assert set(seen.of_area(thread)["cpu"].tolist()) == {cpu}
        assert set(seen.of_area(thread)["node"].tolist()) == {node}


def test_the_cache_model_tells_cold_from_warm_lines(run: Recorder) -> None:
    area = run("count", 1, 2 * 32768, 0, 0).of_area(1)
    cold, warm = area["level"][:32768], area["level"][32768:]
    assert (cold == LEVEL_CODE["local_dram"]).sum() == 32768 // 8
    assert (warm == LEVEL_CODE["l2"]).sum() == 32768 // 8  # 256 KiB: beyond L1, within L2
    assert (warm == LEVEL_CODE["local_dram"]).sum() == 0


@pytest.mark.parametrize(("case", "level"), [("home", "remote_dram"), ("remap", "local_dram")])
def test_the_first_toucher_decides_where_a_page_lives(run: Recorder, case: str, level: str) -> None:
    seen = run(
        case, 2, 8192, 0, 0
    )  # thread 2, on node 1, reads 16384 words of pages that node 0 touched first
    area = seen.of_area(2)
    reads = area["level"][~area["is_write"]]
    lines, pages = 16384 // 8, 16384 // 512
    assert (reads == LEVEL_CODE[level]).sum() in (lines, lines - pages)  # without the lines that main wrote
    assert (reads == LEVEL_CODE["l1"]).sum() == 16384 - lines
    missed = seen.counter("llc_misses_remote" if case == "home" else "llc_misses_local")
    assert missed[int(area["tid"][-1])] >= lines - pages


def test_without_the_cache_model_levels_are_unknown(run: Recorder) -> None:
    seen = run("count", 1, 100, 100, 0, options={"cache": "off"})
    assert set(seen.samples["level"].tolist()) == {LEVEL_CODE["unknown"]}
    assert {event for *_, event, _ in seen.recording.counters} == {"loads", "stores", "sleeps"}


def test_forked_children_are_recorded_apart(run: Recorder) -> None:
    seen = run("fork", 3, 5)
    for thread in (1, 2, 3):
        area = seen.of_area(thread)
        assert len(set(area["pid"].tolist())) == 6
        assert len(area["addr"]) == 10 * 20
    assert seen.recording.exit_code == 0


def test_executed_programs_are_emulated_too(run: Recorder) -> None:
    area = run("exec", identity=True).of_area(1)
    assert int(area["is_write"].sum()) == 50 and len(area["addr"]) == 150


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL, signal.SIGSEGV])
def test_what_was_recorded_survives_a_signal(run: Recorder, number: int) -> None:
    seen = run("die", int(number), 70000)
    assert seen.recording.exit_code == 128 + number
    assert len(seen.of_area(0)["addr"]) == 70000


def test_the_program_may_end_from_any_thread(run: Recorder) -> None:
    seen = run("leave", 0, 1000)
    assert seen.recording.exit_code == 7
    assert len(seen.of_area(1)["addr"]) == 1000


def test_thirty_two_threads(run: Recorder) -> None:
    seen = run("count", 32, 100, 50, 10, machine="4x8")
    for thread in range(1, 33):
        assert len(seen.of_area(thread)["addr"]) == 150 * thread + 20
    assert len(seen.recording.threads) == 33


def test_many_short_lived_threads(run: Recorder) -> None:
    seen = run("churn", 100, 10, 10, 0)
    area = seen.of_area(1)
    assert len(area["addr"]) == 100 * 20
    assert set(area["cpu"].tolist()) == set(range(8))
    assert all(thread.end_ns > thread.start_ns > 0 for thread in seen.recording.threads[1:])


@pytest.mark.parametrize("case", [("timer", 3, 2000, 1000, 0), ("spin",), ("compute",)])
def test_timers_spin_loops_and_computing_threads_do_not_hang(run: Recorder, case: tuple[object, ...]) -> None:
    assert run(*case, period=100).recording.exit_code == 0


def test_the_program_sees_its_own_affinity(run: Recorder) -> None:
    own = {"show_cpus": "no"}
    assert run("affinity", 1, 100000, options=own).recording.exit_code == len(os.sched_getaffinity(0))
    assert run("affinity", 1, 100000).recording.exit_code == 8


def test_static_programs(run: Recorder) -> None:
    static = build("-static")
    seen = run("count", 2, 100, 50, 0, executable=static, identity=True)
    assert len(seen.of_area(2)["addr"]) == 300
    assert len(seen.recording.threads) == 3


def test_programs_of_another_architecture(run: Recorder, tmp_path: Path) -> None:
    try:
        find_qemu("aarch64")
    except MachineLacksError as error:
        pytest.skip(str(error))
    code = [
        0xD2807D01,  # mov x1, #1000
        0xF81F03E1,  # loop: stur x1, [sp, #-16]
        0xF85F03E2,  # ldur x2, [sp, #-16]
        0xF1000421,  # subs x1, x1, #1
        0x54FFFFA1,  # b.ne loop
        0xD2800BA8,  # mov x8, #93 (exit)
        0xD2800060,  # mov x0, #3
        0xD4000001,  # svc #0
    ]
    start, size = 0x400000, 0x78 + 4 * len(code)
    ident = b"\x7fELF\2\1\1" + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 2, 183, 1, start + 0x78, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, start, start, size, size, 0x1000)
    program = tmp_path / "arm"
    program.write_bytes(ident + header + segment + struct.pack(f"<{len(code)}I", *code))
    program.chmod(0o755)
    seen = run(executable=program, identity=True)
    assert seen.recording.exit_code == 3
    assert list(seen.counter("loads").values()) == list(seen.counter("stores").values()) == [1000]
    assert len(seen.samples["addr"]) == 2000


def test_the_preload_library_itself_does_not_show(run: Recorder) -> None:
    seen = run("count", 2, 100, 50, 0, identity=True)
    assert len(seen.of_area(2)["addr"]) == 300
    assert len(seen.samples["addr"]) < sum(seen.counter("loads").values())


def test_a_full_disk_is_said_in_one_line(run: Recorder, tmp_path_factory: pytest.TempPathFactory) -> None:
    small = tmp_path_factory.mktemp("small")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "numaplan-test", str(small)], check=False
    )
    if mounted.returncode != 0:
        pytest.skip("a small tmpfs cannot be mounted here (not root)")
    try:
        with pytest.raises(UsageError, match="disk full"):
            run("count", 2, 100000, 0, 0, workdir=small)
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_misuse_is_said_before_anything_runs(run: Recorder, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no emulation option 'colour'"):
        run("count", options={"colour": "red"})
    with pytest.raises(UsageError, match="no such program"):
        run(executable=tmp_path / "absent")
    text = tmp_path / "text"
    text.write_text("not a program\n")
    text.chmod(0o755)
    with pytest.raises(UsageError, match="not a program that can be emulated"):
        run(executable=text)
