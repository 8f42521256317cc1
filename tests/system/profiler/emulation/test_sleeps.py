"""How often threads sleep in their system calls is counted."""

from pathlib import Path

from numaplan.analyzer import counter_totals
from numaplan.profiler import Trace
from tests.support.emulating import MARKS, record
from tests.support.programs import PROGRAMS, compiled

pytestmark = MARKS


def test_sleeps_are_counted_by_thread(tmp_path: Path) -> None:
    program = compiled(PROGRAMS / "recording/sleepers.c")
    with Trace.open(record(program, tmp_path / "t.db", "100")) as trace:
        main, sleeper, waiter, answerer = counter_totals(trace)["sleeps"].tolist()
    # What a thread reads may have come before, and waiting for locks and conditions does not count.
    assert max(main, answerer) < 20 < min(sleeper, waiter)
    assert max(sleeper, waiter) <= 210  # each poll and read
