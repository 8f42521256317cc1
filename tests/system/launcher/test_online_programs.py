"""`nlaunch --online` and `--attach` on real programs: whatever happens, these end as they would alone."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from numaplan.common import MachineLacksError
from numaplan.launcher.online.options import OnlineOptions
from numaplan.launcher.online.session import OnlineSession
from numaplan.launcher.process import procfs
from numaplan.machine import Machine
from numaplan.mapper import Plan
from numaplan.mapper.online.registry import COMBINED, POLICIES
from numaplan.profiler import live_events, start_sampler
from tests.support.commands import BIN, clean_environment, needs, one_line_error, run
from tests.support.outside import Processes, arguments, children, comm
from tests.support.programs import PROGRAMS, compiled
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="no schedstat")  # noqa: PTH110
NAME = "online_churn"


@pytest.fixture(scope="module")
def churn() -> Path:
    """A program that goes on until its input ends."""
    needs("perf")
    return compiled(PROGRAMS / "launcher" / f"{NAME}.c")


def alone(*words: str | Path) -> bytes:
    """What a program prints without us."""
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout


def start(*words: str | Path) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    command = [BIN / "nlaunch", *words]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=clean_environment())


class Refined:
    """nlaunch refining a program, whose journal shows how far it is."""

    def __init__(self, folder: Path, policy: str, *words: str | Path) -> None:
        self.journal = folder / "journal"
        online = ("--online", policy, "--set", "T=0.2", "--journal", self.journal)
        self.loop = start(*online, *words)

    def until_written(self, text: str, times: int = 1) -> None:
        """Return when the journal has it so many times."""

        def written() -> bool:
            assert self.loop.poll() is None, self.loop.communicate()
            return self.journal.exists() and self.journal.read_text().count(text) >= times

        until(written)

    def named(self, name: str, command: str = "") -> int:
        """The process of that name below nlaunch that does this, once it is there."""
        found: list[int] = []

        def there() -> list[int]:
            below = [pid for pid in children(self.loop.pid) if comm(pid) == name]
            found[:] = [pid for pid in below if command in arguments(pid)]
            return found

        until(there)
        return found[0]

    def end(self) -> tuple[bytes, bytes]:
        """What it and the program say in all: their input ends, and so do they."""
        return self.loop.communicate(timeout=PATIENCE_S)


def refined(folder: Path, policy: str, *words: str | Path) -> tuple[bytes, bytes]:
    """What a program and nlaunch say, which must succeed: the program ends after a few intervals."""
    run = Refined(folder, policy, *words)
    run.until_written('"observed"', 3)
    output, errors = run.end()
    assert run.loop.returncode == 0, errors
    return output, errors


@pytest.mark.slow
@pytest.mark.parametrize("policy", [*POLICIES, *COMBINED, "nimar+next-touch"])
def test_every_policy_leaves_the_output_as_it_is(churn: Path, policy: str, tmp_path: Path) -> None:
    output, errors = refined(tmp_path, policy, churn, "busy", "4")
    assert output == alone(churn, "busy", "4")
    assert f"online: {policy}:".encode() in errors
    lines = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    assert lines[-1]["note"] == "detached"
    assert all(line["policy"] == policy for line in lines)


@pytest.mark.slow
def test_the_refined_placement_is_a_plan_that_launches(churn: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    refined(tmp_path, "numaplan", "--overhead", "0.5", "--save", plan, churn, "busy", "4")
    saved = Plan.load(plan)
    assert [thread.path for thread in saved.threads] == ["0", "0.1", "0.2", "0.3", "0.4"]
    assert saved.method == "online numaplan"
    again = run("nlaunch", "--plan", plan, "--strict", churn, "busy", "4", stdin=b"")
    assert again.returncode == 0, again.stderr
    (tmp_path / "journal").unlink()
    output, errors = refined(tmp_path, "numaplan", "--plan", plan, churn, "busy", "4")
    assert b"--online continued from the plan" in errors
    assert output == alone(churn, "busy", "4")


def test_exit_code_and_signal_pass_through() -> None:
    needs("perf")
    assert run("nlaunch", "--online", "nimar", "sh", "-c", "exit 7").returncode == 7
    assert run("nlaunch", "--online", "nimar", "sh", "-c", "kill -TERM $$").returncode == 143


@pytest.mark.parametrize("code", [0, 7])
def test_the_exit_code_is_kept_where_there_is_nothing_to_save(code: int, tmp_path: Path) -> None:
    needs("perf")
    saved = tmp_path / "saved.json"
    result = run("nlaunch", "--online", "excl", "--save", saved, "sh", "-c", f"exit {code}")
    assert "--save" in one_line_error(result, "nlaunch", code)
    assert not saved.exists()


@pytest.mark.slow
def test_what_was_applied_is_told_where_there_is_nothing_to_save(churn: Path, tmp_path: Path) -> None:
    plan, report = tmp_path / "plan.json", tmp_path / "applied.json"
    refined(tmp_path, "numaplan", "--overhead", "0.5", "--save", plan, churn, "busy", "1")
    words = ("--plan", plan, "--online", "excl", "--set", "T=1000", "--report", report)
    result = run("nlaunch", *words, "--save", tmp_path / "no.json", churn, "busy", "1", stdin=b"")
    assert result.returncode == 0
    assert b"error: --save: no thread was seen" in result.stderr
    assert b"nlaunch: 2/2 threads" in result.stderr
    assert json.loads(report.read_bytes())["exit_code"] == 0


@pytest.mark.slow
def test_misuse_is_one_line(tmp_path: Path) -> None:
    needs("perf")
    one_line_error(run("nlaunch", "--online", "nonesuch", "true"), "nlaunch", 2)
    one_line_error(run("nlaunch", "--online", "nimar", "--set", "delta_perf=x", "true"), "nlaunch", 2)
    one_line_error(run("nlaunch", "--online", "nimar", "--budget", "lots", "true"), "nlaunch", 2)
    one_line_error(
        run("nlaunch", "--online", "nimar", "--save", tmp_path / "no" / "p.json", "true"), "nlaunch", 2
    )
    one_line_error(run("nlaunch", "--online", "nimar", "no-such-program"), "nlaunch", 2)
    one_line_error(run("nlaunch", "--online", "nimar"), "nlaunch", 2)
    one_line_error(run("nlaunch", "--attach", "1234567"), "nlaunch", 2)
    one_line_error(run("nlaunch", "--online", "nimar", "--attach", "4194303"), "nlaunch", 2)
    one_line_error(run("nlaunch", "--online", "nimar", "--sampler", "spe", "true"), "nlaunch", 3)
    one_line_error(run("nlaunch", "true"), "nlaunch", 2)


@pytest.mark.slow
def test_a_dry_run_is_dry(tmp_path: Path) -> None:
    needs("perf")
    mark, journal = tmp_path / "ran", tmp_path / "journal"
    begun = ("nlaunch", "--online", "nimar", "--journal", journal, "--explain")
    started = run(*begun, "touch", mark)
    assert started.returncode == 0 and b"would start touch" in started.stdout
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
        attached = run(*begun, "--attach", str(other.pid))
        other.terminate()
    assert attached.returncode == 0 and f"{other.pid}: 1 thread".encode() in attached.stdout
    assert run(*begun, "--all-mine").returncode == 0
    assert list(tmp_path.iterdir()) == []
    one_line_error(run(*begun), "nlaunch", 2)
    one_line_error(run(*begun, "no-such-program"), "nlaunch", 2)
    one_line_error(run(*begun, "--set", "T=x", "true"), "nlaunch", 2)


def test_processes_of_others_are_refused() -> None:
    needs("setpriv")
    if os.geteuid() != 0:
        pytest.skip("needs root, to be somebody else")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
        somebody = ["setpriv", "--reuid=65534", "--clear-groups"]
        words = [str(BIN / "nlaunch"), "--online", "nimar", "--attach", str(other.pid)]
        result = subprocess.run(
            [*somebody, *words], capture_output=True, env=clean_environment(), check=False
        )
    if b"Permission denied" in result.stderr:
        pytest.skip("the environment is not readable for others")
    assert "another user" in one_line_error(result, "nlaunch", 2)


@pytest.fixture
def running(churn: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [churn, "busy", "4"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        yield program
        program.kill()


@pytest.mark.slow
def test_attach_and_ctrl_c_gives_masks_back(running: "subprocess.Popen[bytes]", tmp_path: Path) -> None:
    until(lambda: len(procfs.thread_ids(running.pid)) == 5)
    before = {tid: os.sched_getaffinity(tid) for tid in procfs.thread_ids(running.pid)}
    attached = Refined(tmp_path, "di-plain", "--attach", str(running.pid))
    attached.until_written('"moved":1')
    attached.loop.send_signal(signal.SIGINT)
    _, errors = attached.end()
    assert attached.loop.returncode == 130, errors
    assert {tid: os.sched_getaffinity(tid) for tid in procfs.thread_ids(running.pid)} == before
    output, _ = running.communicate(timeout=PATIENCE_S)
    assert output.startswith(b"checksum")


def test_attach_to_a_process_that_is_ending(churn: Path) -> None:
    for _ in range(3):
        command = [churn, "brief", "20"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as program:
            result = run("nlaunch", "--online", "nimar+lmma", "--set", "T=0.1", "--attach", str(program.pid))
            assert result.returncode in (0, 2, 3), result.stderr
            assert b"Traceback" not in result.stderr
            output, _ = program.communicate(timeout=PATIENCE_S)
            assert output.startswith(b"checksum")


def ended() -> int:
    """The id of a process that has ended."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid


