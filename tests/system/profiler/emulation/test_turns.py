"""Turns are short while threads take many lines from each other, and not of one length for all."""

from pathlib import Path

import pytest

from numaplan.profiler import Trace
from tests.support.emulating import MARKS, record
from tests.support.programs import OPTIMISED, PROGRAMS, compiled

pytestmark = MARKS


@pytest.fixture(scope="module")
def program() -> Path:
    return compiled(PROGRAMS / "recording/contended_lines.c")


def taken(program: Path, path: Path, arguments: str) -> float:
    """Accesses in which a thread takes one line from another, in the mean."""
    with Trace.open(record(program, path, arguments, "--machine", "4x4")) as trace:
        totals = dict(trace.rows("SELECT event, sum(value) FROM counters GROUP BY event"))
    return float(totals["loads"] + totals["stores"]) / float(totals["coherence"])


@pytest.mark.slow
def test_turns_are_short_while_many_lines_are_taken(program: Path, tmp_path: Path) -> None:
    """In each turn each line is taken once: 400 accesses are less than half of a usual turn."""
    assert taken(program, tmp_path / "one.db", "1") > 600
    assert taken(program, tmp_path / "eight.db", "8") < 400 / 8


def test_a_line_that_is_taken_in_each_turn_keeps_none_short(program: Path, tmp_path: Path) -> None:
    assert taken(program, tmp_path / "t.db", "8 100 6000") > 450


def test_threads_that_do_the_same_do_not_end_at_the_same_time(tmp_path: Path) -> None:
    """Without paces the first one ends 1 % before the last."""
    program = compiled(PROGRAMS / "recording/equal_work.c", flags=OPTIMISED)
    with Trace.open(record(program, tmp_path / "t.db", "", "--period", "10000")) as trace:
        ends = [row.end_ns for row in trace.thread_rows if row.path != "0"]
    assert len(ends) == 4
    assert 0.025 < 1 - min(ends) / max(ends) < 0.3
