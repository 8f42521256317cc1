"""Processes, threads and regions of recordings made elsewhere, by their records alone."""

import shutil
import subprocess
from pathlib import Path

import pytest

from numaplan.profiler.identity.records import Identity
from numaplan.profiler.identity.static import build_id_of, static_objects
from numaplan.profiler.perfdata.decode import Decoded, decode_perf
from numaplan.profiler.perfdata.processes.identities import RunRecords, identity_of
from tests.support.perfdata_builder import Builder, Event

BASIC = ("ip", "tid", "time", "addr", "cpu")
READ_WRITE, CODE, NOTHING = 3, 5, 0


@pytest.fixture
def builder() -> Builder:
    made = Builder([Event(BASIC)])
    made.comm(100, 100, "app", 10, by_exec=True)
    return made


def decoded_of(builder: Builder, folder: Path) -> Decoded:
    builder.sample(0, {"pid": 100, "tid": 100, "time": 5000, "addr": 1})
    (folder / "perf.data").write_bytes(builder.file())
    return decode_perf(folder / "perf.data")


def identity(builder: Builder, folder: Path, pids: set[int], same_host: bool = True) -> Identity:
    decoded = decoded_of(builder, folder)
    run = RunRecords(decoded.threads, decoded.maps, decoded.execs, same_host)
    return identity_of(run, pids)[0]


def at(found: Identity, pid: int, address: int, time: int) -> tuple[str, str]:
    """Kind and name of what was there then: of the regions, the one born last."""
    inside = [
        one
        for one in found.regions
        if one.pid == pid
        and one.start_addr <= address < one.start_addr + one.bytes
        and one.start_ns <= time
        and (one.end_ns < 0 or time < one.end_ns)
    ]
    return max(
        ((one.start_ns, row, one.kind, one.name) for row, one in enumerate(inside)), default=(0, 0, "", "")
    )[2:]


def test_threads_by_who_made_them(builder: Builder, tmp_path: Path) -> None:
    builder.fork(100, 105, 100, 50)
    builder.fork(100, 103, 100, 40)
    builder.fork(100, 110, 100, 60, parent_tid=105)
    builder.fork(100, 111, 100, 70, parent_tid=105)
    builder.end(100, 103, 100, 80)
    builder.fork(100, 103, 100, 90)  # the tid comes back
    builder.fork(200, 200, 100, 100)
    builder.fork(200, 201, 200, 110)
    builder.fork(300, 300, 200, 120)
    found = identity(builder, tmp_path, {100, 300})
    assert [(one.process, one.pid, one.parent) for one in found.processes] == [
        ("p0", 100, ""),
        ("p0.1", 200, "p0"),
        ("p0.1.1", 300, "p0.1"),
    ]
    assert {(one.process, one.path, one.tid) for one in found.threads} == {
        ("p0", "0", 100),
        ("p0", "0.1", 103),
        ("p0", "0.2", 105),
        ("p0", "0.3", 103),
        ("p0", "0.2.1", 110),
        ("p0", "0.2.2", 111),
        ("p0.1", "0", 200),
        ("p0.1", "0.1", 201),
        ("p0.1.1", "0", 300),
    }


def test_a_pid_that_comes_back_is_another_process(builder: Builder, tmp_path: Path) -> None:
    builder.fork(200, 200, 100, 100)
    builder.mmap2(200, 0x5000, 0x1000, "//anon", 110, protection=READ_WRITE)
    builder.end(200, 200, 100, 200)
    builder.fork(200, 200, 100, 300)
    builder.mmap2(200, 0x9000, 0x1000, "//anon", 310, protection=READ_WRITE)
    found = identity(builder, tmp_path, {200})
    assert [(one.process, one.start_ns, one.end_ns) for one in found.processes] == [
        ("p0", 10, -1),
        ("p0.1", 100, 200),
        ("p0.2", 300, -1),
    ]
    assert at(found, 200, 0x5000, 150) == ("mmap", "anon")
    assert at(found, 200, 0x5000, 350) == ("", "")


