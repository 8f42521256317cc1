"""Recording a part of a run: by time, accesses, signals and marks; under emulation and by page faults."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from numaplan.launcher import include_folder
from numaplan.machine import Machine
from numaplan.profiler import Trace
from numaplan.profiler.backends.choice import backend_of
from tests.support.commands import BIN, clean_environment, one_line_error, run, succeed
from tests.support.programs import PROGRAMS, STRICT, compiled
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.system
BASE, AREA, PAGES, THREADS = 0x200000000000, 1 << 20, 64, 2
EARLY, SHARED, LATE, AGAIN, CHILD, LAST = range(6)


@pytest.fixture(scope="module")
def program() -> Path:
    flags = (*STRICT, "-D_GNU_SOURCE", "-pthread", f"-I{include_folder()}")
    return compiled(PROGRAMS / "recording/recorded_part.c", flags=flags)


@pytest.fixture(params=["emulate", "faults"])
def backend(request: pytest.FixtureRequest) -> list[str]:
    """The words that choose a backend; skips where it does not work."""
    capability = backend_of(request.param).available(Machine.load("4x2"))
    if not capability.ok or os.uname().machine != "x86_64":
        pytest.skip(capability.reason)
    return ["--backend", request.param, *(["--period", "1"] if request.param == "emulate" else [])]


def pages_of(trace: Trace, area: int) -> int:
    """How many pages of an area have a write."""
    start = BASE + area * AREA
    (count,) = trace.rows(
        "SELECT count(DISTINCT addr // 4096) FROM samples WHERE event IN ('store', 'fault') AND "
        f"addr >= {start} AND addr < {start + AREA}"
    )[0]
    return int(count)


@pytest.mark.slow
def test_only_what_is_marked_is_kept(program: Path, backend: list[str], tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    assert succeed("nprof", "record", *backend, "--marked", "-o", path, "--", program, "marks") == b"0\n"
    with Trace.open(path) as trace:
        seen = [pages_of(trace, area) for area in range(6)]
        threads = {(row.process, row.path): row.start_ns for row in trace.thread_rows}
    assert [seen[area] for area in (EARLY, LATE, LAST)] == [0, 0, 0]
    assert [seen[area] for area in (SHARED, AGAIN, CHILD)] == [PAGES] * 3
    assert set(threads) >= {("p0", "0"), ("p0", "0.1"), ("p0", "0.2"), ("p0.1", "0")}
    assert min(threads.values()) == 0
    facts = json.loads(succeed("nprof", "info", "--json", path))
    assert facts["part"] == {"marked": "yes"}
    assert b"between numaplan_begin()" in succeed("nprof", "info", path)


def test_marks_that_never_come(backend: list[str], tmp_path: Path) -> None:
    result = run("nprof", "record", *backend, "--marked", "-o", tmp_path / "t.db", "--", "true")
    assert "nothing was marked" in one_line_error(result, "nprof", 2)


def test_a_program_with_marks_runs_without_us(program: Path) -> None:
    assert subprocess.run([program, "marks"], check=False, timeout=PATIENCE_S).returncode == 3  # ENOSYS


@pytest.mark.parametrize(("language", "compiler"), [("c11", "gcc"), ("c++17", "g++")])
def test_the_header_compiles_cleanly(language: str, compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    code = "#include <numaplan.h>\nint main(void) { return numaplan_begin() + numaplan_end() + 2; }\n"
    source, flags = tmp_path / ("t.c" if language == "c11" else "t.cc"), ("-Wall", "-Wextra", "-Werror")
    source.write_text(code)
    words = [
        compiler,
        f"-std={language}",
        *flags,
        "-D_GNU_SOURCE",
        f"-I{include_folder()}",
        "-o",
        "t",
        source,
    ]
    subprocess.run([*words, "-ldl"], cwd=tmp_path, check=True, timeout=PATIENCE_S)
    assert subprocess.run([tmp_path / "t"], check=False, timeout=PATIENCE_S).returncode == 0


@contextmanager
def told(program: Path, trace: Path, words: list[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """A recording of the program, in its middle."""
    command = [BIN / "nprof", "record", *words, "-o", trace, "--", program, "told"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, env=clean_environment()
    ) as recording:
        try:
            assert recording.stdout is not None
            assert recording.stdout.readline() == b"ready\n"
            yield recording
        finally:
            recording.kill()


def end(recording: "subprocess.Popen[bytes]") -> bytes:
    """Tell it to go on; what it still printed."""
    printed, said = recording.communicate(b"go on\n", timeout=PATIENCE_S)
    assert recording.returncode == 0, said.decode()
    return printed


def recording_began(folder: Path) -> bool:
    return any(folder.glob(".t.db.*/emulate-*.threads"))


def recorded_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob(".t.db.*/faults.data"))


@pytest.mark.slow
def test_a_signal_to_us_starts_the_recording(program: Path, backend: list[str], tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with told(program, path, [*backend, "--on-signal"]) as recording:
        assert not recording_began(tmp_path)
        os.kill(recording.pid, signal.SIGUSR2)
        if "emulate" in backend:
            until(recording_began, tmp_path)
        else:
            until(lambda: recorded_bytes(tmp_path) > 1 << 20)
        assert end(recording) == b"1\n"  # the signal was for us, and its own is its own
    with Trace.open(path) as trace:
        assert pages_of(trace, EARLY) == 0
        assert pages_of(trace, SHARED) == PAGES
        assert trace.meta["on_signal"] == "yes"


_TOLD_WHEN_IT_DOES_NOT_RUN = """
import signal, sys
from numaplan.profiler.commands import main, record
from numaplan.profiler.recording import record as recording

