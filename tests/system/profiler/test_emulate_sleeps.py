"""How often threads sleep in their system calls is counted."""

from pathlib import Path

from numaplan.analyzer import counter_totals
from numaplan.profiler import Trace
from tests.support.emulating import MARKS, record
from tests.support.programs import PROGRAMS, compiled

pytestmark = MARKS


def test_sleeps_are_counted_by_thread(tmp_path: Path) -> None:
    program = compiled(PROGRAMS / "sleepers.c")
    with Trace.open(record(program, tmp_path / "t.db", "100")) as trace:
        main, sleeper, waiter = counter_totals(trace)["sleeps"].tolist()
    # A byte may come before it is waited for, and who has to wait for a lock sleeps, too.
    assert main < 50 < min(sleeper, waiter)
    assert max(sleeper, waiter) < 150