def test_what_perf_found_running_is_a_root(builder: Builder, tmp_path: Path) -> None:
    builder.fork(700, 700, 1, 0)  # perf's own account of what was there before
    builder.fork(700, 702, 700, 0)
    found = identity(builder, tmp_path, {700})
    assert [(one.process, one.pid) for one in found.processes] == [("p0", 700)]
    assert [(one.path, one.tid, one.start_ns) for one in found.threads] == [("0", 700, -1), ("0.1", 702, -1)]


def test_a_fork_keeps_memory_and_exec_forgets_it(builder: Builder, tmp_path: Path) -> None:
    builder.mmap2(100, 0x10000, 0x20000, "//anon", 20, protection=READ_WRITE)
    builder.fork(200, 200, 100, 30)
    builder.mmap2(100, 0x80000, 0x1000, "//anon", 35, protection=READ_WRITE)
    builder.fork(300, 300, 100, 50)
    builder.comm(100, 100, "again", 60, by_exec=True)
    builder.comm(200, 200, "other", 40, by_exec=True)
    builder.mmap2(200, 0x10000, 0x1000, "/bin/other", 41)
    found = identity(builder, tmp_path, {100, 200, 300})
    assert at(found, 300, 0x80000, 70) == ("mmap", "anon")  # what its parent has forgotten since
    assert at(found, 100, 0x80000, 70) == ("", "")
    assert at(found, 200, 0x11000, 35) == ("mmap", "anon")
    assert at(found, 200, 0x80000, 36) == ("", "")  # mapped by the parent after the fork
    assert at(found, 200, 0x10000, 45) == ("text", "other:.text")
    assert at(found, 200, 0x11000, 45) == ("", "")
    assert at(found, 100, 0x11000, 45) == ("mmap", "anon")
    assert [one.executable for one in found.processes] == ["again", "/bin/other", "app"]


def test_stacks_are_what_a_maker_reserved_before_the_thread(builder: Builder, tmp_path: Path) -> None:
    builder.mmap2(100, 0x7F0000900000, 0x10000, "//anon", 10, protection=READ_WRITE)
    for number, base in enumerate((0x7F0000800000, 0x7F0000700000)):
        # The second is told together with the guard page of the first, above it.
        length = 0x100000 + 0x1000 * number
        builder.mmap2(100, base, length, "//anon", 20 + 10 * number, protection=NOTHING)
        builder.mmap2(100, base + 0x1000, 0xFF000, "//anon", 21 + 10 * number, protection=READ_WRITE)
        builder.fork(100, 101 + number, 100, 22 + 10 * number)
    builder.end(100, 101, 100, 100)
    builder.fork(100, 103, 100, 110)  # takes the stack that is free again
    found = identity(builder, tmp_path, {100})
    assert at(found, 100, 0x7F0000880000, 50) == ("stack", "0.1")
    assert at(found, 100, 0x7F0000780000, 50) == ("stack", "0.2")
    assert at(found, 100, 0x7F0000880000, 120) == ("stack", "0.3")
    assert at(found, 100, 0x7F0000900000, 120) == ("mmap", "anon")


def test_arenas_and_heaps_hold_small_blocks(builder: Builder, tmp_path: Path) -> None:
    builder.mmap2(100, 0x7F0008000000, 0x8000000, "//anon", 20, protection=NOTHING)
    builder.mmap2(100, 0x7F0008000000, 0x21000, "//anon", 21, protection=READ_WRITE)
    builder.mmap2(100, 0x555000, 0x21000, "[heap]", 22, protection=READ_WRITE)
    builder.fork(100, 101, 100, 30)
    found = identity(builder, tmp_path, {100})
    assert at(found, 100, 0x7F0008001000, 50) == ("small", "small")
    assert at(found, 100, 0x555000, 50) == ("small", "small")