def told_before(function):
    def both(*arguments, **named):
        signal.raise_signal(signal.SIGUSR2)
        return function(*arguments, **named)
    return both

record._say_choice = told_before(record._say_choice)
recording.write_trace = told_before(recording.write_trace)
sys.exit(main.main())
"""


def test_a_signal_that_nobody_can_act_on_loses_nothing(backend: list[str], tmp_path: Path) -> None:
    words = ["record", *backend, "--on-signal", "-o", str(tmp_path / "t.db"), "--", "sh", "-c", "exit 7"]
    command = [sys.executable, "-c", _TOLD_WHEN_IT_DOES_NOT_RUN, *words]
    done = subprocess.run(
        command, capture_output=True, check=False, env=clean_environment(), timeout=PATIENCE_S
    )
    assert done.returncode == 7, done.stderr.decode()
    assert b"came early: recording begins" in done.stderr
    assert b"came late: nothing more" in done.stderr
    with Trace.open(tmp_path / "t.db") as trace:
        assert trace.rows("SELECT count(*) FROM samples")[0][0] > 0


def test_without_a_signal_nothing_is_recorded(backend: list[str], tmp_path: Path) -> None:
    result = run("nprof", "record", *backend, "--on-signal", "-o", tmp_path / "t.db", "--", "true")
    assert "no SIGUSR2 came" in one_line_error(result, "nprof", 2)


def test_recording_begins_after_the_time_to_skip(program: Path, tmp_path: Path) -> None:
    _emulation()
    path = tmp_path / "t.db"
    words = ["--backend", "emulate", "--period", "1", "--skip", "50ms"]
    with told(program, path, words) as recording:
        until(recording_began, tmp_path)
        assert end(recording) == b"1\n"
    with Trace.open(path) as trace:
        assert trace.meta["skipped"] == "0.05 s"
        assert pages_of(trace, SHARED) == PAGES


@pytest.mark.slow
def test_accesses_are_skipped_and_taken_by_number(tmp_path: Path) -> None:
    _emulation()
    program = compiled(PROGRAMS / "recording/emulate_cases.c", flags=("-O1", "-D_GNU_SOURCE", "-lpthread"))
    counts = {}
    for name, words in {
        "all": [],
        "late": ["--skip", "1M"],
        "part": ["--skip", "1M", "--take", "0.5M"],
    }.items():
        path = tmp_path / f"{name}.db"
        command = ["nprof", "record", "--backend", "emulate", *words, "-o", path]
        succeed(*command, "--", program, "count", "2", "1000000", "1000", "100")
        with Trace.open(path) as trace:
            rows = trace.rows(
                "SELECT thread, sum(value) FROM counters WHERE event IN ('loads', 'stores') GROUP BY 1"
            )
            counts[name] = sum(value for _, value in rows)
            paths = [row.path for row in trace.thread_rows]
            assert paths == ["0", "0.1", "0.2"]
    assert counts["all"] > 2_000_000
    assert abs(counts["all"] - counts["late"] - 1_000_000) < 20_000  # a grant of each thread, and locks
    assert abs(counts["part"] - 500_000) < 5_000
    result = run(
        "nprof", "record", "--backend", "emulate", "--skip", "1G", "-o", tmp_path / "t.db", "--", "true"
    )
    assert "it ended before the part" in one_line_error(result, "nprof", 2)


def _emulation() -> None:
    capability = backend_of("emulate").available(Machine.load("4x2"))
    if not capability.ok or os.uname().machine != "x86_64":
        pytest.skip(capability.reason)
