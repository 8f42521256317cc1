"""A launch within another: of two, the inner one holds."""

import subprocess
from pathlib import Path

import pytest

from tests.support.launching import NLAUNCH
from tests.support.outside import plan_of_threads

pytestmark = [pytest.mark.system, pytest.mark.slow]


def test_within_a_launch_without_a_plan_one_has_its_own_library_alone(tmp_path: Path) -> None:
    """The outer's, which names threads for --save, would log the same threads once more."""
    plan_of_threads([("p0", "0")]).save(tmp_path / "plan.json")
    outer = [NLAUNCH, "-q", "--online", "excl", "--save", tmp_path / "saved.json"]
    inner = [NLAUNCH, "-q", "--plan", tmp_path / "plan.json", "env"]
    told = subprocess.run([*outer, *inner], capture_output=True, check=True).stdout
    assert told.count(b"enforce.so") == 1 and b"preload.so" not in told


def test_within_a_plan_a_launch_without_one_is_without(tmp_path: Path) -> None:
    plan_of_threads([("p0", "0")]).save(tmp_path / "plan.json")
    outer = [NLAUNCH, "-q", "--plan", tmp_path / "plan.json", NLAUNCH, "-q", "--online", "excl"]
    for more, libraries in (([], 0), (["--save", tmp_path / "saved.json"], 1)):
        result = subprocess.run([*outer, *more, "env"], capture_output=True, check=True)
        assert b"NUMAPLAN_PLAN" not in result.stdout and b"enforce.so" not in result.stdout
        assert result.stdout.count(b"preload.so") == libraries
