"""The options of `nprof record` on real processes: by page faults, which need no PMU."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.busy import busy_for, facts, needs_faults, record_a_part
from tests.support.commands import BIN, clean_environment, needs, one_line_error, run, succeed
from tests.support.outside import children, comm, times_asleep
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.system


@pytest.fixture(scope="module", autouse=True)
def _perf() -> None:
    needs_faults()


def test_the_duration_ends_the_recording_but_not_the_program(tmp_path: Path) -> None:
    record_a_part(tmp_path, "--duration", "500ms")


@pytest.mark.slow
def test_a_frequency_takes_fewer_samples_than_all(tmp_path: Path) -> None:
    counts = {}
    for name, words in (("all", []), ("some", ["--freq", "50"])):
        output = tmp_path / f"{name}.db"
        succeed("nprof", "record", "--backend", "faults", *words, "-o", output, "--", *busy_for(300))
        meta, counts[name], _ = facts(output)
        assert meta.get("freq", "") == ("50" if name == "some" else "")
    assert 0 < counts["some"] < counts["all"] / 4


@pytest.mark.slow
def test_a_largest_size_ends_the_recording(tmp_path: Path) -> None:
    record_a_part(tmp_path, "--max-size", "1M", "--backend", "faults")


@pytest.mark.slow
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


@pytest.mark.slow
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
