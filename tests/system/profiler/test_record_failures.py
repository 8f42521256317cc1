"""What can go wrong while recording: a line, its exit code, and no half-written file."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import BIN, clean_environment, needs, one_line_error, run, succeed
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.system


@pytest.fixture(autouse=True)
def emulation() -> None:
    needs("qemu-x86_64")


def test_zero_samples_is_an_error(tmp_path: Path) -> None:
    result = run(
        "nprof", "record", "--backend", "emulate", "--period", "2000000000", "/bin/true", cwd=tmp_path
    )
    assert "no sample" in one_line_error(result, "nprof", 2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["emulate", "faults"])
def test_the_programs_exit_code_passes_through(backend: str, tmp_path: Path) -> None:
    if backend == "faults":
        needs("perf")
    words = ["nprof", "record", "--backend", backend, "--period", "10", "--"]
    assert run(*words, "/bin/sh", "-c", "exit 7", cwd=tmp_path).returncode == 7
    assert run(*words, "/bin/sh", "-c", "kill -SEGV $$", cwd=tmp_path).returncode == 128 + signal.SIGSEGV
    assert [path.name for path in tmp_path.iterdir()] == ["trace.db"]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["emulate", "faults"])
def test_ctrl_c_keeps_what_was_recorded(backend: str, tmp_path: Path) -> None:
    if backend == "faults":
        needs("perf")
    program = "import time\nprint('ready', flush=True)\nwhile True: b = bytearray(1 << 20); time.sleep(0.01)"
    process = subprocess.Popen(
        [BIN / "nprof", "record", "--backend", backend, "--", sys.executable, "-c", program],
        cwd=tmp_path,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    until(lambda: any(path.stat().st_size > 10_000 for path in tmp_path.glob(".trace.db.*/*")))
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, errors
    assert b"Traceback" not in errors.replace(b'Traceback (most recent call last):\n  File "<string>"', b"")
    assert [path.name for path in tmp_path.iterdir()] == ["trace.db"]
    succeed("nprof", "info", tmp_path / "trace.db")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_ends_program_and_perf_at_once_is_the_programs_end(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a batch system sends it to all: perf may have written nothing that can be read."""
    needs("perf")
    (tmp_path / "perf").write_text(
        f"#!{sys.executable}\n"
        "import os, signal, sys\n"
        "control = [word for word in sys.argv if word.startswith('--control=fd:')]\n"
        f"if not control: os.execv({shutil.which('perf')!r}, sys.argv)\n"
        "commands, answers = map(int, control[0].partition(':')[2].split(','))\n"
        "os.read(commands, 64)\n"
        "os.write(answers, b'ack\\n')\n"
        "signal.pause()\n"
    )
    (tmp_path / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    result = run(
        "nprof", "record", "--backend", "faults", "--", "sh", "-c", f"kill -{number} $$", cwd=tmp_path
    )
    one_line_error(result, "nprof", 128 + number)
    assert [path.name for path in tmp_path.iterdir()] == ["perf"]


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small tmpfs needs root")
    try:
        result = run(
            "nprof", "record", "--period", "1", "-o", disk / "trace.db", "--", sys.executable, "-c", "pass"
        )
        one_line_error(result, "nprof", 2)
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", disk], check=True)


def test_an_unwritable_place_is_said_before_the_program_runs(tmp_path: Path) -> None:
    result = run("nprof", "record", "-o", tmp_path / "no" / "t.db", "--", "touch", tmp_path / "ran")
    one_line_error(result, "nprof", 2)
    assert not (tmp_path / "ran").exists()


def test_a_trace_is_no_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for words in (["record", "-o", "pipe", "touch", "ran"], ["import", "-o", "pipe", "perf.data"]):
        result = run("nprof", *words, cwd=tmp_path)
        assert "pipe: is a pipe" in one_line_error(result, "nprof", 2)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_summary_that_cannot_be_written_is_said_before_the_program_runs(tmp_path: Path) -> None:
    words = ("nprof", "record", "--backend", "emulate", "--summary", "missing/sum.json")
    assert "no folder" in one_line_error(run(*words, "touch", "ran", cwd=tmp_path), "nprof", 2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_trace_that_is_being_written_is_finished(number: int, tmp_path: Path) -> None:
    """Also when a batch system says that the time is up, or the terminal has gone."""
    program = "import sys\nfor _ in range(2000): sys.stdout.write('')\nprint('done', flush=True)"
    words = ["record", "--backend", "emulate", "--period", "8", "--", sys.executable, "-S", "-c", program]
    process = subprocess.Popen(
        [BIN / "nprof", *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.readline() == b"done\n"
    until(lambda: [*tmp_path.glob(".trace.db.*.tmp")] or process.poll() is not None)
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (0, 128 + number), errors
    assert b"internal error" not in errors and b"Traceback" not in errors
    assert [path.name for path in tmp_path.iterdir()] == ["trace.db"]
    succeed("nprof", "info", tmp_path / "trace.db")


@pytest.mark.slow
def test_what_a_killed_recording_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """But not what one that still runs needs."""
    words = [BIN / "nprof", "record", "--backend", "emulate", "--", "cat"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=tmp_path, stdin=pipe, stderr=pipe, start_new_session=True) as running:
        until(lambda: [*tmp_path.glob(".trace.db.*/emulate-*.threads")])
        (used,) = tmp_path.glob(".trace.db.*")
        with subprocess.Popen(words, cwd=tmp_path, stdin=pipe, stderr=pipe, start_new_session=True) as killed:
            until(lambda: len([*tmp_path.glob(".trace.db.*/emulate-*.threads")]) == 2)
            os.killpg(killed.pid, signal.SIGKILL)
        assert len([*tmp_path.glob(".trace.db.*")]) == 2
        succeed("nprof", "record", "--backend", "emulate", "--period", "10", "--", "true", cwd=tmp_path)
        assert [*tmp_path.glob(".trace.db.*")] == [used]
        running.communicate()
    assert [path.name for path in tmp_path.iterdir()] == ["trace.db"]
