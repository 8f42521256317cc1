"""Programs that make, watch and end processes in ways that few go: they run as if nobody looked."""

import os
import subprocess
from pathlib import Path

import pytest

from numaplan.machine import Machine
from numaplan.profiler.backends.choice import backend_of
from numaplan.profiler.backends.emulation.qemu import find_qemu
from tests.support.commands import run
from tests.support.launching import nlaunch, plan_for
from tests.support.programs import PROGRAMS, compiled

pytestmark = pytest.mark.system

WAYS = [
    "shares_memory",
    "shares_files",
    "watched",
    "another_stack",
    "closes_all",
    "maps_beside",
    "vforks",
    "execs_nothing",
]


@pytest.fixture(scope="module")
def program() -> str:
    return str(compiled(PROGRAMS / "common/odd_calls.c", flags=("-std=gnu11", "-O1", "-D_GNU_SOURCE")))


@pytest.mark.parametrize("way", WAYS)
def test_launched(tmp_path: Path, program: str, way: str) -> None:
    if subprocess.run([program, way], capture_output=True, check=False).returncode:
        pytest.skip("this system does not let the program do that")
    result, _ = nlaunch(plan_for([program, "none"]), tmp_path, [program, way])
    assert (result.returncode, result.stdout) == (0, f"{way}\n".encode())


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_recorded(tmp_path: Path, program: str, way: str) -> None:
    """As under QEMU alone, which has no ptrace, nor processes that share memory or files."""
    if not backend_of("emulate").available(Machine.load("2x2")).ok:
        pytest.skip("nothing can be emulated here")
    alone = subprocess.run([*find_qemu(os.uname().machine), program, way], capture_output=True, check=False)
    words = ("nprof", "record", "--backend", "emulate", "--period", "50", "-o", tmp_path / "t.db")
    result = run(*words, "--", program, way)
    assert (result.returncode, result.stdout) == (alone.returncode, alone.stdout), result.stderr
    assert (tmp_path / "t.db").exists() and b"internal error" not in result.stderr
