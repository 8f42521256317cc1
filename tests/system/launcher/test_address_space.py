"""How much of a program's address space the libraries take: programs limit theirs (ulimit -v, setrlimit)."""

import os
import subprocess
from pathlib import Path

import pytest

from numaplan.launcher.enforce.plan_table import LIBRARY as ENFORCE
from numaplan.profiler.identity.environment import LIBRARY as RECORD, prepare

pytestmark = pytest.mark.system

MOST = 8 << 20


@pytest.mark.parametrize("library", [RECORD, ENFORCE], ids=lambda library: library.name)
def test_it_is_little(tmp_path: Path, library: Path) -> None:
    def bytes_of(environment: dict[str, str]) -> int:
        statm = subprocess.run(
            ["cat", "/proc/self/statm"], env=environment, stdout=subprocess.PIPE, check=True
        ).stdout
        return int(statm.split()[0]) * os.sysconf("SC_PAGE_SIZE")

    alone = bytes_of(dict(os.environ))
    assert bytes_of(prepare(tmp_path, os.environ, library)) - alone < MOST
