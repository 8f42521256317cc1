"""What tests of plans that are found by themselves share."""

from pathlib import Path

import pytest

from tests.support.auto_runs import Store
from tests.support.programs import PROGRAMS, compiled


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


@pytest.fixture
def work() -> str:
    return str(compiled(PROGRAMS / "launcher/auto_work.c", flags=("-O1", "-pthread")))
