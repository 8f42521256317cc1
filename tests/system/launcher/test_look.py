"""`numaplan look` at real processes, and at programs that it starts."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from numaplan.common import NotSoError, UsageError, write_document
from numaplan.launcher.look import session
from numaplan.launcher.look.look import look, whole_machine
from numaplan.launcher.look.read.groups import with_children
from tests.support.commands import BIN, clean_environment, one_line_error, run, succeed
from tests.support.waiting import until

SLEEPER = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
NO_SUCH = 1 << 22  # above every process id


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits until it is told to end."""
    with subprocess.Popen(SLEEPER, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_ids_may_have_commas_between(sleeper: subprocess.Popen[bytes]) -> None:
    words = ["look", f"{sleeper.pid},{os.getpid()}", "--seconds", "0.1", "--json"]
    found = {process["pid"] for process in msgspec.json.decode(succeed("numaplan", *words))["processes"]}
    assert {sleeper.pid, os.getpid()} <= found
    assert "'' is no process" in one_line_error(run("numaplan", "look", "1,,2"), "numaplan look", 2)


def test_json_and_metrics_of_a_process(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    file = tmp_path / "numaplan.prom"
    words = ["look", str(sleeper.pid), "--seconds", "0.1", "--json", "--metrics", file]
    content = msgspec.json.decode(succeed("numaplan", *words))
    assert content["schema"] == "numaplan/look/1"
    (process,) = content["processes"]
    assert process["pid"] == sleeper.pid and process["command"] == SLEEPER
    assert not content["findings"] and content["reason"]
    assert file.read_text().endswith("# EOF\n")
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_programs_output_and_exit_code_are_its_own(tmp_path: Path) -> None:
    """It runs until it has been looked at."""
    file = tmp_path / "numaplan.prom"
    script = f"while [ ! -e {file} ]; do :; done; echo done; exit 7"
    words = ["numaplan", "look", "--metrics", file, "--", "sh", "-c", script]
    done = run(*words)
    assert (done.returncode, done.stdout) == (7, b"done\n")
    assert b"busy, " in done.stderr
    file.unlink()
    done = run(*words[:2], "--json", *words[2:])  # on stdout there is one document
    assert (done.returncode, done.stderr) == (7, b"done\n")
    assert msgspec.json.decode(done.stdout)["processes"]


def test_of_a_program_that_was_not_seen_there_is_a_document(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "FIRST_SECONDS", 3600.0)
    assert session.look_at_program(["sh", "-c", "exit 7"], session.Shown(True, "", 3600.0, False)) == 7
    content = msgspec.json.decode(capfd.readouterr().out)
    assert content["schema"] == "numaplan/look/1" and content["matters"] is None
    assert (content["processes"], content["findings"]) == ([], [])
    assert content["reason"] == "it ended before it could be looked at" and content["nodes"]


def test_metrics_of_a_program_that_could_not_be_written_are_told_of(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "gone" / "x.prom"
    tried = tmp_path / "tried"

    def write(_shown: session.Shown, *_seen: object) -> None:
        try:
            write_document(file, b"")
        finally:
            tried.touch()

    monkeypatch.setattr(session.Shown, "write", write)
    script = f"while [ ! -e {tried} ]; do :; done; exit 7"
    assert session.look_at_program(["sh", "-c", script], session.Shown(False, str(file), 0.1, False)) == 7
    assert f"numaplan look: warning: {file}: " in capfd.readouterr().err


def test_a_machine_that_cannot_be_read_is_said_before_the_program_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def unreadable() -> None:
        raise UsageError("/: no cpus")

    monkeypatch.setattr(session, "whole_machine", unreadable)
    shown = session.Shown(as_json=False, metrics="", seconds=0.1, watch=False)
    with pytest.raises(UsageError, match="no cpus"):
        session.look_at_program(["touch", str(tmp_path / "started")], shown)
    assert not list(tmp_path.iterdir())


def test_a_program_that_ends_at_once() -> None:
    done = run("numaplan", "look", "--", "sh", "-c", "kill -SEGV $$")
    assert (done.returncode, done.stdout) == (128 + signal.SIGSEGV, b"")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([str(NO_SUCH)], f"no process {NO_SUCH}"),
        (["--cgroup", "no/such"], "no cgroup no/such"),
        (["--container", "nobody"], "no running container nobody"),
        (["--unit", "a", "--slurm", "1"], "--unit and --slurm given"),
        (["--unit", "a", "1"], "two things to look at"),
        (["--json"], "nothing given"),
        (["--", "/no/such/program"], "no such program"),
        (["1", "--metrics", "/no/such/folder/x.prom"], "no folder"),
    ],
)
def test_refusals_are_one_line(words: list[str], said: str) -> None:
    assert said in one_line_error(run("numaplan", "look", *words), "numaplan look", 2)


def test_a_process_that_ends_while_we_look(sleeper: subprocess.Popen[bytes]) -> None:
    def end(_seconds: float) -> None:
        sleeper.kill()
        sleeper.wait()

    with pytest.raises(NotSoError, match="ended while it was looked at"):
        look(whole_machine(), lambda: with_children(Path("/"), [sleeper.pid]), 0.1, end)


def test_watching_until_ctrl_c(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    file = tmp_path / "numaplan.prom"
    words = [BIN / "numaplan", "look", str(sleeper.pid), "--watch", "--seconds", "0.1", "--metrics", file]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment()
    ) as watch:
        until(file.exists)
        for _ in range(2):  # it is written before what was found is shown
            file.unlink()
            until(file.exists)
        os.kill(watch.pid, signal.SIGINT)
        said, _errors = watch.communicate(timeout=100)
    assert watch.returncode == 128 + signal.SIGINT
    assert said.count(b"NUMA does not matter here") >= 2
