"""What is read of trees of /proc and /sys, also of strange ones."""

from pathlib import Path

import pytest

from numaplan.common import UsageError
from numaplan.launcher.look.read import groups
from numaplan.launcher.look.read.devices import open_devices
from numaplan.launcher.look.read.model import Device, Part
from numaplan.launcher.look.read.numa_maps import read_numa_maps
from numaplan.launcher.look.read.processes import cgroup_of, read_process
from numaplan.launcher.look.read.system import read_system

LINES = r"""
5581a000 default file=/usr/bin/app mapped=2 N0=2 kernelpagesize_kB=4
5581b000 default file=/usr/bin/app anon=3 dirty=3 N1=3 kernelpagesize_kB=4
5581c000 bind:1 heap anon=4 dirty=4 N1=4 kernelpagesize_kB=4
7f000000 interleave:0-1 anon=4 dirty=4 N0=2 N1=2 kernelpagesize_kB=4
7f100000 prefer (many):0-1 anon=1 dirty=1 N0=1 kernelpagesize_kB=4
7f200000 default file=/anon_hugepage\040(deleted) huge anon=2 dirty=2 N1=2 kernelpagesize_kB=2048
7f300000 default file=/dev/shm/x\040y dirty=8 N0=8 kernelpagesize_kB=4
7f400000 default file=/usr/lib/libnuma.so.1.0.0 mapped=5 N0=5 kernelpagesize_kB=4
7ff00000 default stack anon=5 dirty=5 N0=5 kernelpagesize_kB=4
no line of numa_maps
"""


def write(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def test_memory_by_policy_and_kind() -> None:
    memory = read_numa_maps(LINES.splitlines())
    assert memory.parts == (
        Part("default", "file", {0: 7 * 4096}),
        Part("default", "anon", {1: 3 * 4096}),
        Part("bind:1", "heap", {1: 4 * 4096}),
        Part("interleave:0-1", "anon", {0: 2 * 4096, 1: 2 * 4096}),
        Part("prefer (many):0-1", "anon", {0: 4096}),
        Part("default", "huge", {1: 4 << 20}),
        Part("default", "shared", {0: 8 * 4096}),
        Part("default", "stack", {0: 5 * 4096}),
    )
    assert memory.libraries == ("libnuma.so.1.0.0",) and memory.huge_page_bytes == 2 << 20


STAT = "7 (a) b (c) R 1 " + " ".join(["0"] * 9) + " 30 20 " + " ".join(["0"] * 23) + " 3 0"


def test_a_process_with_a_strange_name_and_one_that_ends(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "proc/7/status": "Name:\ta) b (c\nState:\tR (running)\nSeccomp:\t2\nVmSwap:\t  12 kB\n",
            "proc/7/task/7/stat": STAT,
            "proc/7/task/7/status": "Cpus_allowed_list:\t2-3\nMems_allowed_list:\t1\n",
            "proc/7/cmdline": "./a\0-x\0",
            "proc/7/cgroup": "4:cpuset:/jobs\n0::/\n",
            "proc/8/status": "Name:\tgone\nState:\tZ (zombie)\n",
        },
    )
    found = read_process(tmp_path, 7, whole=True)
    assert found is not None and found.argv == ("./a", "-x") and found.seccomp and found.swapped == 12 << 10
    (thread,) = found.threads
    assert (thread.name, thread.cpu, thread.cpus, thread.mems) == ("a) b (c", 3, (2, 3), (1,))
    assert thread.ran_ns == 500_000_000
    assert found.memory is None and "numa_maps" in found.hidden
    assert cgroup_of(tmp_path, 7) == "/sys/fs/cgroup/cpuset/jobs"
    assert read_process(tmp_path, 8, whole=True) is None and read_process(tmp_path, 9, whole=False) is None


def test_a_kernel_without_numa(tmp_path: Path) -> None:
    write(tmp_path, {"proc/stat": "cpu  1 0 1 8 0 0 0 0\ncpu0 1 0 1 8 0 0 0 0 0 0\n"})
    system = read_system(tmp_path, ())
    assert (system.nodes, system.balancing, system.cpus) == ({}, None, {0: (2, 8)})


def test_devices_and_their_nodes(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "proc/driver/nvidia/gpus/0000:65:00.0/information": "Model: \t\t A\nDevice Minor: \t 3\n",
            "sys/bus/pci/devices/0000:65:00.0/numa_node": "1\n",
            "sys/class/drm/renderD128/device/numa_node": "0\n",
            "sys/class/infiniband_verbs/uverbs0/device/numa_node": "-1\n",
        },
    )
    fds = tmp_path / "proc/7/fd"
    fds.mkdir(parents=True)
    for number, path in enumerate(
        ("/dev/nvidia3", "/dev/dri/renderD128", "/dev/infiniband/uverbs0", "/dev/null")
    ):
        (fds / str(number)).symlink_to(path)
    found = open_devices(tmp_path, tmp_path / "proc/7")
    assert found == (Device("/dev/dri/renderD128", 0), Device("/dev/nvidia3", 1))


def tree(root: Path) -> Path:
    """Processes 10 (with child 11) and 12, in a unit, a container and a job."""
    for pid, parent in ((10, 1), (11, 10), (12, 1)):
        write(root, {f"proc/{pid}/stat": f"{pid} (x) S {parent} 0"})
    base = "sys/fs/cgroup"
    write(
        root,
        {
            f"{base}/system.slice/app.service/cgroup.procs": "10\n",
            f"{base}/system.slice/app.service/sub/cgroup.procs": "11\n",
            f"{base}/system.slice/docker-{'ab12' * 16}.scope/cgroup.procs": "12\n",
            f"{base}/system.slice/slurmstepd.scope/job_77/step_0/cgroup.procs": "11\n12\n",
            f"{base}/empty/cgroup.procs": "",
        },
    )
    return root


def test_groups_of_processes(tmp_path: Path) -> None:
    root = tree(tmp_path)
    assert groups.with_children(root, [10]) == (10, 11)
    assert groups.of_cgroup(root, "/sys/fs/cgroup/system.slice/app.service") == (10, 11)
    assert groups.of_cgroup(root, "system.slice") == (10, 11, 12)
    assert groups.of_container(root, "ab12ab12ab12") == (12,)
    assert groups.of_slurm_job(root, "77") == (11, 12)
    assert groups.of_unit(root, "app") == groups.of_unit(root, "app.service") == (10, 11)


def test_groups_that_are_not(tmp_path: Path) -> None:
    root = tree(tmp_path)
    with pytest.raises(UsageError, match="no process 99"):
        groups.with_children(root, [99])
    for path in ("nowhere", "../../proc"):
        with pytest.raises(UsageError, match="no cgroup"):
            groups.of_cgroup(root, path)
    with pytest.raises(UsageError, match="no processes"):
        groups.of_cgroup(root, "empty")
    with pytest.raises(UsageError, match="no running container"):
        groups.of_container(root, "nobody")
    with pytest.raises(UsageError, match="Slurm job 1"):
        groups.of_slurm_job(root, "1")
    with pytest.raises(UsageError, match=r"unit nobody\.service"):
        groups.of_unit(root, "nobody")
