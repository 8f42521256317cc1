"""An interrupt before anything of ours runs is Python's to show; the fuzzer tells it from all others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.left_over import is_of_pythons_start


@pytest.mark.parametrize(
    ("imported", "before_us"), [("numaplan.start", True), ("numaplan.common.interrupts", False)]
)
def test_where_it_came_is_known(tmp_path: Path, imported: str, before_us: bool) -> None:
    (tmp_path / "signal.py").write_text("raise KeyboardInterrupt\n")  # as if it came while it is imported
    done = subprocess.run(
        [sys.executable, "-c", f"import {imported}"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.count("Traceback") == 1
    assert is_of_pythons_start(done.stderr) == before_us
    assert not is_of_pythons_start("nprof: error: interrupted\n")
