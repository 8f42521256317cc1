"""Lines that threads take from each other are counted, each one."""

from pathlib import Path

import numpy as np
import pytest

from numaplan.analyzer import analyze_trace, communication_by_phase, counter_totals
from numaplan.profiler import Trace
from tests.support.emulating import MARKS, record
from tests.support.programs import OPTIMISED, PROGRAMS, compiled

pytestmark = MARKS


@pytest.fixture(scope="module")
def program() -> Path:
    return compiled(PROGRAMS / "recording/exchanged_lines.c", flags=(*OPTIMISED, "-D_GNU_SOURCE"))


def matrix(trace: Trace, condition: str) -> np.ndarray:
    """(N, N) transfers [writer, reader] in regions that meet a condition."""
    answer = np.zeros((len(trace.thread_rows),) * 2, int)
    for writer, reader, events in trace.rows(
        "SELECT writer, reader, sum(t.events) FROM transfers t JOIN regions r USING (region) "
        f"WHERE {condition} GROUP BY ALL"
    ):
        answer[writer, reader] = events
    return answer


LINES = "r.name LIKE '%:lines'"
COUNTED = ("coherence", "coherence_within_l3", "l3_hits_on_others_lines")


@pytest.mark.parametrize("period", [100, 5_000])
def test_what_pairs_exchange_is_counted_whatever_the_period(
    program: Path, tmp_path: Path, period: int
) -> None:
    path = record(program, tmp_path / "t.db", "pairs 7", "--period", str(period))
    expected = np.zeros((5, 5), int)
    expected[1, 2], expected[3, 4] = 3500, 7000
    with Trace.open(path) as trace:
        assert np.array_equal(matrix(trace, LINES), expected)
        found = analyze_trace(trace)
        pairs = np.triu(found.comm, 1)
        assert found.confidence == 1.0 and not found.standard_error.any()
        assert (pairs[1, 2], pairs[3, 4]) == (3500, 7000)
        assert pairs.sum() - 10_500 < 100  # what threads are given as they start
        whole = [(0, len(found.timeline.per_thread))]
        assert np.array_equal(communication_by_phase(trace, found, whole)[0].matrix, found.comm)


@pytest.mark.parametrize("threads", [3, 200])
def test_a_line_is_taken_once_by_each_of_many_readers(program: Path, tmp_path: Path, threads: int) -> None:
    path = record(program, tmp_path / "t.db", f"readers {threads}")
    with Trace.open(path) as trace:
        assert matrix(trace, LINES).tolist() == [
            [0] + [100] * threads,
            *[[0] * (threads + 1)] * threads,
        ]


@pytest.mark.parametrize("threads", [3, 60])
def test_what_the_kernel_reads_for_a_thread_others_take_from_it(
    program: Path, tmp_path: Path, threads: int
) -> None:
    path = record(program, tmp_path / "t.db", f"filled {threads}")
    with Trace.open(path) as trace:
        assert matrix(trace, LINES).tolist() == [
            [0] + [200] * threads,
            *[[0] * (threads + 1)] * threads,
        ]


# A file, or a socket, in one piece or several.
WRITES = ("write", "pwrite", "send", "writev", "pwritev", "pwritev2", "sendmsg")


@pytest.mark.slow
@pytest.mark.parametrize("call", [*WRITES, "half", "refused", "null"])
def test_what_a_thread_writes_to_a_file_it_takes_from_who_made_it(tmp_path: Path, call: str) -> None:
    program = compiled(PROGRAMS / "recording/written_pages.c", flags=(*OPTIMISED, "-D_GNU_SOURCE"))
    path = record(program, tmp_path / "t.db", call)
    with Trace.open(path) as trace:
        taken = matrix(trace, f"r.kind = 'mmap' AND r.start_addr = {0x500000000000}")
        (uses,) = trace.rows(
            "SELECT sum(loads), sum(stores) FROM page_use "
            f"WHERE addr >= {0x500000000000} AND addr < {0x500000000000 + (64 << 12)}"
        )
        totals = counter_totals(trace)
    lines = {"half": 32 * 64, "refused": 0, "null": 0}.get(call, 64 * 64)
    assert taken.tolist() == [[0, 0], [lines, 0]]
    assert uses == (0, 64 * 64)
    # What is there to scale the matrix by: the thread's caches had to ask for these lines.
    assert lines <= totals["coherence"][0] + totals["l3_hits_on_others_lines"][0] < lines + 50


