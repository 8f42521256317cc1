"""What /proc tells of processes."""

import os
from pathlib import Path

import pytest

from numaplan.launcher.process import procfs


def test_a_users_processes_are_none_of_the_kernels() -> None:
    assert os.getpid() in procfs.processes_of(os.geteuid())
    kernel = Path("/proc/2/comm")
    if not kernel.exists() or kernel.read_text() != "kthreadd\n":
        pytest.skip("the kernel's threads are not seen in here")
    assert 2 not in procfs.processes_of(0)
