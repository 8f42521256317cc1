"""`nlaunch --online` and `--attach` on real programs: whatever happens, these end as they would alone."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from numaplan.launcher.process import procfs
from numaplan.mapper import Plan
from numaplan.mapper.online.registry import COMBINED, POLICIES
from tests.support.commands import BIN, clean_environment, needs, one_line_error, run
from tests.support.programs import EXAMPLES, PROGRAMS, compiled
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="no schedstat")  # noqa: PTH110


@pytest.fixture(scope="module")
def partners() -> Path:
    needs("perf")
    return compiled(EXAMPLES / "partners.c")


@pytest.fixture(scope="module")
def churn() -> Path:
    needs("perf")
    return compiled(PROGRAMS / "online_churn.c")


def _alone(*words: str | Path) -> bytes:
    return subprocess.run([*map(str, words)], capture_output=True, check=True).stdout


def _start(*words: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [str(BIN / "nlaunch"), *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
    )


def _child_named(pid: int, name: str, seconds: float = 30.0) -> int:
    """The descendant of that name, once it is there."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for one in procfs.families([pid]):
            if Path(f"/proc/{one}/comm").read_text().strip() == name:
                return one
        time.sleep(0.05)
    raise AssertionError(f"no {name} under {pid}")


@pytest.mark.parametrize("policy", [*POLICIES, *COMBINED, "nimar+next-touch"])
def test_every_policy_leaves_the_output_as_it_is(partners: Path, policy: str, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    result = run("nlaunch", "--online", policy, "--set", "T=0.2", "--journal", journal, partners, 4, 2500)
    assert result.returncode == 0, result.stderr
    assert result.stdout == _alone(partners, "4", "2500")
    assert f"online: {policy}:".encode() in result.stderr
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert lines[-1]["note"] == "detached"
    assert all(line["policy"] == policy for line in lines)


def test_the_refined_placement_is_a_plan_that_launches(partners: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    words = (
        "--online",
        "numaplan",
        "--set",
        "T=0.2",
        "--overhead",
        "0.5",
        "--save",
        plan,
        partners,
        4,
        40000,
    )
    result = run("nlaunch", *words)
    assert result.returncode == 0, result.stderr
    saved = Plan.load(plan)
    assert [thread.path for thread in saved.threads] == ["0", "0.1", "0.2", "0.3"]
    assert saved.method == "online numaplan"
    again = run("nlaunch", "--plan", plan, "--strict", partners, 4, 100)
    assert again.returncode == 0, again.stderr
    both = run("nlaunch", "--plan", plan, "--online", "numaplan", "--set", "T=0.2", partners, 4, 4000)
    assert both.returncode == 0, both.stderr
    assert b"--online continued from the plan" in both.stderr
    assert both.stdout == _alone(partners, "4", "4000")


def test_exit_code_and_signal_pass_through() -> None:
    needs("perf")
    assert run("nlaunch", "--online", "nimar", "sh", "-c", "exit 7").returncode == 7
    assert run("nlaunch", "--online", "nimar", "sh", "-c", "kill -TERM $$").returncode == 143


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


def test_processes_of_others_are_refused() -> None:
    needs("setpriv")
    if os.geteuid() != 0:
        pytest.skip("needs root, to be somebody else")
    other = subprocess.Popen(["sleep", "60"])
    try:
        somebody = ["setpriv", "--reuid=65534", "--clear-groups"]
        words = [str(BIN / "nlaunch"), "--online", "nimar", "--attach", str(other.pid)]
        result = subprocess.run(
            [*somebody, *words], capture_output=True, env=clean_environment(), check=False
        )
        if b"Permission denied" in result.stderr:
            pytest.skip("the environment is not readable for others")
        assert "another user" in one_line_error(result, "nlaunch", 2)
    finally:
        other.kill()
        other.wait()


@pytest.fixture
def running(churn: Path) -> Iterator[subprocess.Popen[bytes]]:
    program = subprocess.Popen([churn, "busy", "4", "600"], stdout=subprocess.PIPE)
    yield program
    program.kill()
    program.wait()


def test_attach_and_ctrl_c_gives_masks_back(running: "subprocess.Popen[bytes]", tmp_path: Path) -> None:
    pid = running.pid
    before = {tid: os.sched_getaffinity(tid) for tid in procfs.thread_ids(pid)}
    journal = tmp_path / "journal"
    loop = _start("--online", "di-plain", "--set", "T=0.2", "--attach", pid, "--journal", journal)
    until(lambda: journal.exists() and '"moved":1' in journal.read_text())
    loop.send_signal(signal.SIGINT)
    _out, err = loop.communicate(timeout=30)
    assert loop.returncode == 130, err
    for tid in procfs.thread_ids(pid):
        if tid in before:
            assert os.sched_getaffinity(tid) == before[tid]
    running.terminate()  # it ends as it would when its time is over
    out, _ = running.communicate(timeout=30)
    assert out.startswith(b"checksum")


def test_attach_to_a_process_that_is_ending(churn: Path) -> None:
    for _ in range(3):
        program = subprocess.Popen([churn, "brief", "20", "1000"], stdout=subprocess.PIPE)
        result = run("nlaunch", "--online", "nimar+lmma", "--set", "T=0.1", "--attach", program.pid)
        assert result.returncode in (0, 2, 3), result.stderr
        assert b"Traceback" not in result.stderr
        out, _ = program.communicate(timeout=30)
        assert out.startswith(b"checksum")


@pytest.mark.parametrize("words", [("many", "1000", "4"), ("brief", "400", "10000"), ("bind", "3")])
def test_threads_that_come_go_and_bind_themselves(churn: Path, words: tuple[str, ...]) -> None:
    result = run("nlaunch", "--online", "cimar", "--set", "T=0.2", churn, *words)
    assert result.returncode == 0, result.stderr
    assert result.stdout == _alone(churn, *words[:2], "1" if words[0] == "many" else "100")


def test_perf_killed_again_and_again(partners: Path) -> None:
    loop = _start("--online", "nimar+lmma", "--set", "T=0.1", "--overhead", "1", partners, "4", "40000")
    _child_named(loop.pid, "partners")
    for _ in range(2):
        try:
            os.kill(_child_named(loop.pid, "perf", 3.0), signal.SIGKILL)
        except (AssertionError, ProcessLookupError):
            break
        time.sleep(0.5)
    out, err = loop.communicate(timeout=120)
    assert loop.returncode == 0, err
    assert out == _alone(partners, "4", "40000")
    assert b"Traceback" not in err


def test_the_program_goes_on_when_nlaunch_is_killed(churn: Path) -> None:
    loop = _start("--online", "cimar", "--set", "T=0.1", churn, "many", "8", "4")
    program = _child_named(loop.pid, "online_churn"[:15])
    time.sleep(0.7)
    loop.kill()
    out, _ = loop.communicate(timeout=30)  # its stdout is the program's: the end of both
    assert out == _alone(churn, "many", "8", "1")
    until(lambda: not procfs.is_alive(program))


def test_a_full_journal_disk_is_said_and_does_not_matter(partners: Path) -> None:
    result = run(
        "nlaunch", "--online", "nimar", "--set", "T=0.2", "--journal", "/dev/full", partners, 4, 5000
    )
    assert result.returncode == 0
    assert b"the journal is not complete" in result.stderr
    assert result.stdout == _alone(partners, "4", "5000")
