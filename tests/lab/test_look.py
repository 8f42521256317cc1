"""`numaplan look` names what is wrong on four nodes, and its cures raise the counted share of local accesses.

All cases, and the command itself there: python -m benchmarks look. The snapshots are tests/replay/look.
"""

import os
from pathlib import Path

import pytest

from tests.support.commands import needs
from tests.support.guests import SharedGuest
from tests.support.looking import FAULTS, HEALTHY, Case, run_case, run_cured

pytestmark = pytest.mark.lab
CURES = ("numactl", "migratepages", "taskset")
QUICK = ("made on another node", "threads left their memory", "numactl with the wrong node")


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in FAULTS if case.name in QUICK], ids=lambda case: case.name)
def test_a_fault_is_named_and_cured(case: Case, four_nodes: SharedGuest, tmp_path: Path) -> None:
    needs(*CURES)
    looked = run_case(four_nodes, case, tmp_path)
    assert [finding.name for finding in looked.answer.findings] == [case.finding]
    assert looked.local_share < 0.1
    assert run_cured(four_nodes, case, looked) > 0.9


def test_a_cpuset_is_mended(four_nodes: SharedGuest, tmp_path: Path) -> None:
    if os.getuid():
        pytest.skip("only root makes cgroups")
    test_a_fault_is_named_and_cured(
        next(case for case in FAULTS if case.finding == "cpuset-without-memory"), four_nodes, tmp_path
    )


def test_a_healthy_program_has_no_finding(four_nodes: SharedGuest, tmp_path: Path) -> None:
    looked = run_case(four_nodes, HEALTHY[1], tmp_path)
    assert not looked.answer.findings and looked.local_share > 0.9
