"""The pytest fixture, in a pytest of its own."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from numaplan.mapper import PlanOptions, make_plan
from numaplan.mapper.workload.workload import workload_of_files
from numaplan.profiler import Machine

pytestmark = pytest.mark.system
TESTS = """
def test_good(numaplan_check):
    verdict = numaplan_check("comm.csv", "good.json")
    assert verdict.ok and verdict.regress == 0

def test_poor(numaplan_check):
    numaplan_check("comm.csv", "poor.json", max_regress="5%")

def test_poor_but_allowed(numaplan_check):
    numaplan_check("comm.csv", "poor.json", max_regress="1e9")

def test_missing(numaplan_check):
    numaplan_check("comm.csv", "none.json")

def test_directed(numaplan_check):
    numaplan_check("directed.csv", "good.json")

def test_directed_symmetrised(numaplan_check):
    assert numaplan_check("directed.csv", "good.json", symmetrise=True).ok
"""


def test_fixture(tmp_path: Path) -> None:
    comm = np.kron(np.array([[0, 1], [1, 0]]), np.eye(4)) * 100 + 1
    np.savetxt(tmp_path / "comm.csv", comm - np.diag(np.diag(comm)), delimiter=",")
    np.savetxt(tmp_path / "directed.csv", np.triu(comm, 1), delimiter=",")
    workload = workload_of_files(tmp_path / "comm.csv", None)
    for name, method in (("good", "best"), ("poor", "compact")):
        make_plan(workload, Machine.load("4x2"), PlanOptions(method=method)).plan.save(
            tmp_path / f"{name}.json"
        )
    (tmp_path / "test_placement.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "test_placement.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert "3 passed" in done.stdout and "3 failed" in done.stdout, done.stdout
    for name, outcome in (("good", "PASSED"), ("poor", "FAILED"), ("poor_but_allowed", "PASSED")):
        assert f"{outcome} test_placement.py::test_{name}" in done.stdout
    assert "worse than necessary" in done.stdout and "none.json" in done.stdout
    assert "PASSED test_placement.py::test_directed_symmetrised" in done.stdout
