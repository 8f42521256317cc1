"""The options of `nprof record` on real processes: by page faults, which need no PMU."""

import os
import pty
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from numaplan.machine import Machine
from numaplan.profiler.backends.perf.faults import FaultsBackend
from numaplan.profiler.trace.reader import Trace
from tests.support.commands import BIN, clean_environment, needs, one_line_error, run, succeed
from tests.support.outside import children, comm, times_asleep
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.system
# Faults so many times 64 pages on each of two threads, or until its input ends; says when it is there.
BUSY = """
import itertools, mmap, sys, threading, time
rounds, told = int(sys.argv[1]), threading.Event()
def touch():
    for _ in range(rounds) if rounds else itertools.takewhile(lambda _: not told.is_set(), itertools.count()):
        area = mmap.mmap(-1, 1 << 18)
        area[:] = bytes(1 << 18)
        area.close()
        time.sleep(0.002)
thread = threading.Thread(target=touch)
thread.start()
print("ready", flush=True)
if not rounds:
    threading.Thread(target=lambda: (sys.stdin.read(), told.set())).start()
touch()
thread.join()
print("over", flush=True)
"""
UNTIL_TOLD = [sys.executable, "-c", BUSY, "0"]


@pytest.fixture(scope="module", autouse=True)
def _perf() -> None:
    needs("perf")
    capability = FaultsBackend().available(Machine.load("local"))
    if not capability.ok:
        pytest.skip(capability.reason)


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(UNTIL_TOLD, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


def busy_for(rounds: int) -> list[str]:
    return [sys.executable, "-c", BUSY, str(rounds)]


def facts(trace: Path) -> tuple[dict[str, str], int, set[int]]:
    """(meta, samples, process ids) of a trace."""
    with Trace.open(trace) as opened:
        ((samples,),) = opened.rows("SELECT count(*) FROM samples")
        pids = opened.rows("SELECT DISTINCT pid FROM threads JOIN samples USING (thread)")
        return opened.meta, samples, {pid for (pid,) in pids}


def record(folder: Path, *words: str, errors: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    """`nprof record` into trace.db."""
    pipe = subprocess.PIPE
    command = [BIN / "nprof", "record", "-o", folder / "trace.db", *words]
    environment = {**clean_environment(), "COLUMNS": "200", "TERM": "xterm"}
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=errors)


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


def ended_by_itself(result: subprocess.CompletedProcess[bytes]) -> bool:
    """Whether a recording has: what is sampled within a time is chance, and nothing may be."""
    return result.returncode == 0 or "no sample" in one_line_error(result, "nprof", 2)


def record_a_part(folder: Path, *words: str) -> None:
    """A recording that ends while the program goes on to its own end."""
    with record(folder, *words, "--", *UNTIL_TOLD) as recorder:
        assert recorder.stdout is not None and recorder.stdout.readline() == b"ready\n"

        def watched() -> bool:
            assert recorder.poll() is None, recorder.communicate()
            return any(comm(pid) == "perf" for pid in children(recorder.pid))

        until(lambda: not watched())
        output, errors = recorder.communicate(timeout=PATIENCE_S)  # its input ends: the program is told
    assert output == b"over\n"
    result = subprocess.CompletedProcess([], recorder.returncode, output, errors)
    assert ended_by_itself(result)
    if recorder.returncode:
        return
    with Trace.open(folder / "trace.db") as trace:
        ((last,),) = trace.rows("SELECT max(time_ns) FROM samples")
        ((end,),) = trace.rows("SELECT max(end_ns) FROM threads")
    assert last < end


def test_a_running_process(busy: subprocess.Popen[bytes], tmp_path: Path) -> None:
    output = tmp_path / "trace.db"
    with watched(tmp_path, busy.pid, "--pid", str(busy.pid)) as (watcher, shown):
        until(lambda: b"samples/s" in shown and b"3 threads" in shown)  # one waits for its input to end
        watcher.send_signal(signal.SIGINT)
        watcher.wait(PATIENCE_S)
    meta, samples, pids = facts(output)
    assert samples > 100 and pids == {busy.pid}
    assert sys.executable in meta["argv"]
    assert busy.poll() is None
    with Trace.open(output) as trace:
        assert len(trace.rows("SELECT DISTINCT thread FROM samples")) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["trace.db"]


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


def test_the_duration_ends_the_recording_but_not_the_program(tmp_path: Path) -> None:
    record_a_part(tmp_path, "--duration", "500ms")


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


def test_all_cpus_until_a_signal(busy: subprocess.Popen[bytes], tmp_path: Path) -> None:
    with watched(tmp_path, busy.pid, "--all-cpus") as (watcher, shown):
        watcher.send_signal(signal.SIGINT)
        watcher.wait(PATIENCE_S)
    assert watcher.returncode == 130, shown
    assert busy.pid in facts(tmp_path / "trace.db")[2]


@pytest.mark.parametrize("target", ["--pid", "--all-cpus"])
def test_the_duration_ends_watching(busy: subprocess.Popen[bytes], tmp_path: Path, target: str) -> None:
    words = [target, *[str(busy.pid)] * (target == "--pid"), "--duration", "1"]
    assert ended_by_itself(run("nprof", "record", *words, "-o", tmp_path / "trace.db"))
    assert busy.poll() is None


def test_a_frequency_takes_fewer_samples_than_all(tmp_path: Path) -> None:
    counts = {}
    for name, words in (("all", []), ("some", ["--freq", "50"])):
        output = tmp_path / f"{name}.db"
        succeed("nprof", "record", "--backend", "faults", *words, "-o", output, "--", *busy_for(300))
        meta, counts[name], _ = facts(output)
        assert meta.get("freq", "") == ("50" if name == "some" else "")
    assert 0 < counts["some"] < counts["all"] / 4


def test_a_largest_size_ends_the_recording(tmp_path: Path) -> None:
    record_a_part(tmp_path, "--max-size", "1M", "--backend", "faults")


def test_other_events_of_perf(tmp_path: Path) -> None:
    output = tmp_path / "trace.db"
    words = ["--events", "minor-faults", "--events", "cpu-clock", "--phys", "-o", output]
    succeed("nprof", "record", *words, "--", *busy_for(50))
    meta, samples, _ = facts(output)
    assert "minor-faults" in meta["perf_events"] and "cpu-clock" in meta["perf_events"]
    assert samples > 0
    result = run("nprof", "record", "--events", "no-such-event", "-o", tmp_path / "b.db", "--", "true")
    assert "perf cannot record" in one_line_error(result, "nprof", 3)


def test_the_summary_names_events_levels_and_threads(tmp_path: Path) -> None:
    result = run("nprof", "record", "--backend", "faults", "-o", tmp_path / "t.db", "--", *busy_for(50))
    text = result.stderr.decode()
    assert "events: fault 100.0%" in text and "threads: p0:0" in text
    assert "warning: " in text and "few for 2 threads (100,000 wanted)" in text


def test_the_command_shown_records_the_same(tmp_path: Path) -> None:
    words = ["--dry-run", "--backend", "faults", "--", *busy_for(20)]
    line = succeed("nprof", "record", *words, cwd=tmp_path).decode()
    assert list(tmp_path.iterdir()) == []
    subprocess.run(shlex.split(line), cwd=tmp_path, check=True, capture_output=True)
    succeed("nprof", "import", "perf.data", "-o", "trace.db", cwd=tmp_path)
    assert facts(tmp_path / "trace.db")[1] > 10


def test_the_command_of_the_emulation_is_shown(tmp_path: Path) -> None:
    needs("qemu-x86_64")
    line = succeed("nprof", "record", "--dry-run", "--backend", "emulate", "true", cwd=tmp_path).decode()
    words = shlex.split(line)
    assert Path(words[0]).name.startswith("qemu-") and "-plugin" in words
    assert words[-2:] == ["true", "/bin/true"] or words[-2] == "true"
    assert list(tmp_path.iterdir()) == []


def test_recorded_machines_by_command(repository: Path, tmp_path: Path) -> None:
    place = repository / "tests/replay/sysfs/sapphire-rapids-2s"
    line = succeed("nprof", "record", "--dry-run", "--sysfs", place, "--", "./app", cwd=tmp_path).decode()
    assert line.startswith("perf record ") and "mem-loads-aux" in line and line.endswith("-- ./app\n")
    assert b"cpu/mem-loads,ldlat=3/" in succeed("nprof", "doctor", "--sysfs", place, "--json")


@pytest.mark.parametrize(
    "words",
    [
        ["--freq", "10", "--period", "5", "true"],
        ["--sysfs", "/", "true"],
        ["--sysfs", "no-such-tree", "--dry-run", "true"],
        ["--backend", "emulate", "--phys", "true"],
        ["--backend", "faults", "--set", "ldlat=3", "true"],
        ["--pid", "1", "true"],
        ["--duration", "never", "true"],
    ],
)
def test_what_does_not_go_together_is_said(words: list[str], tmp_path: Path) -> None:
    one_line_error(run("nprof", "record", *words, cwd=tmp_path), "nprof", 2)
    assert list(tmp_path.iterdir()) == []


def test_a_program_has_the_terminal_to_itself(tmp_path: Path) -> None:
    needs("script")
    program = "print('begin', flush=True); input(); print('finish', flush=True)"
    command = [str(BIN / "nprof"), "record", "--backend", "faults", "--", sys.executable, "-c", program]
    pipe, environment = subprocess.PIPE, {**clean_environment(), "TERM": "xterm"}
    with subprocess.Popen(
        ["script", "-qec", shlex.join(command), os.devnull],
        cwd=tmp_path, env=environment, stdin=pipe, stdout=pipe,
    ) as terminal:  # fmt: skip
        assert terminal.stdin is not None and terminal.stdout is not None
        assert b"begin\r\n" in iter(terminal.stdout.readline, b"")  # up to there
        (recorder,) = (pid for pid in children(terminal.pid) if comm(pid) == "nprof")
        before = times_asleep(recorder)
        until(lambda: times_asleep(recorder) > before + 4)  # it would have drawn something by now
        terminal.stdin.write(b"\n")
        terminal.stdin.flush()
        assert terminal.stdout.readline() == b"\r\n"  # the terminal's echo
        assert terminal.stdout.readline() == b"finish\r\n"
        terminal.communicate(timeout=PATIENCE_S)
    assert terminal.returncode == 0