def test_processes_that_end_before_perf_looks_are_left_out() -> None:
    needs("perf")
    events = live_events("faults", 1)
    sampler = start_sampler(events, [ended(), os.getpid(), ended()])
    sampler.take()
    sampler.close()
    with pytest.raises(MachineLacksError, match="No such process"):
        start_sampler(events, [ended()])


def test_a_policy_that_needs_no_samples_goes_on_without(capsys: pytest.CaptureFixture[str]) -> None:
    needs("perf")
    machine = Machine.load("local")
    OnlineSession(OnlineOptions("excl"), machine, [ended()]).stop(restore=True)
    said = capsys.readouterr().err
    assert "online: without samples: perf cannot watch: " in said and "No such process" in said
    with pytest.raises(MachineLacksError, match="perf cannot watch"):
        OnlineSession(OnlineOptions("nimar"), machine, [ended()])


@pytest.mark.slow
@pytest.mark.parametrize("words", [("many", "1000"), ("brief", "400"), ("bind", "1")])
def test_threads_that_come_go_and_bind_themselves(
    churn: Path, words: tuple[str, str], tmp_path: Path
) -> None:
    output, _ = refined(tmp_path, "cimar", churn, *words)
    assert output == alone(churn, *words)


def test_perf_killed_again_and_again(churn: Path, tmp_path: Path) -> None:
    """The first time it is started again, the second time the program goes on without us."""
    run = Refined(tmp_path, "nimar+lmma", "--overhead", "1", churn, "busy", "4")
    run.named(NAME)
    for note in ("; started again", '"note":"stopped: perf '):
        os.kill(run.named("perf", "record"), signal.SIGKILL)
        run.until_written(note)
    output, errors = run.end()
    assert run.loop.returncode == 0, errors
    assert output == alone(churn, "busy", "4")
    assert b"Traceback" not in errors


def test_the_program_goes_on_when_nlaunch_is_killed(churn: Path, tmp_path: Path) -> None:
    run = Refined(tmp_path, "cimar", churn, "many", "8")
    program = Processes([run.named(NAME)])
    run.until_written('"observed"')
    run.loop.kill()
    run.loop.wait(timeout=PATIENCE_S)
    assert program.living()
    output, _ = run.end()  # their input and output are the program's, too
    assert output == alone(churn, "many", "8")
    until(lambda: not program.living())
    program.close()


def test_a_full_journal_disk_is_said_and_does_not_matter(churn: Path) -> None:
    words = ("--online", "nimar", "--set", "T=0.2", "--journal", "/dev/full", churn, "busy", "4")
    result = run("nlaunch", *words, stdin=b"")
    assert result.returncode == 0
    assert b"the journal is not complete" in result.stderr
    assert result.stdout == alone(churn, "busy", "4")
