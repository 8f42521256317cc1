"""Why something was not applied, by what the system says."""

import errno
import os
from pathlib import Path

import pytest

from numaplan.launcher.verify.reasons import affinity_change, binding_failure, placement_failure


def system(root: Path, free_kb: int = 500) -> Path:
    """Cpus 0-3, of which 3 is offline and 2 outside the cpuset; nodes 0 and 1, of which 1 is outside it."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/status").write_text("Name:\tx\nCpus_allowed_list:\t0-1\nMems_allowed_list:\t0,2\n")
    (root / "sys/devices/system/cpu").mkdir(parents=True)
    (root / "sys/devices/system/cpu/online").write_text("0-2\n")
    for node in range(2):
        place = root / f"sys/devices/system/node/node{node}"
        place.mkdir(parents=True)
        words = f"Node {node} MemTotal:  100000 kB\nNode {node} MemFree:  {free_kb} kB\n"
        (place / "meminfo").write_text(words)
    return root


def test_cpus(tmp_path: Path) -> None:
    root = system(tmp_path)
    assert binding_failure([0, 3], errno.EINVAL, root) == "cpu 3 is offline"
    assert binding_failure([2], errno.EINVAL, root).startswith("cpu 2 is outside this process's cpuset")
    assert binding_failure([1], errno.EPERM, root).startswith("Operation not permitted")
    assert binding_failure([1], errno.EINVAL, root).startswith("cpu 1 was not in the thread's cpuset then")
    assert binding_failure([0, 1], errno.EINVAL, root).startswith(
        "none of them was in the thread's cpuset then"
    )


def test_bound_once_and_elsewhere_now(tmp_path: Path) -> None:
    root = system(tmp_path)
    assert affinity_change([3], [0, 1], root) == "cpu 3 is offline"
    assert affinity_change([1, 2], [1], root).startswith("cpu 2 is outside this process's cpuset")
    assert affinity_change([0, 1], [1], root).startswith(
        "only 1 of them was allowed (cpuset), or the program"
    )
    assert affinity_change([0], [1], root) == "the program set its own affinity"


def test_what_we_are_bound_to_ourselves_is_no_cpuset() -> None:
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) < 2:
        pytest.skip("one cpu")
    os.sched_setaffinity(0, mine[:1])
    try:
        assert affinity_change(mine[1:2], mine[:1]) == "the program set its own affinity"
        assert binding_failure(mine[1:2], errno.EPERM).startswith("Operation not permitted")
        assert os.sched_getaffinity(0) == set(mine[:1])
    finally:
        os.sched_setaffinity(0, mine)


def test_nodes(tmp_path: Path) -> None:
    root = system(tmp_path)
    assert placement_failure(0, root=root) == "node 0 was full"
    assert "outside this process's cpuset" in placement_failure(1, root=root)
    assert placement_failure(2, root=root) == "there is no node 2"


def test_nothing_is_made_up(tmp_path: Path) -> None:
    root = system(tmp_path / "roomy", free_kb=50000)
    assert placement_failure(0, root=root) == ""
    assert placement_failure(5, root=tmp_path / "empty") == ""
    odd = system(tmp_path / "odd")
    (odd / "sys/devices/system/cpu/online").write_text("0-999999999\n")
    assert "cpuset" in binding_failure([2], errno.EINVAL, odd)