@pytest.mark.parametrize("how", ["again", "discarded"])
def test_memory_that_is_given_back_is_nobodys_and_in_no_cache(
    program: Path, tmp_path: Path, how: str
) -> None:
    path = record(program, tmp_path / "t.db", f"{how} 5", "--period", "10")
    with Trace.open(path) as trace:
        assert len(trace.thread_rows) == 6
        assert not matrix(trace, f"r.kind = 'mmap' AND r.start_addr = {0x500000000000}").any()
        assert counter_totals(trace)["coherence"][2:].max() < 50  # those whose predecessor wrote as much


def test_a_child_takes_nothing_from_its_parents_threads(program: Path, tmp_path: Path) -> None:
    path = record(program, tmp_path / "t.db", "child", "--period", "10")
    with Trace.open(path) as trace:
        names = {(row.process, row.path): row.thread for row in trace.thread_rows}
        found = matrix(trace, LINES)
        expected = np.zeros_like(found)
        expected[names["p0", "0.1"], names["p0", "0"]] = 50
        assert np.array_equal(found, expected)


def test_without_the_model_nothing_is_counted(program: Path, tmp_path: Path) -> None:
    path = record(program, tmp_path / "t.db", "pairs 2", "--no-cache")
    with Trace.open(path) as trace:
        assert "transfers" not in trace.meta and not trace.rows("SELECT * FROM transfers")
        assert analyze_trace(trace).confidence < 1.0


@pytest.mark.parametrize("machine", ["1x4", "4x1"])
def test_what_a_shared_cache_answers_is_told_from_what_another_ones_thread_takes(
    program: Path, tmp_path: Path, machine: str
) -> None:
    """8 MiB are more than a core's own caches hold, and less than an L3: only apart all of it is fetched."""
    lines = 1 << 17
    path = record(program, tmp_path / "t.db", "buffer 2", "--machine", machine, "--period", "10000")
    with Trace.open(path) as trace:
        rows = trace.rows("SELECT thread, event, sum(value)::BIGINT FROM counters GROUP BY ALL")
        counted = {(int(thread), str(event)): int(value) for thread, event, value in rows}
    first, second = ([counted[thread, name] for name in COUNTED] for thread in (1, 2))
    taken, within, kept = first
    if machine == "1x4":
        assert taken == within < lines / 4
        assert within + kept == pytest.approx(lines, rel=0.01)
    else:
        assert within < 100 > kept
        assert taken == pytest.approx(lines, rel=0.01)
    assert max(second) < lines / 100  # who comes next finds them in the first one's cache, or in memory


def asked_by(path: Path) -> list[tuple[int, int]]:
    """Of the main thread and the other: lines taken from another one's caches, and of one that both share."""
    with Trace.open(path) as trace:
        totals = counter_totals(trace)
    return [(int(totals["coherence"][who]), int(totals["l3_hits_on_others_lines"][who])) for who in (0, 1)]


@pytest.mark.slow
def test_who_writes_what_another_has_asks_for_it_again(program: Path, tmp_path: Path) -> None:
    lines, rounds = 1 << 17, 3
    paths = {
        m: record(program, tmp_path / f"{m}.db", f"handed {rounds}", "--machine", m) for m in ("1x2", "2x1")
    }
    one, two = asked_by(paths["1x2"]), asked_by(paths["2x1"])
    assert [sum(who) for who in one] == pytest.approx([sum(who) for who in two], rel=0.001)
    assert [taken for taken, _ in two] == pytest.approx([(rounds - 1) * lines, rounds * lines], rel=0.001)
    assert min(kept for _, kept in one) > lines > 100 > max(kept for _, kept in two)


@pytest.mark.slow
def test_what_has_left_the_shared_cache_is_in_no_others(program: Path, tmp_path: Path) -> None:
    """64 MiB are more than it holds."""
    path = record(program, tmp_path / "t.db", "passed 2", "--machine", "1x2")
    assert sum(sum(who) for who in asked_by(path)) < 1000
