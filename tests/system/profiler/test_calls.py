"""The calls that samples are in, of programs whose calls end in every way."""

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from numaplan.profiler import Trace
from tests.support.commands import run, succeed
from tests.support.emulating import MARKS, record
from tests.support.programs import PROGRAMS, compiled

pytestmark = MARKS
FLAGS = ("-g", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread", "-D_GNU_SOURCE")
OWN = ("main", "plain", "jumps", "falls", "handler", "deep", "thread", "forks")
# Of each row of the area the program's own functions around `writes`, outermost first.
CHAINS = (
    ("main", "plain"),
    ("main", "jumps", "plain"),
    ("main", "handler", "plain"),
    ("main", *("deep",) * 301, "plain"),
    ("thread", "plain"),
    ("main", "forks", "plain"),
)


@pytest.fixture(scope="module")
def program() -> Path:
    return compiled(PROGRAMS / "recording/calls.c", flags=FLAGS)


def chains(path: Path) -> dict[int, Counter[tuple[str, ...]]]:
    """By row of the area, the own functions that called, outermost first, of what `writes` wrote there."""
    with Trace.open(path) as trace:
        calls = {row[0]: row[1:] for row in trace.rows("SELECT call, caller, process, ip FROM calls")}
        functions = {
            (process, ip): function
            for process, ip, function in trace.rows("SELECT process, ip, function FROM code")
        }
        rows = trace.rows(
            """
            SELECT process, ip, call, ((addr - start_addr) // 65536)::INTEGER FROM samples
            JOIN threads USING (thread) JOIN regions USING (process, region)
            WHERE regions.name LIKE '%:area' AND (is_write OR event = 'fault')
            """
        )
    found: dict[int, Counter[tuple[str, ...]]] = {}
    for process, ip, call, row in rows:
        stack = []
        while call >= 0:
            call, owner, at = calls[call]
            stack.insert(0, functions.get((owner, at), ""))
        if functions.get((process, ip)) == "writes":
            found.setdefault(row, Counter())[tuple(name for name in stack if name in OWN)] += 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["fair", "free"])
def test_emulation_tells_the_calls_of_each_sample(program: Path, tmp_path: Path, schedule: str) -> None:
    trace = record(program, tmp_path / "t.db", "", "--period", "20", "--set", f"schedule={schedule}")
    found = chains(trace)
    for row, expected in enumerate(CHAINS):
        (chain,) = found[row]
        # Of very deep ones the outermost calls are told.
        assert chain == expected if len(expected) < 100 else chain == expected[: len(chain)]
        assert len(chain) >= min(100, len(expected)) and found[row].total() > 1000


@pytest.mark.slow
def test_without_calls_there_are_none(program: Path, tmp_path: Path) -> None:
    trace = record(program, tmp_path / "t.db", "", "--period", "100", "--set", "calls=off")
    assert set(chains(trace)[1]) == {()}
    with Trace.open(trace) as opened:
        assert opened.rows("SELECT count(*) FROM calls") == [(0,)]


def test_what_perf_records_of_calls_is_kept_with_names(program: Path, tmp_path: Path) -> None:
    perf, recording = shutil.which("perf"), tmp_path / "perf.data"
    if perf is None:
        pytest.skip("perf is not installed")
    words = [
        perf,
        "record",
        "-q",
        "-e",
        "page-faults",
        "-c",
        "1",
        "-d",
        "-g",
        "-o",
        str(recording),
        str(program),
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        pytest.skip(f"perf records nothing here: {done.stderr.strip()[:80]}")
    succeed("nprof", "import", recording, "-o", tmp_path / "t.db")
    check_perf_chains(tmp_path / "t.db")


def test_a_recording_with_a_call_graph_has_the_calls_to_its_end(program: Path, tmp_path: Path) -> None:
    words = ["record", "--call-graph", "--backend", "faults", "-o", tmp_path / "t.db", "--", program]
    done = run("nprof", *words)
    if done.returncode == 3:
        pytest.skip(f"perf records no page faults here: {done.stderr.strip()[:120]}")
    assert done.returncode == 0, done.stderr
    check_perf_chains(tmp_path / "t.db")
    with Trace.open(tmp_path / "t.db") as trace:
        ((leaves, samples),) = trace.rows(
            """
            SELECT list_sort(list_distinct(list(function))), count(*) FROM samples
            JOIN threads USING (thread) JOIN regions USING (process, region) JOIN code USING (process, ip)
            WHERE regions.name LIKE '%:area' AND addr - start_addr >= 65536
            """
        )
    assert leaves == ["writes"] and samples >= 4 * 15, "who faults first in rows 1 to 5"


def check_perf_chains(trace: Path) -> None:
    """That those which perf saw in some rows of the area are in a trace."""
    found = chains(trace)
    # `writes` calls nothing, so it may have no frame of its own, and then its caller is not told.
    ends = {row: {chain[-2:] for chain in found[row]} for row in (1, 2, 4)}
    for row, expected in ((1, "jumps"), (2, "handler"), (4, "thread")):
        assert ends[row] and all(expected in chain for chain in ends[row])
