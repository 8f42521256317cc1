"""Plans for another program, script, build or machine: noticed, refused, or fitted."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from numaplan.machine import Machine
from tests.support.launching import NLAUNCH, build, nlaunch, plan_for

pytestmark = pytest.mark.system


def test_another_program_is_noticed(tmp_path: Path) -> None:
    plan = plan_for([build("memory")])
    other = build("memory", "-O2", "-DOTHER")
    result, applied = nlaunch(plan, tmp_path, [other], "--strict")
    assert result.returncode == 1
    name = Path(other).name
    assert f"the plan was made for another program (memory, not {name})" in applied["reasons"]


def test_a_program_that_lost_the_library_on_its_way_is_told_how_to_keep_it(tmp_path: Path) -> None:
    program = build("memory")
    plan = plan_for([program])
    for words, lost in ((["env", "-i", program], True), (["env", program], False), (["true"], False)):
        _, applied = nlaunch(plan, tmp_path, words)
        assert ("took nlaunch's variables from it" in str(applied["reasons"])) == lost, words


def test_the_same_build_by_another_name_is_placed_as_ever(tmp_path: Path) -> None:
    plan = plan_for([build("memory")])
    renamed = tmp_path / "renamed"
    shutil.copy(build("memory"), renamed)
    _, as_ever = nlaunch(plan, tmp_path, [build("memory")])
    result, applied = nlaunch(plan, tmp_path, [str(renamed)])
    assert result.returncode == 0
    assert {region["region"]["kind"] for region in applied["memory"]} >= {"heap", "static"}
    assert placed(applied) == placed(as_ever)
    assert applied["reasons"] == as_ever["reasons"]


def placed(applied: dict[str, Any]) -> list[tuple[str, bool]]:
    """Which regions appeared, by name."""
    return sorted((region["region"]["name"], region["appeared"]) for region in applied["memory"])


@pytest.mark.slow
def test_another_script_of_the_interpreter_is_noticed(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("print(1)")
    plan = plan_for([sys.executable, str(tmp_path / "a.py")])
    same, about_same = nlaunch(plan, tmp_path, [sys.executable, "-B", str(tmp_path / "a.py")])
    other, about_other = nlaunch(plan, tmp_path, [sys.executable, str(tmp_path / "b.py")])
    assert same.stdout == other.stdout == b"1\n"
    assert "script" not in str(about_same["reasons"])
    assert "the plan was made for another script (a.py, not b.py)" in about_other["reasons"]
    assert b"nlaunch: warning: " in other.stderr and b"another script (a.py, not b.py)" in other.stderr


def test_another_build_by_the_same_name_is_refused_or_taken(tmp_path: Path) -> None:
    plan = plan_for([build("memory")])
    same_name = tmp_path / Path(build("memory")).name
    same_name.write_bytes(Path(build("memory", "-O2", "-DOTHER")).read_bytes())
    same_name.chmod(0o755)
    plan.save(tmp_path / "plan.json")
    command = [NLAUNCH, "--plan", tmp_path / "plan.json", same_name]
    refused = subprocess.run(command, capture_output=True, check=False)
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert b"another build of the program" in refused.stderr and b"--remap" in refused.stderr
    taken, applied = nlaunch(plan, tmp_path, [str(same_name)], "--remap")
    assert taken.returncode == 0 and any("another build" in reason for reason in applied["reasons"])


def test_plan_for_another_machine_is_refused_or_remapped(tmp_path: Path) -> None:
    argv = [build("tree"), "4", "1"]
    plan = plan_for(argv, Machine.load("4x2"))
    plan.save(tmp_path / "plan.json")
    refused = subprocess.run(
        [NLAUNCH, "--plan", tmp_path / "plan.json", *argv], capture_output=True, check=False
    )
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert refused.stderr.count(b"\n") == 1 and b"--remap" in refused.stderr
    result, applied = nlaunch(plan, tmp_path, argv, "--remap", "--strict")
    assert result.returncode == 0, result.stderr
    assert applied["ok"] is True and len(applied["threads"]) == 9
