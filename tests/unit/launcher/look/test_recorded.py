"""What is found in recorded /proc trees of programs that were placed wrongly or well in the lab.

`python -m benchmarks look` records them anew.
"""

import lzma
from functools import cache
from pathlib import Path

import msgspec
import pytest

from tests.support.looking import FAULTS, HEALTHY, Case, answered

SNAPSHOTS = Path(__file__).parents[3] / "replay/look/snapshots.json.xz"

SPREAD = ("each with its own part", "interleaved for all nodes", "more threads than cpus")


@cache
def snapshots() -> dict[str, str]:
    """What programs/look/work.c wrote, by the case's name."""
    return msgspec.json.decode(lzma.decompress(SNAPSHOTS.read_bytes()), type=dict[str, str])


def name(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", FAULTS, ids=name)
def test_a_fault_is_named(case: Case, tmp_path: Path) -> None:
    answer = answered(snapshots()[case.name], tmp_path, case.machine)
    assert [finding.name for finding in answer.findings] == [case.finding]
    (finding,) = answer.findings
    assert finding.evidence and finding.cost and finding.cure and finding.weight > 0
    assert answer.reason == ""


@pytest.mark.parametrize("case", HEALTHY, ids=name)
def test_a_healthy_program_has_no_finding(case: Case, tmp_path: Path) -> None:
    answer = answered(snapshots()[case.name], tmp_path, case.machine)
    assert not answer.findings and answer.reason
    assert answer.sure == (case.name not in SPREAD)


@pytest.mark.parametrize(
    ("case", "cure"),
    [
        ("made on another node", r"migratepages \d+ 0(,3)? 1"),
        ("made on all nodes", r"migratepages \d+ 0-1,3 2"),
        ("threads left their memory", r"taskset -acp 0-1 \d+"),
        ("numactl with the wrong node", r"numactl --cpunodebind=1 --membind=1 /opt/work 2:t1:6 3:t1:6"),
        ("interleaved, on one node", r"numactl --cpunodebind=1 --membind=1 /opt/work 2:t1:6 3:t1:6"),
        ("a cpuset without its memory", r"echo 1 > /sys/fs/cgroup/look/cpuset.mems"),
        ("threads on one cpu", r"taskset -cp 3 \d+"),
        ("affinity for one cpu", r"taskset -acp 2-3 \d+"),
        ("one thread made all, for eight", r"nprof record -o trace.db -- /opt/work .*"),
    ],
)
def test_the_cure_is_a_command_to_type(case: str, cure: str, tmp_path: Path) -> None:
    import re

    (finding,) = answered(snapshots()[case], tmp_path).findings
    assert re.fullmatch(cure, finding.cure[0])
