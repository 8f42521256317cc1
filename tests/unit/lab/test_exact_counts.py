"""What the plugin counted of all accesses, made the program's; and the list of runtimes' code for it."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from numaplan.common import native_part
from numaplan.lab.recording.blocks import Makers
from numaplan.lab.recording.clocks import AccessLine, GuestClock
from numaplan.lab.recording.exact import (
    NODE_SHIFT,
    REMOTE_SHIFT,
    RUNNING_FILE,
    TRANSFERS_FILE,
    USES_FILE,
    WHO,
    WHO_FILE,
    ExactCounts,
)
from numaplan.lab.recording.runtime import PAGE, PIECE, pieces_of, write_runtimes
from numaplan.lab.runs.tasks import Task
from numaplan.profiler import THREAD_RECORD, ProcessSpool

HEADER, USED = 1 << 63, 1 << 62
# An app (10) that was the agent's child until 15, its thread (11), its child (20); another's task.
TASKS = [
    Task(10, 1, False, "app", 0x1000, 10, process="p0", path="0"),
    Task(11, 10, True, "app", 0x1100, 20, process="p0", path="0.1"),
    Task(20, 10, False, "app", 0x2000, 30, process="p0.1", path="0"),
    Task(7, 1, False, "sampler", 0x7000, 5),
]
PEOPLE = [(0x1000, 12), (0x1000, 16), (0x1100, 22), (0x2000, 33), (0x7000, 6), (0x9999, 9)]
AGENT, MAIN, THREAD, CHILD, SAMPLER, UNKNOWN = range(len(PEOPLE))


def image(pid: int, start: int) -> ProcessSpool:
    return ProcessSpool(Path(), pid, start, 0, np.zeros(0, THREAD_RECORD))


def counts_of(folder: Path, sided: bool = True) -> ExactCounts:
    np.array(PEOPLE, WHO).tofile(folder / WHO_FILE)
    images = [image(10, 10), image(10, 15), image(20, 30)]
    makers = Makers(TASKS, TASKS[:3], images, GuestClock(((0, 0), (100, 100))))
    line = AccessLine(np.arange(100, dtype=np.int64), 10, 1000)  # ten accesses a ns

    def keep(process: ProcessSpool, _ip: np.ndarray, addr: np.ndarray) -> np.ndarray | None:
        return None if process.pid == 20 else addr != 0x66000

    node_ids = np.array([7, 9, *[-1] * 254], np.int32)
    return ExactCounts(folder, makers, line, 60, keep, node_ids, sided)


def test_lines_taken_within_and_between_processes(tmp_path: Path) -> None:
    def entry(page: int, writer: int, reader: int, events: int) -> tuple[int, int]:
        return USED | page, writer << 48 | reader << 32 | events

    words = [
        (HEADER, 20),
        entry(0x10, MAIN, THREAD, 3),
        entry(0x20, MAIN, CHILD, 4),
        entry(0x66, MAIN, THREAD, 100),  # our library's memory
        entry(0x10, AGENT, THREAD, 100),
        entry(0x10, MAIN, SAMPLER, 100),
        entry(0x10, UNKNOWN, MAIN, 100),
        entry(0x10, 60_000, MAIN, 100),
        (HEADER, 40),
        entry(0x30, CHILD, MAIN, 5),
        (0, 0),
    ]
    np.array(words, np.uint64).tofile(tmp_path / TRANSFERS_FILE)
    found = [
        (
            b.pid,
            b.start_ns,
            b.end_ns,
            b.addr.tolist(),
            b.writer.tolist(),
            b.reader.tolist(),
            b.events.tolist(),
        )
        for b in counts_of(tmp_path).transfers()
    ]
    assert found == [
        (10, 200, 400, [0x10000], [10], [11], [3]),
        (20, 200, 400, [0x20000], [10], [20], [4]),
        (10, 400, 600, [0x30000], [20], [10], [5]),
    ]


def test_who_had_a_cpu(tmp_path: Path) -> None:
    def look(*who: int) -> list[int]:  # numbers from 1 on
        return [one + 1 for one in who] + [0] * (len(who) % 2)

    words = [
        HEADER,
        20,
        *look(MAIN, SAMPLER, THREAD),
        HEADER,
        30,
        *look(CHILD),
        HEADER,
        40,
        *look(AGENT, 60_000),
    ]
    np.array(words, np.uint64).tofile(tmp_path / RUNNING_FILE)
    (found,) = counts_of(tmp_path).running()
    assert (found.time_ns.tolist(), found.tid.tolist()) == ([200, 200, 300], [10, 11, 20])
    assert found.alive_ns.tolist() == [160, 220, 330]


def test_of_looks_between_which_nothing_is_accessed_the_first_counts(tmp_path: Path) -> None:
    words = [HEADER, 200, MAIN + 1, 0, HEADER, 300, THREAD + 1, 0]  # after the last access
    np.array(words, np.uint64).tofile(tmp_path / RUNNING_FILE)
    (found,) = counts_of(tmp_path).running()
    assert found.tid.tolist() == [10]


def test_nobody_was_looked_at(tmp_path: Path) -> None:
    (found,) = counts_of(tmp_path).running()
    assert len(found) == 0


@pytest.mark.parametrize("missed", [True, False])
def test_pages_by_thread(tmp_path: Path, missed: bool) -> None:
    def use(page: int, node: int, who: int, *counts: int) -> tuple[int, ...]:
        page |= (node == 0) << REMOTE_SHIFT
        return USED | (page | node << NODE_SHIFT) << 16 | who, *counts

    rows = [
        (HEADER, 20, 0, 0, 0),
        use(0x7FFFFFFFF, 1, THREAD, 5, 6, 2, 0),
        use(0x10, 0, CHILD, 7, 0, 0, 0),
        use(0x66, 0, MAIN, 9, 9, 9, 0),
        use(0x10, 64, SAMPLER, 9, 9, 9, 0),
        use(0x10, 0, AGENT, 9, 9, 9, 0),
        (0, 0, 0, 0, 0),
    ]
    layout = [("key", "<u8"), ("loads", "<u8"), ("stores", "<u8"), ("missed", "<u4"), ("began", "<u4")]
    np.array(rows, layout).tofile(tmp_path / USES_FILE)
    blocks = list(counts_of(tmp_path).page_use(missed))
    assert [
        (b.node.tolist(), b.local.tolist()) for b in blocks if b.node is not None and b.local is not None
    ] == [
        ([9], [1]),
        ([7], [0]),
    ]
    for block in counts_of(tmp_path, sided=False).page_use(missed):
        assert block.local is not None and block.local.tolist() == [-1]
    assert [(b.pid, b.addr.tolist(), b.tid.tolist()) for b in blocks] == [
        (10, [0x7FFFFFFFF000], [11]),
        (20, [0x10000], [20]),
    ]
    first = blocks[0]
    assert (first.start_ns.tolist(), first.end_ns.tolist(), first.first_ns.tolist()) == ([200], [600], [200])
    assert (first.loads.tolist(), first.stores.tolist()) == ([5], [6])
    assert (first.missed.tolist(), first.alive_ns.tolist()) == ([2 if missed else -1], [220])


def test_a_run_without_counts_has_none(tmp_path: Path) -> None:
    counts = counts_of(tmp_path)
    assert not list(counts.transfers()) and not list(counts.page_use(True))


def sum_of(page: bytes) -> int:
    """As the plugin adds them up."""
    total = 0
    for at in range(0, PAGE, 8):
        total = (total + int.from_bytes(page[at : at + 8], "little")) * 0x9E3779B97F4A7C15 % (1 << 64)
    return total


def test_our_library_is_listed_whole() -> None:
    library = native_part("profiler", "preload.so")
    found = pieces_of(library)
    data = library.read_bytes()
    sums = {sum_of(data[at : at + PAGE].ljust(PAGE, b"\0")): at for at in range(0, len(data), PAGE)}
    listed = {sums[int(piece["sum"])]: (int(piece["from"]), int(piece["to"])) for piece in found}
    pages = sorted(listed)
    assert pages == list(range(pages[0], pages[0] + len(pages) * PAGE, PAGE))
    assert all(listed[page] == (0, PAGE) for page in pages[1:-1])


def test_of_libc_only_what_threads_need(tmp_path: Path) -> None:
    write_runtimes(tmp_path / "runtimes", "/bin/sh", {})
    pieces = np.fromfile(tmp_path / "runtimes", PIECE)
    assert len(pieces) > 50 and (np.diff(pieces["sum"].astype(object)) >= 0).all()
    assert ((pieces["to"] > pieces["from"]) & (pieces["to"] <= PAGE)).all()
    loaded = subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=True).stdout
    path = next(word for word in loaded.split() if word.startswith("/") and "/libc.so" in word)
    libc = pieces_of(Path(path))
    assert 0 < int((libc["to"] - libc["from"]).sum()) < Path(path).stat().st_size / 4
    assert set(libc["sum"].tolist()) <= set(pieces["sum"].tolist())


def test_no_runtime_is_listed_for_a_program_of_its_own(tmp_path: Path) -> None:
    assert not len(pieces_of(Path("/bin/sh")))
    (tmp_path / "libgomp.so.1").write_bytes(b"no library")
    assert not len(pieces_of(tmp_path / "libgomp.so.1"))
