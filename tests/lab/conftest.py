"""Fixtures of the lab's tests: QEMU and a kernel, fetched if they can be; programs to run."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from numaplan.common import NumaplanError
from numaplan.launcher.lab.doctor import diagnose
from numaplan.launcher.lab.fetch import set_up

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def lab() -> Path:
    """The folder of our commands, the lab being ready; skips where it cannot be made so."""
    if not diagnose().ok:
        try:
            set_up([], False, print)
        except NumaplanError as error:
            pytest.skip(f"the lab cannot be set up here: {error}")
    if lacking := [check.found for check in diagnose().checks if not check.ok]:
        pytest.skip(f"the lab cannot run here: {lacking[0]}")
    return Path(sys.executable).parent


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `known`, `seen` and the examples, compiled."""
    if shutil.which("cc") is None:
        pytest.skip("cc is not installed")
    folder = tmp_path_factory.mktemp("programs")
    sources = [HERE / "known.c", HERE / "seen.c", *(HERE.parents[1] / "examples").glob("*.c")]
    for source in sources:
        command = ["cc", "-std=gnu11", "-O2", "-g", "-D_GNU_SOURCE", "-pthread", str(source), "-o"]
        subprocess.run([*command, str(folder / source.stem)], check=True, timeout=60)
    return folder