def test_areas_told_as_one_are_kept_apart(builder: Builder, tmp_path: Path) -> None:
    builder.mmap2(100, 0x500000, 0x100000, "//anon", 20, protection=READ_WRITE)
    builder.mmap2(100, 0x400000, 0x200000, "//anon", 30, protection=READ_WRITE)  # joined to the one above
    builder.mmap2(100, 0x400000, 0x280000, "//anon", 40, protection=READ_WRITE, tid=101)  # grown at its end
    found = identity(builder, tmp_path, {100})
    assert [(one.start_addr, one.bytes, one.sequence) for one in found.regions] == [
        (0x500000, 0x100000, 1),
        (0x400000, 0x100000, 2),
        (0x600000, 0x80000, 3),
    ]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    folder = tmp_path_factory.mktemp("library")
    source = (
        "double table[4096] = {1}; double zeros[9000]; double get(int i) { return table[i] + zeros[i]; }\n"
    )
    (folder / "l.c").write_text(source)
    command = ["gcc", "-shared", "-fPIC", "-Wl,--build-id", "-o", "libtable.so", "l.c"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "libtable.so"


def load(builder: Builder, library: Path, build_id: str, base: int = 0x7F0000000000) -> int:
    """The mappings that the loader makes of the library, as the kernel tells them; returns the bias."""
    from elftools.elf.elffile import ELFFile

    with library.open("rb") as file:
        parts = list(ELFFile(file).iter_segments("PT_LOAD"))
        for number, part in enumerate(parts):
            start, offset = part["p_vaddr"] & ~4095, part["p_offset"] & ~4095
            end = -(-(part["p_vaddr"] + part["p_filesz"]) // 4096) * 4096
            protection = (part["p_flags"] & 1) << 2 | part["p_flags"] & 2 | 1
            builder.mmap2(
                100,
                base + start,
                end - start,
                str(library),
                20 + number,
                build_id,
                offset=offset,
                protection=protection,
            )
        top = -(-(parts[-1]["p_vaddr"] + parts[-1]["p_memsz"]) // 4096) * 4096
    builder.mmap2(100, base + end, top - end, "//anon", 30, protection=READ_WRITE)
    return base


@pytest.mark.parametrize("known", [True, False], ids=["with build id", "on the same host"])
def test_static_data_by_symbol(builder: Builder, tmp_path: Path, library: Path, known: bool) -> None:
    bias = load(builder, library, build_id_of(str(library)) if known else "")
    found = identity(builder, tmp_path, {100}, same_host=not known)
    places = {piece.name: bias + piece.address for piece in static_objects(str(library))}
    for symbol in ("table", "zeros"):
        assert at(found, 100, places[symbol] + 8000, 50) == ("static", f"libtable.so:{symbol}")


@pytest.mark.parametrize("build_id", ["ab" * 20, ""], ids=["replaced since", "from elsewhere"])
def test_another_file_of_that_name_is_not_believed(
    builder: Builder, tmp_path: Path, library: Path, build_id: str
) -> None:
    bias = load(builder, library, build_id)
    found = identity(builder, tmp_path, {100}, same_host=False)
    names = {one.name for one in found.regions if one.kind == "static"}
    assert names == {"libtable.so:.data", "libtable.so:.bss"}
    table = next(piece for piece in static_objects(str(library)) if piece.name == "table")
    assert at(found, 100, bias + table.address, 50) == ("static", "libtable.so:.data")


def test_old_records_tell_code_from_data(builder: Builder, tmp_path: Path) -> None:
    builder.mmap(100, 0x400000, 0x1000, "/bin/app", 20)
    builder.mmap(100, 0x600000, 0x1000, "/bin/app", 21, data=True)
    builder.mmap(100, 0x800000, 0x1000, "/data/input", 22, data=True)
    found = identity(builder, tmp_path, {100})
    assert at(found, 100, 0x400000, 50) == ("text", "app:.text")
    assert at(found, 100, 0x600000, 50) == ("static", "app:.data")
    assert at(found, 100, 0x800000, 50) == ("file", "input+0x0")


def test_endless_forks_take_bounded_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from numaplan.profiler.perfdata.processes import address_spaces

    monkeypatch.setattr(address_spaces, "_MOST_REGIONS", 1000)
    builder = Builder([Event(BASIC)])
    for number in range(50):
        builder.mmap2(100, 0x10000 * (number + 1), 0x8000, "//anon", 20, protection=READ_WRITE)
    for number in range(100):
        builder.fork(200 + number, 200 + number, 100, 1000 + number)
    decoded = decoded_of(builder, tmp_path)
    run = RunRecords(decoded.threads, decoded.maps, decoded.execs)
    found, warnings = identity_of(run, set(range(200, 300)))
    assert len(found.regions) == 1000
    assert warnings
