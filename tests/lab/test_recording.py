"""`nprof record --backend lab`: what a program does in the guest, beside its emulated recording."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from numaplan.analyzer import analyze_trace, counter_totals
from numaplan.analyzer.summary import placement_summary
from numaplan.machine import Machine
from numaplan.profiler import Trace
from numaplan.profiler.backends.choice import backend_of
from tests.support.commands import one_line_error, run
from tests.support.guests import guest_program

pytestmark = pytest.mark.lab
LIMIT_S = 900.0
ACCESSES, FIRST_WRITES = 300_000, 1024  # of known.c
BASE = 0x200000000000  # of the areas of recorded_part.c
FILLED, FILLED_PAGES = 0x500000000000, 64  # of filled_pages.c

OF_REGIONS = (
    "SELECT {what} FROM samples s JOIN threads t ON s.thread = t.thread JOIN regions r USING (region) "
    "WHERE r.kind IN ('heap', 'mmap') GROUP BY ALL"
)
THREAD, REGION = "t.process, t.path", "r.kind, r.name, r.sequence, r.bytes"
TAKEN = (
    "SELECT w.process, w.path, t.process, t.path, sum(events) FROM transfers x "
    "JOIN threads t ON x.reader = t.thread JOIN threads w ON x.writer = w.thread "
    "JOIN regions r USING (region) WHERE {where} GROUP BY ALL"
)
USED = (
    "SELECT t.process, t.path, sum(loads), sum(stores) FROM page_use u "
    "JOIN threads t USING (thread) JOIN regions r USING (region) WHERE {where} GROUP BY ALL"
)


@pytest.fixture(scope="module")
def recorded(lab: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:  # noqa: ARG001
    """All accesses of two programs of a shell: one with threads, one of processes that share memory."""
    folder = tmp_path_factory.mktemp("recorded")

    def by(backend: str) -> Path:
        trace = folder / f"{backend}.db"
        # On one cpu parent and child find each other's lines in its caches, and yet are two.
        on = "taskset -c 1" if backend == "lab" else ""
        script = f"{guest_program('stencil')} 4 512 20 && {on} {guest_program('handover')}"
        if not trace.exists():
            words = ("--backend", backend, "--period", "1", "--machine", "2x2", "-o", trace)
            result = run("nprof", "record", *words, "--", "sh", "-c", script, timeout=LIMIT_S)
            assert result.returncode == 0 and b"checksum 3630158.581054" in result.stdout, result.stderr
        return trace

    return by


def asked(trace: Trace, what: str) -> list[tuple[Any, ...]]:
    return sorted(trace.rows(OF_REGIONS.format(what=what)))


@pytest.mark.slow
def test_agrees_with_an_emulated_recording(recorded: Callable[[str], Path]) -> None:
    capability = backend_of("emulate").available(Machine.load("2x2"))
    if not capability.ok:
        pytest.skip(capability.reason)
    with Trace.open(recorded("emulate")) as emulated, Trace.open(recorded("lab")) as ours:
        names = [[(row.process, row.path, row.name) for row in one.thread_rows] for one in (emulated, ours)]
        assert names[0] == names[1]
        counts, pages = (
            f"{THREAD}, {REGION}, s.is_write, count(*)",
            f"{THREAD}, {REGION}, (s.addr - r.start_addr) // 4096, count(*)",
        )
        for what in (counts, pages):
            assert asked(ours, what) == asked(emulated, what) != []
        first, second = (analyze_trace(one).comm for one in (emulated, ours))
    stencil = [place for place, (process, *_) in enumerate(names[0]) if process == "p0.1"]
    there, here = (matrix[np.ix_(stencil, stencil)] for matrix in (first, second))
    assert np.corrcoef(there.ravel(), here.ravel())[0, 1] > 0.98


# The program's data: large blocks, and the heap of small ones, where threads also look at their barrier.
LARGE = "r.kind IN ('heap', 'mmap')"
SMALL = "(r.kind = 'small' AND r.bytes BETWEEN 100000 AND 1000000)"


@pytest.mark.parametrize(("memory", "share"), [(LARGE, 0.0), (SMALL, 0.01)])
def test_counts_are_those_of_an_emulated_recording(
    recorded: Callable[[str], Path], memory: str, share: float
) -> None:
    capability = backend_of("emulate").available(Machine.load("2x2"))
    if not capability.ok:
        pytest.skip(capability.reason)
    where = f"{memory} AND t.process <> 'p0'"
    taken: list[dict[Any, Any]] = []
    used: list[dict[Any, Any]] = []
    for backend in ("emulate", "lab"):
        with Trace.open(recorded(backend)) as trace:
            within = TAKEN.format(where=f"{where} AND w.process = t.process")
            taken.append({row[:-1]: row[-1] for row in trace.rows(within)})
            used.append({row[:2]: row[2:] for row in trace.rows(USED.format(where=where))})
    pairs = [pair for pair in taken[0] if taken[0][pair] > 100]
    assert [taken[1][pair] for pair in pairs] == pytest.approx([taken[0][pair] for pair in pairs], rel=share)
    assert used[1].keys() == used[0].keys()
    for thread, counted in used[0].items():
        assert used[1][thread] == pytest.approx(counted, rel=share)


@pytest.fixture(scope="module")
def counted(lab: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001
    """Threads that share cpus, memory that is given back and mapped anew, processes that share it, one
    node's memory used from each of two, and what the kernel reads for threads."""
    program, known = guest_program("recording/exchanged_lines"), guest_program("known")
    trace = tmp_path_factory.mktemp("counted") / "t.db"
    script = f"{program} pairs 7; {program} readers 40; {program} again 5; {program} child; "
    script += f"{known} 0 1 {ACCESSES}; {known} 1 1 {ACCESSES}; {program} filled 3; "
    script += f"{guest_program('recording/filled_pages')} read"
    words = ("--backend", "lab", "--machine", "2x1", "--period", "100", "-o", trace)
    result = run("nprof", "record", *words, "--", "sh", "-c", script, timeout=LIMIT_S)
    assert result.returncode == 0, result.stderr
    return trace


