"""What a terminal shows while `nprof record` runs a program that writes to it, too."""

import re
import sys
from pathlib import Path

import pytest

from tests.support.commands import BIN, on_terminal

pytestmark = pytest.mark.system
PROGRAM = "for step in range(4): print('step', step, flush=True)\ninput()"
DRAWN = r"\x1b\[24;1H\x1b\[2m([\d,]+) samples/s, ([\d,]+) in all, [\d.]+ MB, 0 lost, \d+ threads"


@pytest.mark.parametrize("backend", ["emulate", "faults"])
def test_a_line_comes_and_goes_and_the_programs_words_stay(tmp_path: Path, backend: str) -> None:
    words = [BIN / "nprof", "record", "--backend", backend, "-o", tmp_path / "trace.db", "--"]
    code, shown = on_terminal([*words, sys.executable, "-S", "-c", PROGRAM], DRAWN)
    if code == 3:
        pytest.skip(shown)
    assert code == 0, shown
    assert re.search(DRAWN, shown)
    assert all(f"step {step}\r\n" in shown for step in range(4))
    after = shown.rpartition("\x1b[r")[2]  # all rows scroll again before anything else is said
    assert "samples/s" not in after and "samples of" in after
