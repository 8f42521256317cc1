"""Analyzing traces: what counts as communication, whose page is whose, and the commands that show it."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.analyzer import analyze_trace, false_sharing, page_accesses, placement_summary, region_uses
from numaplan.analyzer.samples import trace_samples as samples
from numaplan.common import UsageError
from numaplan.profiler import EVENT_CODE, LEVEL_CODE, Trace
from tests.support.traces import write_trace

Row = tuple[int, int, int, bool, int]  # time, thread, address, write, region
HEAP, STACK, LIBRARY, FILE_A, FILE_B, TEXT = 0x10000, 0x800000, 0x900000, 0xA00000, 0xB00000, 0xC00000
LOCKS, COPIES, OURS = 0xD00000, 0xE00000, 0xF00000
REGIONS = [
    (0, "p0", "heap", "app+0x10", "b", HEAP, 1 << 20, 0, 1, 0, -1),
    (1, "p0", "stack", "0", "b", STACK, 65536, 0, 0, 0, -1),
    (2, "p0", "static", "libgomp.so.1:pool", "g", LIBRARY, 65536, -1, 0, 0, -1),
    (3, "p0", "file", "/data/shared", "", FILE_A, 65536, -1, 0, 0, -1),
    (4, "p0.1", "file", "/data/shared", "", FILE_B, 65536, -1, 0, 0, -1),
    (5, "p0", "text", "libgomp.so.1:.text", "g", TEXT, 65536, -1, 0, 0, -1),
    (6, "p0", "static", "libc.so.6:.data", "c", LOCKS, 65536, -1, 0, 0, -1),
    (7, "p0", "text", "libc.so.6:.text", "c", COPIES, 65536, -1, 0, 0, -1),
    (8, "p0", "other", "preload.so", "", OURS, 65536, -1, 0, 0, -1),
    (9, "p0", "other", "[vdso]", "", OURS + 65536, 65536, -1, 0, 0, -1),
]


def write(
    path: Path,
    rows: Sequence[Row],
    threads: Sequence[tuple[str, str]] = (("p0", "0"), ("p0", "0.1"), ("p0", "0.2")),
    *,
    level: str = "l1",
    event: str = "",
    ip: int = 0,
    meta: dict[str, object] | None = None,
) -> Path:
    columns = [np.array(column) for column in zip(*rows, strict=True)] if rows else [np.zeros(0)] * 5
    time, thread, addr, is_write, region = columns
    kind = np.where(is_write, EVENT_CODE["store"], EVENT_CODE["load"])
    samples = {"time_ns": time, "thread": thread, "addr": addr, "is_write": is_write, "region": region}
    samples |= {"ip": ip, "event": EVENT_CODE[event] if event else kind, "level": LEVEL_CODE[level]}
    numbered = enumerate(threads)
    return write_trace(
        path,
        samples,
        [(i, process, name, 10 + i, 10, "worker", 0, -1) for i, (process, name) in numbered],
        REGIONS,
        {"period": 1, **(meta or {})},
    )


def exchange(addr: int, region: int, one: int = 0, other: int = 1, lines: int = 10) -> list[Row]:
    """`one` writes some lines, then `other` reads them."""
    rows = [(i, one, addr + 64 * i, True, region) for i in range(lines)]
    return rows + [(100 + i, other, addr + 64 * i, False, region) for i in range(lines)]


def comm_of(path: Path) -> np.ndarray:
    with Trace.open(path) as trace:
        return analyze_trace(trace).comm


def test_heap_counts_but_stacks_and_runtimes_do_not(tmp_path: Path) -> None:
    rows = (
        exchange(HEAP, 0) + exchange(STACK, 1) + exchange(LIBRARY, 2, other=2) + exchange(0x5000, -1, 1, 2, 3)
    )
    comm = comm_of(write(tmp_path / "t.db", rows))
    assert comm[0, 1] == comm[1, 0] == 10
    assert comm[0, 2] == 0
    assert comm[1, 2] == 3  # memory of no known region counts


def test_instructions_of_a_waiting_runtime_do_not_count(tmp_path: Path) -> None:
    assert not comm_of(write(tmp_path / "a.db", exchange(HEAP, 0), ip=TEXT + 8)).any()
    assert comm_of(write(tmp_path / "b.db", exchange(HEAP, 0), ip=TEXT - 8)).any()


def test_the_c_librarys_locks_do_not_count_but_what_it_copies_does(tmp_path: Path) -> None:
    rows = exchange(LOCKS, 6) + exchange(HEAP, 0, other=2, lines=4)
    comm = comm_of(write(tmp_path / "t.db", rows, ip=COPIES + 8))
    assert (comm[0, 1], comm[0, 2]) == (0, 4)


def test_one_address_in_two_processes_is_two_pages(tmp_path: Path) -> None:
    processes = [("p0", "0"), ("p0.1", "0")]
    assert not comm_of(write(tmp_path / "a.db", exchange(HEAP, 0), processes)).any()
    mapped = [row for row in exchange(FILE_A, 3) if row[1] == 0]
    mapped += [row for row in exchange(FILE_B, 4) if row[1] == 1]
    assert comm_of(write(tmp_path / "b.db", mapped, processes))[0, 1] == 10


def test_order_of_time_and_not_of_the_file_decides(tmp_path: Path) -> None:
    rows = exchange(HEAP, 0)
    assert comm_of(write(tmp_path / "t.db", rows[::-1]))[0, 1] == 10


def test_a_trace_taken_in_pieces_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    rows = [
        (int(time), int(thread), HEAP + int(addr), bool(is_write), 0)
        for time, thread, addr, is_write in zip(
            rng.integers(0, 10**7, 4000),
            rng.integers(0, 3, 4000),
            rng.integers(0, 65536, 4000),
            rng.random(4000) < 0.5,
            strict=True,
        )
    ]
    path = write(tmp_path / "t.db", rows, meta={"period": 1000})
    with Trace.open(path) as trace:
        whole = analyze_trace(trace)
        monkeypatch.setattr(samples, "PIECE", 300)
        monkeypatch.setattr(samples, "HISTOGRAM", 64)
        limit = trace.rows("SELECT current_setting('memory_limit')")
        pieces = list(samples.TraceSamples(trace).pieces())
        parts = analyze_trace(trace)
        assert trace.rows("SELECT current_setting('memory_limit')") == limit
    assert len(pieces) > 8
    assert sum(len(piece.key) for piece in pieces) == 4000
    assert all((np.diff(piece.time_ns) >= 0).all() for piece in pieces)
    assert np.allclose(whole.comm, parts.comm)
    assert np.array_equal(whole.timeline.per_thread, parts.timeline.per_thread)


def test_time_that_runs_backwards_is_told_and_put_in_order(tmp_path: Path) -> None:
    """Threads may be stored one after another, each in its own order; within one thread time must go on."""
    rows = exchange(HEAP, 0)
    apart = sorted(rows, key=lambda row: -row[1])
    for name, order, told in (("f", rows, False), ("a", apart, False), ("b", rows[::-1], True)):
        with Trace.open(write(tmp_path / f"{name}.db", order)) as trace:
            analysis = analyze_trace(trace)
        assert any("backwards" in note for note in analysis.notes) == told, name
        assert analysis.comm[0, 1] == 10 and analysis.timeline.per_thread.sum() == 20


def test_silent_threads_stay_in_and_are_told(tmp_path: Path) -> None:
    path = write(tmp_path / "t.db", [(5, 0, HEAP, True, 0)])
    with Trace.open(path) as trace:
        analysis = analyze_trace(trace)
    assert analysis.comm.shape == (3, 3) and not analysis.comm.any()
    assert analysis.loads.tolist() == [1, 0, 0]
    assert analysis.confidence == 0
    assert any("no communication was seen" in note for note in analysis.notes)
    assert any("2 of 3 threads have no sample" in note for note in analysis.notes)


def test_misses_of_the_last_cache_make_the_load_where_there_are_enough(tmp_path: Path) -> None:
    rows = [(i * 1000, i % 3, HEAP + 64 * i, False, 0) for i in range(600)]
    loaded = {}
    for name, options in {"l1": {"level": "l1"}, "dram": {"level": "local_dram"}}.items():
        with Trace.open(write(tmp_path / f"{name}.db", rows, **options)) as trace:
            loaded[name] = analyze_trace(trace)
    assert (loaded["l1"].load_source, loaded["dram"].load_source) == ("all", "dram")
    assert loaded["dram"].loads.sum() == pytest.approx(600)
    with Trace.open(write(tmp_path / "e.db", rows, event="llc_miss_remote")) as trace:
        assert analyze_trace(trace).load_source == "dram"


def test_pages_and_regions(tmp_path: Path) -> None:
    rows = [
        (1, 0, HEAP, True, 0),
        (2, 1, HEAP + 8, False, 0),
        (3, 1, HEAP + 16, False, 0),
        (4, 2, HEAP + 4096, True, 0),
        (5, 2, HEAP + 4096, True, 0),
        (6, 0, STACK, True, 1),
    ]
    with Trace.open(write(tmp_path / "t.db", rows)) as trace:
        pages = page_accesses(trace)
        regions = region_uses(trace, pages)
    table = list(zip(pages.region, pages.page, pages.thread, pages.accesses, pages.writes, strict=True))
    assert table == [(0, 0, 0, 1, 1), (0, 0, 1, 2, 0), (0, 1, 2, 2, 2)]
    (use,) = regions
    assert (use.kind, use.samples, use.writes, use.sharers, use.writers) == ("heap", 5, 3, 3, 2)
    assert (use.first_toucher, use.shared_writes, use.foreign_first) == (0, 3 / 5, 3 / 5)


def test_a_region_that_cannot_be_is_none(tmp_path: Path) -> None:
    rows = [
        (1, 0, HEAP, True, 0),
        (2, 1, HEAP + 8, False, 0),
        (3, 1, HEAP, True, -7),
        (4, 0, HEAP, True, 1 << 30),
    ]
    with Trace.open(write(tmp_path / "t.db", rows)) as trace:
        assert analyze_trace(trace).comm.sum() > 0
        (use,) = region_uses(trace, page_accesses(trace))
    assert use.samples == 2


def test_of_a_region_without_an_access_nothing_is_told(tmp_path: Path) -> None:
    with Trace.open(write(tmp_path / "t.db", [(1, 0, HEAP, True, 0)])) as trace:
        pages = page_accesses(trace)
        assert region_uses(trace, replace(pages, accesses=0 * pages.accesses)) == []


def test_our_own_librarys_memory_is_not_shown(tmp_path: Path) -> None:
    rows = [(1, 0, HEAP, True, 0), (2, 1, OURS, True, 8), (3, 1, OURS + 65536, False, 9)]
    with Trace.open(write(tmp_path / "t.db", rows)) as trace:
        regions = region_uses(trace, page_accesses(trace))
    assert [use.title for use in regions] == ["heap app+0x10", "other [vdso]"]


def test_pages_count_samples_by_the_period_of_their_event(tmp_path: Path) -> None:
    """Thread 1 reads most by samples, but a write of thread 0 stands for four times as many accesses."""
    rows = [(5, 0, HEAP, True, 0)] + [(9 + i, 1, HEAP + 8, False, 0) for i in range(3)]
    meta = {"periods": '{"load": 1000, "store": 4000}'}
    with Trace.open(write(tmp_path / "t.db", rows, meta=meta)) as trace:
        pages = page_accesses(trace)
        (use,) = region_uses(trace, pages)
    assert (pages.accesses.tolist(), pages.writes.tolist()) == ([4, 3], [4, 0])
    assert (use.samples, use.writes, use.main_thread) == (7, 4, 0)
    assert use.main_share == pytest.approx(4 / 7)
    with Trace.open(write(tmp_path / "u.db", rows, meta={"period": 1000})) as trace:
        pages = page_accesses(trace)
        (use,) = region_uses(trace, pages)
    assert (pages.accesses.tolist(), use.samples, use.main_thread) == ([1, 3], 4, 1)


def interleaved(line: int, words: dict[int, int], rounds: int = 40) -> list[Row]:
    """Threads that read and write one word each of a line, in turn; words: offset of each thread."""
    return [
        (1000 + number, thread, line + words[thread], number % 2 == 0, 0)
        for number, thread in enumerate(list(words) * rounds)
    ]


def test_false_sharing_is_told_from_true_sharing(tmp_path: Path) -> None:
    start = [(i, 0, HEAP + i, True, 0) for i in range(0, 64, 4)]  # thread 0 initialises the whole line
    false = interleaved(HEAP, {0: 0, 1: 8, 2: 16}, 400)
    true = interleaved(HEAP + 128, {0: 8, 1: 8})
    mixed = interleaved(HEAP + 256, {0: 0, 1: 8}) + interleaved(HEAP + 256, {0: 8, 1: 0})
    private = [(i, 2, HEAP + 384 + i % 64, True, 0) for i in range(200)]
    path = write(tmp_path / "t.db", start + false + true + mixed + private)
    with Trace.open(path) as trace:
        (line,) = false_sharing(trace)
        said = placement_summary(analyze_trace(trace), region_uses(trace, page_accesses(trace)), [line])
    assert (line.region, line.offset, line.threads) == (0, 0, [0, 1, 2])
    assert line.samples == len(start) + len(false)
    assert any(
        "false sharing: 1 cache line" in sentence and "offset 0 of heap" in sentence for sentence in said
    )


def test_lines_with_few_samples_each_are_judged_together(tmp_path: Path) -> None:
    """64 lines of a page: two threads have a word each in every line; both use both; or they only read."""
    rng = np.random.default_rng(4)
    rows = []
    for number in range(800):
        line, thread = int(rng.integers(0, 64)), int(rng.integers(0, 2))
        any_word = 8 * int(rng.integers(0, 2))
        rows += [
            (number, thread, HEAP + 64 * line + 8 * thread, number % 2 == 0, 0),
            (number, thread, HEAP + 8192 + 64 * line + any_word, number % 2 == 0, 0),
            (number, thread, HEAP + 16384 + 64 * line + 8 * thread, False, 0),
            (number, thread, HEAP + 24576 + 2048 * thread + 32 * line, True, 0),
        ]
    with Trace.open(write(tmp_path / "t.db", rows)) as trace:
        (found,) = [lines for lines in false_sharing(trace) if lines.lines > 1]
        assert all(lines.offset < 4096 for lines in false_sharing(trace))
    assert (found.region, found.offset, found.threads) == (0, 0, [0, 1])
    assert found.lines > 60 and found.samples > 780


def test_few_samples_are_no_evidence_of_false_sharing(tmp_path: Path) -> None:
    rows = interleaved(HEAP, {0: 0, 1: 8}, 4)
    reads = [
        (time, thread, addr + 64, False, 0) for time, thread, addr, _, _ in interleaved(HEAP, {0: 0, 1: 8})
    ]
    with Trace.open(write(tmp_path / "t.db", rows + reads)) as trace:
        assert false_sharing(trace) == []


def test_a_trace_without_samples_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "t.db", [])
    with Trace.open(path) as trace, pytest.raises(UsageError, match="no sample belongs to a thread"):
        analyze_trace(trace)