@pytest.mark.slow
def test_lines_that_are_taken_are_counted_each_one(counted: Path) -> None:
    with Trace.open(counted) as trace:
        lines = trace.rows(TAKEN.format(where="r.name LIKE '%:lines'"))
        again = trace.rows(TAKEN.format(where="t.process = 'p0.3' AND r.kind = 'mmap'"))
    expected = {("p0.1", "0.1", "p0.1", "0.2"): 3500, ("p0.1", "0.3", "p0.1", "0.4"): 7000}
    expected |= {("p0.2", "0", "p0.2", f"0.{number}"): 100 for number in range(1, 41)}
    expected |= {
        ("p0.4", "0.1", *reader): 50 for reader in (("p0.4", "0"), ("p0.4.1", "0"), ("p0.4.1", "0.1"))
    }
    expected |= {("p0.7", "0", "p0.7", f"0.{number}"): 200 for number in (1, 2, 3)}
    assert {row[:-1]: int(row[-1]) for row in lines} == expected
    assert again == []


def test_who_lets_the_kernel_fill_a_page_touches_it(counted: Path) -> None:
    with Trace.open(counted) as trace:
        rows = trace.rows(
            "SELECT arg_min(t.path, first_ns), sum(loads), sum(stores) FROM page_use u "
            "JOIN threads t USING (thread) WHERE t.process = 'p0.8' "
            f"AND addr >= {FILLED} AND addr < {FILLED + (FILLED_PAGES << 12)} GROUP BY addr"
        )
    assert rows == [("0", 128, 0)] * FILLED_PAGES


def test_processes_share_memory(recorded: Callable[[str], Path]) -> None:
    """Parent and child change 1,024 lines in turns, and as many of their own at one address."""
    with Trace.open(recorded("lab")) as trace:
        found = analyze_trace(trace)
        place = {row.process: row.thread for row in trace.thread_rows if row.path == "0"}
        rows = trace.rows(
            "SELECT r.kind, count(DISTINCT s.phys_addr // 4096) FROM samples s JOIN regions r USING (region) "
            "JOIN threads t ON s.thread = t.thread WHERE t.process IN ('p0.2', 'p0.2.1') "
            "AND r.name LIKE 'handover+%' GROUP BY ALL ORDER BY ALL"
        )
        nodes = trace.meta["node_memory"]
        shared = trace.rows(TAKEN.format(where="r.kind = 'mmap' AND t.process LIKE 'p0.2%'"))
    assert sorted(row[2:] for row in shared) == [("p0.2", "0", 9 * 1024), ("p0.2.1", "0", 10 * 1024)]
    # And what the child reads once of what was its parent's when it was forked.
    assert 19 * 1024 <= found.comm[place["p0.2"], place["p0.2.1"]] < 21 * 1024
    assert found.confidence == 1.0
    # 64 KiB each, on 17 pages where they begin within one; only those of the heap are twice there.
    assert [(kind, pages in (16, 17) if kind == "mmap" else pages > 30) for kind, pages in rows] == [
        ("heap", True),
        ("mmap", True),
    ]
    assert [piece.split(":")[0] for piece in nodes.split(",")] == ["0", "1"]


