"""Reading what the emulation plugin leaves, whole or damaged."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.common import UsageError
from numaplan.profiler.backends.emulation import spool as emulate_spool
from numaplan.profiler.backends.emulation.backend import warnings_of_processes
from numaplan.profiler.backends.emulation.calls import call_blocks
from numaplan.profiler.backends.emulation.footprint import Scale
from numaplan.profiler.backends.emulation.running import running_blocks
from numaplan.profiler.backends.emulation.spool import (
    read_process,
    read_processes,
    sample_blocks,
)
from numaplan.profiler.backends.emulation.transfers import transfer_blocks
from numaplan.profiler.identity.records import Identity, ProcessRecord
from numaplan.profiler.sample_block import SampleBlock
from numaplan.profiler.trace.schema import LEVEL_CODE, LEVELS
from tests.support.properties import examples
from tests.support.spools import write_pairs, write_threads

SEATS = [(4, 0), (9, 3)]
STORE = 1 << 62


def header(thread: int, time: int) -> tuple[int, int]:
    return (1 << 63 | thread, time)


def sample(
    addr: int,
    ip: int,
    offset: int,
    *,
    store: bool = False,
    level: str = "l1",
    reach: int = 0,
    remote: int = 0,
) -> tuple[int, int]:
    word = addr | reach << 48 | remote << 52 | LEVEL_CODE[level] << 58 | (STORE if store else 0)
    return word, ip | offset << 48


def blocks_of(folder: Path) -> list[SampleBlock]:
    return list(
        sample_blocks(read_processes(folder), SEATS, lambda _share: None, lambda _process, _ip, _addr: None)
    )


def test_samples_take_thread_and_time_from_the_header_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emulate_spool, "PAIRS", 3)  # a header and its samples fall into different blocks
    write_threads(tmp_path, [70, 71, 72])
    write_pairs(
        tmp_path,
        "samples",
        [
            header(1, 1000),
            sample(0xA0, 0x400, 0),
            sample(0xA8, 0x404, 5, store=True, level="remote_dram"),
            sample(0xB0, 0x408, 65535),
            header(0, 200_000),
            sample(0x7FFF_FFFF_FFF8, 0x40C, 1),
        ],
    )
    write_pairs(tmp_path, "windows", [header(2, 300_000), sample(0xC0, 0x410, 2), (0, 0), (0, 0)])
    whole = {
        name: np.concatenate([getattr(block, name) for block in blocks_of(tmp_path)])
        for name in SampleBlock.__dataclass_fields__
    }
    assert whole["time_ns"].tolist() == [1000, 1005, 66535, 200_001, 300_002]
    assert whole["tid"].tolist() == [71, 71, 71, 70, 72]
    assert whole["pid"].tolist() == [7] * 5
    assert whole["cpu"].tolist() == [9, 9, 9, 4, 4]
    assert whole["node"].tolist() == [3, 3, 3, 0, 0]
    assert whole["addr"].tolist() == [0xA0, 0xA8, 0xB0, 0x7FFF_FFFF_FFF8, 0xC0]
    assert whole["ip"].tolist() == [0x400, 0x404, 0x408, 0x40C, 0x410]
    assert whole["is_write"].tolist() == [False, True, False, False, False]
    assert whole["event"].tolist() == [0, 1, 0, 0, 0]
    assert whole["level"].tolist()[1] == LEVEL_CODE["remote_dram"]


def transfer(page: int, writer: int, reader: int, events: int) -> tuple[int, int]:
    return 1 << 62 | page, writer << 48 | reader << 32 | events


def test_transfers_are_of_the_stretch_before_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulate_spool, "PAIRS", 2)
    write_threads(tmp_path, [70, 71, 72])
    rows = [transfer(9, 0, 1, 4), transfer(3, 1, 2, 1), transfer(9, 0, 7, 5), transfer(9, 1, 1, 5)]
    write_pairs(tmp_path, "transfers", [transfer(1, 0, 1, 3), (1 << 63, 100), *rows, (1 << 63, 250)], b"cut")
    write_pairs(tmp_path, "transfers-window", [transfer(8, 2, 0, 2), (1 << 63, 400), (0, 0)])
    write_pairs(tmp_path, "transfers-table", [(0, 0), transfer(5, 2, 1, 2**32 - 1), transfer(6, 2, 1, 1)])
    (process,) = read_processes(tmp_path)
    process = replace(process, last_ns=500, shift_ns=1000)
    blocks = list(transfer_blocks([process], lambda _process, _ip, addr: addr != np.uint64(6 << 12)))
    assert [(block.pid, block.start_ns, block.end_ns) for block in blocks] == [
        (7, 1100, 1250),
        (7, 1250, 1400),
        (7, 1400, 1500),
    ]
    found = [
        list(zip(block.addr >> 12, block.writer, block.reader, block.events, strict=True)) for block in blocks
    ]
    assert found == [[(9, 70, 71, 4), (3, 71, 72, 1)], [(8, 72, 70, 2)], [(5, 72, 71, 2**32 - 1)]]


def test_samples_say_how_far_they_reach(tmp_path: Path) -> None:
    write_threads(tmp_path, [70])
    words = [
        sample(0xA0, 1, 0, level="l2", reach=2),
        sample(0xB0, 1, 1, level="remote_cache", reach=1, remote=1),
        sample(0xC0, 1, 2, level="local_dram", reach=0),
        sample(0xD0, 1, 3, level="l3", reach=2, remote=1),
    ]
    write_pairs(tmp_path, "samples", [header(0, 1), *words])
    (process,) = read_processes(tmp_path)
    assert process.footprint == 12_288
    (plain,) = blocks_of(tmp_path)
    assert plain.reach.tolist() == [-1] * 4
    levels = {}
    for chosen in (None, 0, 1):
        scale = Scale(True, 12_288, 1 << 30, (4096, 8192), chosen)
        (block,) = sample_blocks(
            [process], SEATS, lambda _share: None, lambda _process, _ip, _addr: None, scale.levels
        )
        assert block.addr.tolist() == [0xA0, 0xB0, 0xC0, 0xD0] and block.reach.tolist() == [2, 1, 0, 2]
        levels[chosen] = [LEVELS[code] for code in block.level.tolist()]
    assert levels == {
        None: ["l2", "remote_cache", "local_dram", "l3"],
        0: ["local_dram", "remote_dram", "l3", "remote_dram"],
        1: ["local_dram", "remote_cache", "l3", "remote_dram"],
    }


def test_a_filter_leaves_samples_out(tmp_path: Path) -> None:
    write_threads(tmp_path, [70])
    write_pairs(tmp_path, "samples", [header(0, 1), sample(1, 0x100, 0), sample(2, 0x200, 1)])
    shares: list[float] = []
    blocks = sample_blocks(
        read_processes(tmp_path),
        SEATS,
        shares.append,
        lambda process, ip, _addr: (ip > 0x100) & (process.pid == 7),
    )
    assert [block.addr.tolist() for block in blocks] == [[2]]
    assert shares == [1.0]


def test_samples_of_unknown_threads_and_torn_pairs_are_left_out(tmp_path: Path) -> None:
    write_threads(tmp_path, [70])
    pairs = [sample(1, 2, 3), header(5, 10), sample(4, 5, 6), header(0, 20), sample(7, 8, 9)]
    write_pairs(tmp_path, "samples", pairs, tail=b"\1" * 9)
    assert [block.addr.tolist() for block in blocks_of(tmp_path)] == [[7]]


def test_claimed_thread_counts_are_checked_against_the_file(tmp_path: Path) -> None:
    write_threads(tmp_path, [70, 71], claimed=2**62)
    assert read_processes(tmp_path)[0].threads["tid"].tolist() == [70, 71]


def test_a_full_disk_is_an_error(tmp_path: Path) -> None:
    write_threads(tmp_path, [70], error=28)
    with pytest.raises(UsageError, match="disk full"):
        read_processes(tmp_path)
    (tmp_path / "emulate-7-100.threads").write_bytes(b"")
    with pytest.raises(UsageError, match="disk full"):
        read_processes(tmp_path)


@pytest.mark.parametrize(("offset", "value"), [(0, b"X"), (8, b"\x63"), (16, b"\0\0\0\0")])
def test_files_of_another_kind_are_refused(tmp_path: Path, offset: int, value: bytes) -> None:
    path = write_threads(tmp_path, [70])
    data = bytearray(path.read_bytes())
    data[offset : offset + len(value)] = value
    path.write_bytes(data)
    with pytest.raises(UsageError, match="not written by this version"):
        read_processes(tmp_path)


@examples(60)
@given(threads=st.binary(max_size=600), samples=st.binary(max_size=400), good=st.booleans())
def test_damaged_files_give_an_error_or_samples_of_known_threads(
    tmp_path_factory: pytest.TempPathFactory, threads: bytes, samples: bytes, good: bool
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    path = write_threads(folder, [70, 71])
    if not good:
        data = bytearray(path.read_bytes())
        data[: len(threads)] = threads
        path.write_bytes(data)
    (folder / "emulate-7-100.samples").write_bytes(samples)
    try:
        blocks = blocks_of(folder)
    except UsageError:
        assert not good
        return
    for block in blocks:
        assert len(block) <= len(samples) // 16
        if good:
            assert set(block.tid.tolist()) <= {70, 71}


def test_processes_that_a_signal_ended_are_told(tmp_path: Path) -> None:
    gone = 1 << 22  # no process has this id
    children = [
        ProcessRecord(f"p0.{number}", gone + number, "p0", ("app",), "/bin/app", "", 0, -1)
        for number in range(1, 3)
    ]
    identity = Identity((ProcessRecord("p0", gone, "", ("sh",), "/bin/sh", "", 0, -1), *children))
    whole = read_process(write_threads(tmp_path, [1]))
    assert whole.exits, "its only thread ended"

    def told(*exits: bool, exit_code: int = 0) -> str:
        spools = [replace(whole, pid=gone + number, exits=one) for number, one in enumerate(exits)]
        return "; ".join(warnings_of_processes(spools, identity, exit_code))

    assert told(True, True, True) == ""
    assert told(False, True, True) == "", "of its own end the exit code tells"
    assert "a signal ended p0 (sh): if none does without nprof" in told(False, True, True, exit_code=139)
    assert "a signal ended p0.2 (app): if none does without nprof" in told(True, True, False)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
        assert told(False, False, False, exit_code=128 + number) == "", "Ctrl-C ends all, and so do these"
    assert told(True, False, False, exit_code=130) == ""
    other = [replace(whole, pid=gone), replace(whole, pid=gone + 1, exits=False, becomes=True)]
    (warning,) = warnings_of_processes(other, identity, 0)
    assert warning.startswith("p0.1 (app) became a program that was not emulated") and "signal" not in warning
    emulated = [*other, replace(whole, pid=gone + 1)]
    assert warnings_of_processes(emulated, identity, 0) == [], "its next program was"
    (static,) = warnings_of_processes([replace(whole, pid=gone, becomes=True)], Identity(), 0)
    assert static.startswith(f"process {gone} became")
    here = replace(children[1], pid=os.getpid())
    (alive,) = warnings_of_processes(
        [replace(whole, pid=here.pid)], Identity((identity.processes[0], here)), 0
    )
    assert alive.startswith("p0.2 (app) went on when the program had ended")
    (forked,) = warnings_of_processes([replace(whole, pid=here.pid)], Identity(identity.processes[:1]), 0)
    assert forked.startswith(f"process {here.pid} went on when the program had ended")


def test_samples_are_in_the_call_that_was_told_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulate_spool, "PAIRS", 2)  # what is told, and what it is of, in different blocks

    def call(number: int) -> tuple[int, int]:
        return (3 << 62, number)

    write_threads(tmp_path, [70, 71])
    rows = [header(1, 1000), sample(0xA0, 1, 0), call(2), sample(0xA0, 2, 1), sample(0xA0, 3, 2)]
    rows += [call(1), sample(0xA0, 4, 3), call(9), sample(0xA0, 5, 4)]  # the last was never written
    write_pairs(tmp_path, "samples", [*rows, call(1), header(0, 2000), sample(0xA0, 6, 0)])
    write_pairs(tmp_path, "calls", [(0, 0x500), (1, 0x600)])
    write_pairs(tmp_path, "calls-window", [(7, 0x700), (0, 0), (0, 0)])
    found = [
        pair
        for block in blocks_of(tmp_path)
        for pair in zip(block.ip.tolist(), block.call.tolist(), strict=True)
    ]
    assert found == [(1, -1), (2, 1), (3, 1), (4, 0), (5, -1), (6, -1)]
    first, second = (replace(one, first_call=at) for one in read_processes(tmp_path) for at in (0, 10))
    (block,) = call_blocks([first])
    assert (block.number.tolist(), block.caller.tolist()) == ([0, 1, 2], [-1, 0, -1])
    (block,) = call_blocks([second])
    assert (block.number.tolist(), block.caller.tolist()) == ([10, 11, 12], [-1, 10, -1])
    assert block.ip.tolist() == [0x500, 0x600, 0x700] and block.pid == 7


def test_looks_are_at_threads_that_could_run(tmp_path: Path) -> None:
    write_threads(tmp_path, [70, 71, 72])
    look = 1 << 63
    write_pairs(tmp_path, "running", [(3, 1), (look, 1000), (1, 3), (2, 0), (look, 2000), (2, 9)])
    write_pairs(tmp_path, "running-window", [(look, 3000), (1 << 40, 3), (0, 0), (0, 0)])
    (process,) = read_processes(tmp_path)
    (block,) = running_blocks([replace(process, shift_ns=5)])
    # What comes before any look, and numbers of threads that there are not, are damage.
    assert list(zip(block.time_ns.tolist(), block.tid.tolist(), strict=True)) == [
        (1005, 70),
        (1005, 72),
        (1005, 71),
        (2005, 71),
        (3005, 72),
    ]
    assert len(block.alive_ns) == len(block) == 5


def test_a_process_without_looks_has_none(tmp_path: Path) -> None:
    write_threads(tmp_path, [70])
    assert list(running_blocks(read_processes(tmp_path))) == []
