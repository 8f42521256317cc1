"""Programs that restrict their own system calls (seccomp) run as if nobody looked."""

import os
import subprocess
from pathlib import Path

import pytest

from numaplan.profiler.identity.environment import prepare
from numaplan.profiler.identity.read import read_identity
from tests.support.launching import build, nlaunch, plan_for

pytestmark = pytest.mark.system

HOW = ["kill", "errno", "trap", "list", "strict", "itself", "alarms"]
THREADS = 6  # 0, 0.1 from before, 0.1.1, 0.2 to 0.4


@pytest.fixture(scope="module")
def program() -> str:
    built = build("sandbox")
    if subprocess.run([built, "kill", "0"], capture_output=True, check=False).returncode != 7:
        pytest.skip("system calls cannot be restricted here")
    return built


@pytest.mark.parametrize("how", HOW)
def test_the_program_runs_as_without_us(tmp_path: Path, program: str, how: str) -> None:
    alone = subprocess.run([program, how, "3"], capture_output=True, check=False)
    assert alone.returncode == 7
    result, applied = nlaunch(plan_for([program, "errno", "3"]), tmp_path, [program, how, "3"])
    assert (result.returncode, result.stdout) == (7, alone.stdout)
    assert any("seccomp" in reason for reason in applied["reasons"])
    assert not applied["ok"]  # memory
    if how not in ("strict", "itself"):
        applied_cpus = [thread["applied"] for thread in applied["threads"]]
        assert applied_cpus == [thread["planned"] for thread in applied["threads"]]
        assert len(applied_cpus) == THREADS


def test_what_it_becomes_has_its_cpus_and_sees_all(tmp_path: Path, program: str) -> None:
    argv = [program, "errno", "0", "exec", program, "errno", "2"]
    alone = subprocess.run(argv, capture_output=True, check=False)
    result, applied = nlaunch(plan_for([program, "errno", "2"]), tmp_path, argv)
    assert (result.returncode, result.stdout) == (7, alone.stdout)
    assert [thread["applied"] for thread in applied["threads"]] == [
        thread["planned"] for thread in applied["threads"]
    ]


def test_a_question_is_no_restriction(tmp_path: Path) -> None:
    """libseccomp asks what the kernel knows by calls that restrict nothing."""
    program = build("sandbox")
    result, applied = nlaunch(plan_for([program, "ask", "2"]), tmp_path, [program, "ask", "2"], "--strict")
    assert result.returncode == 7, applied["reasons"]
    assert applied["ok"]


@pytest.mark.parametrize("how", HOW)
def test_it_is_recorded_as_without_us(tmp_path: Path, program: str, how: str) -> None:
    environment = prepare(tmp_path, os.environ)
    result = subprocess.run([program, how, "3"], env=environment, capture_output=True, check=False)
    assert (result.returncode, result.stdout[:5]) == (7, b"done ")
    paths = {thread.path for thread in read_identity(tmp_path).threads}
    assert paths == ({"0"} if how == "strict" else {"0", "0.1", "0.1.1", "0.2", "0.3", "0.4"})
