"""Logs and control files of the preload library: what is in them, and what no damaged file may do."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.common import MachineLacksError, UsageError
from numaplan.profiler.identity import control, environment, log
from numaplan.profiler.identity.environment import prepare
from numaplan.profiler.identity.read import read_identity
from numaplan.profiler.identity.static import build_id_of, static_objects
from tests.support.properties import examples

START = 1_000


def record(kind: int, thread: int = 0, text: bytes = b"", **values: int) -> bytes:
    """A record as the library writes it, its text after it."""
    slots = -(-len(text) // log.SLOT)
    row = np.zeros(1, log.RECORD)
    row["kind"], row["text_slots"], row["thread"], row["text_bytes"] = kind, slots, thread, len(text)
    row["time_ns"] = values.pop("time_ns", START)
    for name, value in values.items():
        row[name] = value
    check = fnv(row.tobytes()[4:]) & 0xFFFFFFFF
    row["check"] = check or 1
    return row.tobytes() + text.ljust(slots * log.SLOT, b"\0")


def fnv(data: bytes) -> int:
    value = 14695981039346656037
    for byte in data:
        value = (value ^ byte) * 1099511628211 % (1 << 64)
    return value


def image(*records: bytes, entry: int = 0, number: int = 1, parent: int = 0, fork_ns: int = 0) -> bytes:
    body = b"".join(records)
    header = np.zeros(1, log.HEADER)
    header["magic"], header["version"], header["slot_bytes"] = log.MAGIC, log.VERSION, log.SLOT
    header["entry"], header["image"], header["pid"], header["parent_image"] = (
        entry,
        number,
        100 + entry,
        parent,
    )
    header["start_ns"], header["fork_ns"] = START, fork_ns
    header["cursor"] = (log.HEADER.itemsize + len(body)) // log.SLOT
    return header.tobytes() + body


def control_file(*entries: dict[str, int]) -> bytes:
    header = np.zeros(1, control.HEADER)
    header["magic"], header["version"] = environment.MAGIC, environment.CONTROL_VERSION
    header["entry_bytes"], header["capacity"] = control.ENTRY.itemsize, environment.CAPACITY
    header["used"] = len(entries)
    rows = np.zeros(len(entries), control.ENTRY)
    for row, entry in zip(rows, entries, strict=True):
        for name, value in entry.items():
            row[name] = value
    return header.tobytes() + rows.tobytes()


def folder_of(folder: Path, controls: bytes, *images: bytes) -> Path:
    (folder / environment.CONTROL).write_bytes(controls)
    for number, data in enumerate(images, 1):
        (folder / f"image-{number:08}.log").write_bytes(data)
    return folder


NO_THREAD = (1 << 32) - 1  # the parent of a main thread
MAIN = record(log.THREAD_START, 0, a=100, b=NO_THREAD << 32)


def child(number: int, parent: int, which: int) -> bytes:
    return record(log.THREAD_START, number, a=100 + number, b=parent << 32 | which)


def test_paths_follow_parents_in_any_order_of_birth(tmp_path: Path) -> None:
    data = image(MAIN, child(3, 2, 1), child(1, 0, 1), child(2, 0, 2))
    identity = read_identity(folder_of(tmp_path, control_file({"pid": 100, "start_ns": 5}), data))
    assert sorted((t.path, t.tid) for t in identity.threads) == [
        ("0", 100),
        ("0.1", 101),
        ("0.2", 102),
        ("0.2.1", 103),
    ]
    assert identity.lost == 0


def test_a_thread_whose_parent_is_lost_has_no_path(tmp_path: Path) -> None:
    data = image(MAIN, child(2, 1, 1))
    identity = read_identity(folder_of(tmp_path, control_file({"pid": 100}), data))
    assert [t.path for t in identity.threads] == ["0"]


def test_blocks_end_where_they_are_freed_and_mappings_by_range(tmp_path: Path) -> None:
    data = image(
        MAIN,
        record(log.ALLOC, 0, a=1, b=0x10010, c=100000, d=0x5010, e=1, time_ns=2_000),
        record(log.FREE, 0, a=1, b=0x10010, time_ns=3_000),
        record(log.ALLOC, 0, a=1, b=0x10010, c=200000, d=0x5010, e=2, time_ns=4_000),
        record(log.ALLOC, 0, a=2, b=0x100000, c=0x20000, d=0x5020, e=3, time_ns=5_000),
        record(log.ALLOC, 0, a=2, b=0x200000, c=0x20000, d=0x5020, e=4, time_ns=5_000),
        record(log.FREE, 0, a=2, b=0x100000, c=0x20000, time_ns=6_000),
        record(log.MODULE, a=1, b=0x4000, e=2, text=b"\xab\xcdno/such/app"),
        record(log.SEGMENT, a=5, b=0x4000, c=0x5000, d=0x1000),
    )
    identity = read_identity(folder_of(tmp_path, control_file({"pid": 100}), data))
    blocks = sorted((r.sequence, r.kind, r.name, r.bytes, r.end_ns) for r in identity.regions if r.sequence)
    assert blocks == [
        (1, "heap", "app+0x1010", 100000, 3_000),
        (2, "heap", "app+0x1010", 200000, -1),
        (3, "mmap", "app+0x1020", 0x20000, 6_000),
        (4, "mmap", "app+0x1020", 0x20000, -1),
    ]
    assert {r.build_id for r in identity.regions} == {"abcd"}
    assert identity.processes[0].build_id == "abcd"


def test_processes_have_names_by_parent_or_rank(tmp_path: Path) -> None:
    entries = [
        {"pid": 1},
        {"pid": 2, "parent": 1, "number": 2},
        {"pid": 3, "parent": 2, "number": 1},
        {"pid": 4, "parent": 1, "rank": 8},
        {"pid": 5, "parent": 4, "number": 3},
        {"pid": 6, "parent": 99, "number": 3},
    ]
    names = [e.name for e in control.read_control(folder_of(tmp_path, control_file(*entries)))]
    assert names == ["p0", "p0.2", "p0.2.1", "r7", "r7.3", "p0"]


def test_forked_child_has_its_parents_memory(tmp_path: Path) -> None:
    parent = image(
        MAIN,
        record(log.ALLOC, 0, a=1, b=0x10010, c=100000, d=1, e=1, time_ns=2_000),
        record(log.ALLOC, 0, a=1, b=0x90010, c=100000, d=1, e=2, time_ns=9_000),
    )
    forked = {"pid": 101, "parent": 1, "number": 1, "start_ns": 5_000, "parent_image": 1}
    with_log = image(record(log.THREAD_NAME), entry=1, number=2, parent=1, fork_ns=5_000)
    for name, images in {"with": (parent, with_log), "without": (parent,)}.items():
        place = tmp_path / name
        place.mkdir()
        identity = read_identity(folder_of(place, control_file({"pid": 100}, forked), *images))
        inherited = [(r.process, r.sequence, r.start_ns) for r in identity.regions if r.pid == 101]
        assert inherited == [("p0", 1, 5_000)]


def test_records_cut_short_are_counted(tmp_path: Path) -> None:
    torn = bytearray(child(1, 0, 1))
    torn[20] ^= 1
    data = image(MAIN, bytes(torn), child(2, 0, 2))
    identity = read_identity(folder_of(tmp_path, control_file({"pid": 100}), data))
    assert ([t.path for t in identity.threads], identity.lost) == (["0", "0.2"], 1)


GOOD = image(
    record(log.PROCESS, text=b"/bin/app\0app\0x\0"),
    MAIN,
    child(1, 0, 1),
    child(2, 1, 1),
    record(log.ALLOC, 1, a=1, b=0x10010, c=100000, d=0x5010, e=1),
    record(log.ALLOC, 2, a=2, b=0x100000, c=0x20000, d=0x5020, e=3),
    record(log.FREE, 2, a=2, b=0, c=0xFFFFFFFFFFFFFFFF),
    record(log.MODULE, a=1, b=0x4000, e=2, text=b"\xab\xcd/bin/true"),
    record(log.SEGMENT, a=6, b=0x4000, c=0x5000, d=0x1000),
    record(log.AREA, b=0x7000, c=0x10000),
    record(log.MODULE_END, b=0x4000),
    record(log.THREAD_END, 1, b=0x41, time_ns=9_000),
)
CONTROL = control_file({"pid": 100}, {"pid": 101, "parent": 1, "number": 1, "parent_image": 1})


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Some bytes changed, perhaps cut short."""
    changed = bytearray(data)
    for _ in range(draw(st.integers(0, 6))):
        changed[draw(st.integers(0, len(changed) - 1))] = draw(st.integers(0, 255))
    return bytes(changed[: draw(st.integers(0, len(changed)))]) if draw(st.booleans()) else bytes(changed)


