"""`nprof record` of what runs already: a process, all cpus; what ends it and what it leaves alone."""

import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from numaplan.profiler.trace.reader import Trace
from tests.support.busy import UNTIL_TOLD, ended_by_itself, facts, needs_faults, record
from tests.support.commands import one_line_error, run
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.system


@pytest.fixture(scope="module", autouse=True)
def _perf() -> None:
    needs_faults()


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(UNTIL_TOLD, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


@contextmanager
def watched(folder: Path, pid: int, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], bytearray]]:
    """`nprof record` of what runs, once faults of two threads of a process are counted, and what it shows.

    On a terminal it says when perf counts. perf's file says so late: perf writes when half of a buffer of
    megabytes is full, for which a process that hardly gets a cpu needs minutes.
    """
    ours, theirs = pty.openpty()
    shown = bytearray()

    def read() -> None:
        with suppress(OSError):  # the other end was closed
            while data := os.read(ours, 4096):
                shown.extend(data)

    with record(folder, *words, errors=theirs) as watcher:
        os.close(theirs)
        reader = threading.Thread(target=read)
        reader.start()

        def counts() -> bool:
            assert watcher.poll() is None, shown
            return b"Ctrl-C ends it" in shown

        until(counts)
        until_faults(pid)
        yield watcher, shown
    reader.join()
    os.close(ours)


def faults_of(pid: int) -> dict[str, int]:
    """The minor page faults of each thread of a process until now."""
    stats = [task / "stat" for task in Path(f"/proc/{pid}/task").iterdir()]
    return {stat.parent.name: int(stat.read_text().rpartition(")")[2].split()[7]) for stat in stats}


def until_faults(pid: int) -> None:
    """Return when each of two threads of a process has had some hundred faults since now."""
    before = faults_of(pid)
    until(lambda: sum(count > before.get(tid, 0) + 500 for tid, count in faults_of(pid).items()) >= 2)


@pytest.mark.slow
def test_a_running_process(busy: subprocess.Popen[bytes], tmp_path: Path) -> None:
    output = tmp_path / "trace.db"
    with watched(tmp_path, busy.pid, "--pid", str(busy.pid)) as (watcher, shown):
        until(lambda: b"samples/s" in shown and b"3 threads" in shown)  # one waits for its input to end
        watcher.send_signal(signal.SIGINT)
        watcher.wait(PATIENCE_S)
    meta, samples, pids = facts(output)
    assert samples > 100 and pids == {busy.pid}
    assert sys.executable in meta["argv"] and "exit_code" not in meta
    assert busy.poll() is None
    with Trace.open(output) as trace:
        assert len(trace.rows("SELECT DISTINCT thread FROM samples")) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["trace.db"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_watching_and_keeps_the_recording(
    busy: subprocess.Popen[bytes], tmp_path: Path, number: int
) -> None:
    with watched(tmp_path, busy.pid, "--attach", str(busy.pid)) as (watcher, shown):
        watcher.send_signal(number)
        watcher.wait(PATIENCE_S)
    assert watcher.returncode == 130, shown
    assert b"Traceback" not in shown
    assert facts(tmp_path / "trace.db")[1] > 0
    assert busy.poll() is None


@pytest.mark.slow
def test_a_process_that_ends_ends_the_recording(busy: subprocess.Popen[bytes], tmp_path: Path) -> None:
    with watched(tmp_path, busy.pid, "--pid", str(busy.pid)) as (watcher, shown):
        busy.communicate()
        watcher.wait(PATIENCE_S)
    assert watcher.returncode == 0, shown
    assert facts(tmp_path / "trace.db")[2] == {busy.pid}


def test_a_process_that_is_not_there(tmp_path: Path) -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    result = run("nprof", "record", "--pid", str(process.pid), cwd=tmp_path)
    assert "no process" in one_line_error(result, "nprof", 2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_all_cpus_while_a_program_runs(busy: subprocess.Popen[bytes], tmp_path: Path) -> None:
    output = tmp_path / "trace.db"
    with record(tmp_path, "--all-cpus", "--", *UNTIL_TOLD) as recorder:
        assert recorder.stdout is not None and recorder.stdout.readline() == b"ready\n"
        until_faults(busy.pid)
        _, errors = recorder.communicate(timeout=PATIENCE_S)
    assert recorder.returncode == 0, errors
    _, _, pids = facts(output)
    assert busy.pid in pids and len(pids) > 1
    with Trace.open(output) as trace:
        ((name,),) = trace.rows("SELECT DISTINCT process FROM threads WHERE pid = " + str(busy.pid))
        assert trace.rows("SELECT DISTINCT pid FROM threads WHERE process = 'p0'") != []
    assert name != "p0"  # that is the program we started


@pytest.mark.slow
def test_all_cpus_until_a_signal(busy: subprocess.Popen[bytes], tmp_path: Path) -> None:
    with watched(tmp_path, busy.pid, "--all-cpus") as (watcher, shown):
        watcher.send_signal(signal.SIGINT)
        watcher.wait(PATIENCE_S)
    assert watcher.returncode == 130, shown
    assert busy.pid in facts(tmp_path / "trace.db")[2]
    assert run("nprof", "info", tmp_path / "trace.db").stdout.startswith(b"(no command line)\n")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["--pid", "--all-cpus"])
def test_the_duration_ends_watching(busy: subprocess.Popen[bytes], tmp_path: Path, target: str) -> None:
    words = [target, *[str(busy.pid)] * (target == "--pid"), "--duration", "1"]
    assert ended_by_itself(run("nprof", "record", *words, "-o", tmp_path / "trace.db"))
    assert busy.poll() is None