def test_who_has_a_cpu_is_looked_at(recorded: Callable[[str], Path]) -> None:
    """The stencil's threads at once; parent and child of the other program in turns."""
    with Trace.open(recorded("lab")) as trace:
        rows = trace.rows(
            "SELECT time_ns, count(DISTINCT t.thread), list_sort(list(DISTINCT t.process)) FROM running r "
            "JOIN threads t USING (thread) WHERE t.process IN ('p0.1', 'p0.2', 'p0.2.1') GROUP BY ALL"
        )
    assert max(count for _, count, processes in rows if processes == ["p0.1"]) == 4
    others = [processes for _, _, processes in rows if "p0.1" not in processes]
    assert ["p0.2"] in others and ["p0.2.1"] in others


@pytest.mark.slow
def test_who_waits_for_a_cpu_could_run(lab: Path, tmp_path: Path) -> None:  # noqa: ARG001
    trace, program = tmp_path / "t.db", guest_program("stencil")
    words = ("--backend", "lab", "--period", "100", "--machine", "2x2", "-o", trace)
    team = ("taskset", "-c", "1", program, "4", "512", "400")
    result = run("nprof", "record", *words, "--skip", "1M", "--", *team, timeout=LIMIT_S)
    assert result.returncode == 0, result.stderr
    with Trace.open(trace) as opened:
        at_once = [
            int(count) for _, count in opened.rows("SELECT time_ns, count(*) FROM running GROUP BY ALL")
        ]
        cpus = opened.rows("SELECT DISTINCT cpu FROM samples")
        ((first, last),) = opened.rows("SELECT min(time_ns), max(time_ns) FROM running")
        length = int(opened.meta["duration_ns"])
    assert cpus == [(1,)] and max(at_once) == 4
    assert 0 <= first < last <= length


def test_counts_and_levels_are_those_of_all_accesses(recorded: Callable[[str], Path]) -> None:
    with Trace.open(recorded("lab")) as trace:
        totals = trace.rows("SELECT event, sum(value) FROM counters GROUP BY ALL")
        counted = {event: int(value) for event, value in totals}
        levels = {str(row[0]) for row in trace.rows("SELECT DISTINCT level FROM samples")}
        assert trace.meta["backend"] == "lab" and trace.meta["clock"] == "accesses"
        assert counted["loads"] + counted["stores"] >= trace.sample_count > 900_000
        assert trace.rows("SELECT count(*) FROM samples WHERE phys_addr = 0 OR node < 0") == [(0,)]
    assert counted["coherence"] > 10_000 and counted["llc_misses_at_64K"] > counted["llc_misses_at_32M"] > 0
    assert levels >= {"l1", "l2", "l3", "local_dram"} and "unknown" not in levels


def test_where_pages_were_is_counted_exactly(counted: Path) -> None:
    with Trace.open(counted) as trace:
        known = trace.rows(
            "SELECT t.process, u.node, u.local, sum(loads + stores) FROM page_use u JOIN threads t "
            "USING (thread) JOIN regions r USING (region) WHERE t.process IN ('p0.5', 'p0.6') "
            "AND r.kind = 'mmap' GROUP BY ALL ORDER BY ALL"
        )
        ((made, near),) = trace.rows(
            "SELECT sum(loads + stores), sum(local * (loads + stores)) FROM page_use"
        )
        found = analyze_trace(trace)
    assert known == [("p0.5", 1, 0, ACCESSES + FIRST_WRITES), ("p0.6", 1, 1, ACCESSES + FIRST_WRITES)]
    assert found.local is not None and found.local.accesses == pytest.approx(near / made)
    assert any("as the program ran" in one for one in placement_summary(found, []))


@pytest.mark.slow
def test_only_what_is_asked_for(lab: Path, tmp_path: Path) -> None:  # noqa: ARG001
    """Without caches, and the first half of the accesses left out; the program's end is its own."""
    words = ("--backend", "lab", "--machine", "1x2", "--no-cache", "--skip", "400K", "--period", "100")
    script = f"{guest_program('handover')}; exit 3"
    trace = tmp_path / "t.db"
    result = run("nprof", "record", *words, "-o", trace, "--", "sh", "-c", script, timeout=LIMIT_S)
    assert result.returncode == 3, result.stderr
    with Trace.open(trace) as found:
        assert 3_000 < found.sample_count < 6_000
        assert found.meta["skipped"] == "400000 accesses"
        assert found.rows("SELECT DISTINCT level FROM samples") == [("unknown",)]