@examples(150)
@given(damaged(GOOD), damaged(CONTROL))
def test_damaged_files_never_raise(data: bytes, controls: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        read_identity(folder_of(Path(folder), controls, data))


fields = st.integers(0, (1 << 64) - 1) | st.integers(0, 40)


@examples(80)
@given(
    st.lists(
        st.tuples(st.integers(0, 14), st.integers(0, 4), st.integers(0, 9), fields, fields, fields, fields)
    )
)
def test_records_of_any_content_never_raise(rows: list[tuple[int, ...]]) -> None:
    records = [
        record(kind, thread, b"x" * (kind * 5), a=a, b=b, c=c, d=d, e=e)
        for kind, thread, a, b, c, d, e in rows
    ]
    with tempfile.TemporaryDirectory() as folder:
        identity = read_identity(folder_of(Path(folder), CONTROL, image(*records)))
    for region in identity.regions:
        assert region.start_addr >= 0 and region.bytes > 0 and region.start_addr + region.bytes <= 1 << 64


def test_counts_that_the_file_does_not_hold_are_not_believed(tmp_path: Path) -> None:
    huge = bytearray(image(MAIN))
    huge[48:56] = (1 << 60).to_bytes(8, "little")  # cursor
    controls = bytearray(control_file({"pid": 100}))
    controls[20:24] = (0xFFFFFFFF).to_bytes(4, "little")  # used
    identity = read_identity(folder_of(tmp_path, bytes(controls), bytes(huge)))
    assert [p.process for p in identity.processes] == ["p0"]
    assert len(identity.threads) == 1


def test_an_empty_folder_gives_an_empty_identity(tmp_path: Path) -> None:
    assert read_identity(tmp_path) == read_identity(tmp_path / "none")
    assert read_identity(tmp_path).processes == ()


def test_prepare_keeps_the_environment_and_an_existing_preload(tmp_path: Path) -> None:
    loaded = prepare(tmp_path, {"A": "b", "LD_PRELOAD": "first.so second.so"}, Path(__file__))
    assert loaded["A"] == "b"
    assert loaded["LD_PRELOAD"] == f"{__file__}:first.so second.so"
    assert control.read_control(tmp_path) == []


def test_prepare_loads_from_a_path_that_the_linker_can_read(tmp_path: Path) -> None:
    odd = tmp_path / "with space:and colon"
    odd.mkdir()
    library = odd / "preload.so"
    library.write_bytes(b"")
    workdir = tmp_path / "work"
    workdir.mkdir()
    loaded = Path(prepare(workdir, {}, library)["LD_PRELOAD"])
    assert loaded.parent == workdir.resolve() and loaded.resolve() == library.resolve()
    with pytest.raises(UsageError, match="space"):
        prepare(odd, {}, library)


def test_prepare_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MachineLacksError, match="not built"):
        prepare(tmp_path, {}, tmp_path / "preload.so")
    with pytest.raises(UsageError, match="TMPDIR"):
        prepare(tmp_path / "gone", {}, Path(__file__))


ELF = Path("/bin/true")


@pytest.mark.skipif(not ELF.exists(), reason="no /bin/true to take apart")
@examples(60)
@given(st.data())
def test_damaged_elf_files_have_no_objects_or_some_but_never_raise(data: st.DataObject) -> None:
    changed = data.draw(damaged(ELF.read_bytes()[:8192]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(changed)
        static_objects(str(path))
        build_id_of(str(path))


def test_a_file_that_is_gone_has_no_objects() -> None:
    assert static_objects("/no/such/file") == ()
    assert build_id_of("/no/such/file") == ""
