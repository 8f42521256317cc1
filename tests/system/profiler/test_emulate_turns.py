"""Turns are short while threads take many lines from each other."""

from pathlib import Path

import pytest

from numaplan.profiler import Trace
from tests.support.emulating import MARKS, record
from tests.support.programs import PROGRAMS, compiled

pytestmark = MARKS
THREADS = 4


@pytest.fixture(scope="module")
def program() -> Path:
    return compiled(PROGRAMS / "contended_lines.c")


def mean_turn(program: Path, path: Path, lines: int) -> float:
    """Accesses in which a thread takes each of the lines once."""
    arguments = f"{lines} 2000 {THREADS}"
    with Trace.open(record(program, path, arguments, "--machine", "4x4")) as trace:
        totals = dict(trace.rows("SELECT event, sum(value) FROM counters GROUP BY event"))
    return float(totals["loads"] + totals["stores"]) * lines / float(totals["coherence"])


def test_turns_are_short_while_many_lines_are_taken(program: Path, tmp_path: Path) -> None:
    assert mean_turn(program, tmp_path / "one.db", 1) > 600
    assert mean_turn(program, tmp_path / "eight.db", 8) < 400