@pytest.mark.slow
def test_what_threads_with_one_cache_would_ask_for_if_each_had_its_own(lab: Path, tmp_path: Path) -> None:  # noqa: ARG001
    """One reads each time what the other wrote, who then writes what the first has."""
    lines, rounds, trace = 1 << 17, 2, tmp_path / "t.db"
    words = ("--backend", "lab", "--machine", "1x2", "--period", "1000", "-o", trace)
    program = guest_program("recording/exchanged_lines")
    result = run("nprof", "record", *words, "--", program, "handed", str(rounds), timeout=LIMIT_S)
    assert result.returncode == 0, result.stderr
    with Trace.open(trace) as found:
        totals = counter_totals(found)
        writer, reader = (row.thread for row in found.thread_rows if row.process == "p0")
    kept, taken = totals["l3_hits_on_others_lines"], totals["coherence_within_l3"]
    asked_for = [kept[who] + taken[who] for who in (writer, reader)]
    assert asked_for == pytest.approx([(rounds - 1) * lines, rounds * lines], rel=0.02)
    assert min(kept[writer], kept[reader]) > lines / 2


@pytest.mark.slow
def test_a_part_is_counted_exactly(lab: Path, tmp_path: Path) -> None:  # noqa: ARG001
    part, expected = ("--skip", "150K", "--take", "300K"), 300_000
    words = ("--backend", "lab", "--machine", "2x2", "--period", "100", *part, "-o", tmp_path / "t.db")
    result = run("nprof", "record", *words, "--", guest_program("stencil"), "4", "512", "40", timeout=LIMIT_S)
    assert result.returncode == 0, result.stderr
    with Trace.open(tmp_path / "t.db") as trace:
        ((uses,),) = trace.rows("SELECT sum(loads + stores) FROM page_use")
        ((first, last),) = trace.rows("SELECT min(start_ns), max(end_ns) FROM page_use")
        found = analyze_trace(trace)
    assert uses == pytest.approx(expected, rel=0.02)
    assert 0 <= first < last <= 1.05 * expected
    assert found.layers == {"counted": 1.0}
    strips = np.array([0, 2, 1, 3])  # of examples/stencil.c
    neighbours = np.abs(strips[:, None] - strips[None, :]) == 1
    assert found.comm[neighbours].sum() > 0.8 * found.comm.sum() > 0


@pytest.mark.slow
def test_what_is_marked_is_counted_exactly(lab: Path, tmp_path: Path) -> None:  # noqa: ARG001
    """Each of 64 pages is written once: by two threads, by a forked child, and by one thread later on."""
    words = ("--backend", "lab", "--machine", "2x2", "--marked", "--period", "5", "-o", tmp_path / "t.db")
    program = guest_program("recording/recorded_part")
    result = run("nprof", "record", *words, "--", "sh", "-c", f"{program} marks", timeout=LIMIT_S)
    assert result.returncode == 0, result.stderr
    area = f"r.start_addr BETWEEN {BASE} AND {BASE + (8 << 20)}"
    with Trace.open(tmp_path / "t.db") as trace:
        used = trace.rows(
            "SELECT r.start_addr, t.process, t.path, sum(loads), sum(stores) FROM page_use "
            f"JOIN threads t USING (thread) JOIN regions r USING (region) WHERE {area} GROUP BY ALL"
        )
        taken = trace.rows(
            "SELECT r.start_addr, sum(events) FROM transfers JOIN regions r USING (region) "
            f"WHERE {area} GROUP BY ALL"
        )
    main, child = "p0.1", "p0.1.1"
    shared, again, forked = (BASE + number * (1 << 20) for number in (1, 3, 4))
    writers = [(shared, main, "0.1"), (shared, main, "0.2"), (again, main, "0"), (forked, child, "0")]
    assert {row[:3]: row[3:] for row in used} == dict.fromkeys(writers, (0, 64))
    assert taken == [(shared, 64)]


def test_without_a_kernel_setup_is_named(lab: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    command = [lab / "nprof", "record", "--backend", "lab", "-o", tmp_path / "t.db", "--", "true"]
    result = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=LIMIT_S)
    assert "nlab setup" in one_line_error(result, "nprof", 3)
