"""Who uses which page is counted, each access."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from numaplan.analyzer import TraceSamples, count_pages
from numaplan.launcher import include_folder
from numaplan.profiler import Trace
from tests.support.emulating import MARKS, record
from tests.support.programs import OPTIMISED, PROGRAMS, compiled

pytestmark = MARKS
ROUNDS = 7
FILLED, PAGES = 0x500000000000, 64  # of filled_pages.c


@pytest.fixture(scope="module")
def program() -> Path:
    return compiled(PROGRAMS / "recording/exchanged_lines.c", flags=(*OPTIMISED, "-D_GNU_SOURCE"))


@pytest.mark.parametrize("options", [("--period", "10"), ("--period", "500"), ("--no-cache",)])
def test_each_page_is_counted_whatever_the_period(
    program: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = record(program, tmp_path / "t.db", f"pairs {ROUNDS}", *options)
    with Trace.open(path) as trace:
        rows = trace.rows(
            "SELECT (p.addr - r.start_addr) // 4096, p.thread, sum(loads), sum(stores) FROM page_use p "
            "JOIN regions r USING (region) WHERE r.name LIKE '%:lines' GROUP BY ALL"
        )
        counts = count_pages(trace, TraceSamples(trace), ("static",))
        missed = trace.rows("SELECT min(missed) FROM page_use")[0]
    found = {(int(page), int(thread)): (int(loads), int(stores)) for page, thread, loads, stores in rows}
    for page in range(15):  # of the first pair's, whole ones; 64 lines are a page, of which 500 are read
        read = min(64, max(0, 500 - 64 * page)) * ROUNDS
        assert found[page, 1] == (0, 64 * ROUNDS)
        assert found.get((page, 2), (0, 0)) == (read, 0)
    assert counts.exact and counts.period == 1
    assert (missed[0] < 0) == ("--no-cache" in options)
    users = counts.thread[(counts.page == 9) & (counts.accesses > 400)]
    assert set(users.tolist()) == {1}


def test_memory_that_is_mapped_anew_is_touched_first_anew(program: Path, tmp_path: Path) -> None:
    path = record(program, tmp_path / "t.db", "again 5", "--period", "10")
    with Trace.open(path) as trace:
        rows = trace.rows(
            "SELECT first_ns, thread, region, sum(stores) FROM page_use WHERE addr = "
            f"{0x500000000000} GROUP BY ALL ORDER BY first_ns"
        )
        lives = {row.region: (row.start_ns, row.end_ns) for row in trace.region_rows}
    assert [row[1] for row in rows] == [1, 2, 3, 4, 5]
    assert len({row[2] for row in rows}) == 5
    assert all(lives[region][0] <= first for first, _, region, _ in rows)


@pytest.fixture(scope="module")
def filled() -> Path:
    return compiled(PROGRAMS / "recording/filled_pages.c", flags=(*OPTIMISED, "-D_GNU_SOURCE"))


WHOLE = ("read", "pread", "recv", "readv", "preadv", "preadv2", "recvmsg", "many", "longer")


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--no-cache",)])
@pytest.mark.parametrize(
    ("call", "pages"),
    [(call, PAGES) for call in WHOLE] + [("half", PAGES // 2), ("write", 0), ("refused", 0)],
)
def test_who_lets_the_kernel_fill_a_page_touches_it(
    filled: Path, tmp_path: Path, call: str, pages: int, options: tuple[str, ...]
) -> None:
    """A page of a buffer that one thread reads a file into is where that one is; no access is counted."""
    path = record(filled, tmp_path / "t.db", call, "--period", "10", *options)
    with Trace.open(path) as trace:
        rows = trace.rows(
            f"SELECT (addr - {FILLED}) // 4096 AS page, arg_min(thread, first_ns), sum(loads), sum(stores) "
            f"FROM page_use WHERE addr >= {FILLED} AND addr < {FILLED + (2 * PAGES << 12)} "
            "GROUP BY page ORDER BY page"
        )
        counts = count_pages(trace, TraceSamples(trace), ("mmap",))
    touchers = [0] * pages + [1] * (PAGES - pages)
    assert rows == [(page, toucher, 128, 0) for page, toucher in enumerate(touchers)]
    used = (counts.thread == 1) & (counts.accesses >= 128)
    assert counts.toucher is not None and counts.toucher[used].tolist() == touchers


def small_caches(folder: Path) -> Path:
    """Two nodes whose caches hold an eighth of what is filled."""
    caches = [
        {"level": level, "bytes": size << 10, "ways": 8, "inclusive": True, "cpus": [[0], [1]]}
        for level, size in ((1, 4), (2, 16), (3, 32))
    ]
    nodes = [{"id": node, "cpus": [node]} for node in range(2)]
    path = folder / "machine.json"
    path.write_text(json.dumps({"schema": "numaplan/machine/1", "nodes": nodes, "caches": caches}))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("option", ["page_use=on", "page_use=off", "schedule=free"])
@pytest.mark.parametrize(("call", "level"), [("read", "remote_dram"), ("write", "local_dram")])
def test_a_page_that_is_filled_is_of_the_node_of_who_made_the_call(
    filled: Path, tmp_path: Path, call: str, level: str, option: str
) -> None:
    options = ("--machine", str(small_caches(tmp_path)), "--period", "1", "--set", option)
    path = record(filled, tmp_path / "t.db", call, *options)
    with Trace.open(path) as trace:
        levels = trace.rows(
            f"SELECT DISTINCT level FROM samples WHERE thread = 1 AND level LIKE '%dram' "
            f"AND addr >= {FILLED} AND addr < {FILLED + (PAGES << 12)}"
        )
    assert levels == [(level,)]


@pytest.mark.skipif(shutil.which("qemu-i386") is None, reason="qemu-i386 is not installed")
def test_a_program_of_32_bits_has_its_upper_memory_filled(tmp_path: Path) -> None:
    """Addresses from 2 GiB on are not extended in sign."""
    program = compiled(
        PROGRAMS / "recording/filled_upper.c", flags=("-m32", "-O1", "-nostdlib", "-static", "-no-pie")
    )
    path = record(program, tmp_path / "t.db", "", "--period", "1")
    with Trace.open(path) as trace:
        rows = trace.rows(
            "SELECT addr, thread, loads, stores FROM page_use WHERE loads + stores = 0 ORDER BY addr"
        )
    assert rows == [(0xB0000000 + 4096 * page, 0, 0, 0) for page in range(4)]


def test_what_was_before_the_threads_stands_apart(program: Path, tmp_path: Path) -> None:
    path = record(program, tmp_path / "t.db", "readers 3", "--period", "10")
    with Trace.open(path) as trace:
        found = count_pages(trace, TraceSamples(trace), ("static",))
        (lines,) = (row.region for row in trace.region_rows if row.name.endswith(":lines"))
    assert found.before is not None and found.toucher is not None
    own = (found.region == lines) & (found.page == 0)
    by_thread = np.bincount(found.thread[own], found.accesses[own], 4)
    assert by_thread.tolist() == [0, 128, 128, 128]
    assert found.before[own].sum() == 64 and set(found.toucher[own].tolist()) == {0}


def test_without_turns_or_on_demand_nothing_is_counted(program: Path, tmp_path: Path) -> None:
    for number, option in enumerate(("schedule=free", "page_use=off")):
        path = record(program, tmp_path / f"{number}.db", "pairs 2", "--period", "10", "--set", option)
        with Trace.open(path) as trace:
            assert "page_use" not in trace.meta and not trace.rows("SELECT * FROM page_use")
            assert not count_pages(trace, TraceSamples(trace), ("static",)).exact


@pytest.mark.parametrize(("mode", "by_main"), [("alone", True), ("later", True), ("own", False)])
def test_who_filled_memory_before_the_part_has_touched_it_first(
    mode: str, by_main: bool, tmp_path: Path
) -> None:
    program = compiled(
        PROGRAMS / "recording/touched_before.c", flags=(*OPTIMISED, "-pthread", f"-I{include_folder()}")
    )
    path = record(program, tmp_path / "t.db", mode, "--period", "7", "--marked")
    with Trace.open(path) as trace:
        found = count_pages(trace, TraceSamples(trace), ("mmap",))
        lane = {row.thread: row.path for row in trace.thread_rows}
    used = found.accesses > 0
    assert found.toucher is not None and used.sum() == 4 * 256
    pairs = zip(found.thread[used].tolist(), found.toucher[used].tolist(), strict=True)
    users = [f"0.{number}" for number in range(1, 5)]
    assert {(lane[user], lane[first]) for user, first in pairs} == {
        (user, "0" if by_main else user) for user in users
    }
