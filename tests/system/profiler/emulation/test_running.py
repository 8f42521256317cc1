"""Which threads could run is seen, whatever they access."""

from pathlib import Path

import numpy as np
import pytest

from numaplan.analyzer import looked_at
from numaplan.profiler import Trace
from tests.support.emulating import MARKS, record
from tests.support.programs import OPTIMISED, PROGRAMS, compiled

pytestmark = MARKS
MAIN, ONE, OTHER, WORKS, POLLS = range(5)


@pytest.fixture(scope="module")
def program() -> Path:
    return compiled(PROGRAMS / "recording/who_runs.c", flags=(*OPTIMISED, "-D_GNU_SOURCE"))


def test_who_sleeps_does_not_run_and_who_polls_does(program: Path, tmp_path: Path) -> None:
    with Trace.open(record(program, tmp_path / "t.db", "400 2000")) as trace:
        found = looked_at(trace)
        assert found is not None
        lasts, running = found
        made = dict(trace.rows("SELECT thread, count(*) FROM samples GROUP BY thread"))
    assert len(lasts) > 100
    works = running[:, WORKS] > 0
    share = np.average(running[works], axis=0, weights=lasts[works])
    # Who was woken and who woke it both run for a moment; how long depends on the host.
    assert 0.8 < share[ONE] + share[OTHER] < 1.3
    assert min(share[ONE], share[OTHER]) > 0.3
    assert share[POLLS] > 0.9 and made.get(POLLS, 0) < 0.2 * made[WORKS]
    assert share[MAIN] < 0.1
    both = running[works][:, [ONE, OTHER]].sum(axis=1) > 1
    assert np.average(both, weights=lasts[works]) < 0.3


@pytest.mark.slow
def test_long_recordings_are_looked_at_less_often(program: Path, tmp_path: Path) -> None:
    """After 1024 looks half as often: every 16 turns of about a thousand accesses at first."""
    path = record(program, tmp_path / "t.db", "1600 4000", "--period", "100000")
    with Trace.open(path) as trace:
        ((looks, last),) = trace.rows("SELECT count(DISTINCT time_ns), max(time_ns) FROM running")
        ((early,),) = trace.rows(f"SELECT count(DISTINCT time_ns) FROM running WHERE time_ns < {last // 4}")
    assert last // 4 // 25_000 < early < last // 4 // 14_000
    assert 1024 < looks < 3.7 * early


def test_without_turns_nobody_looks(program: Path, tmp_path: Path) -> None:
    path = record(program, tmp_path / "t.db", "20 2000", "--set", "schedule=free")
    with Trace.open(path) as trace:
        assert trace.rows("SELECT count(*) FROM running") == [(0,)]
        assert looked_at(trace) is None


@pytest.mark.slow
def test_who_falls_asleep_as_its_turn_ends_is_seen_too(tmp_path: Path) -> None:
    """Parts of about a turn, after which their threads sleep; and 16 turns are about two rounds of all parts,
    so that looks that are evenly apart would see the same part each time."""
    path = compiled(PROGRAMS / "recording/alone_then_all.c", flags=OPTIMISED)
    with Trace.open(record(path, tmp_path / "t.db", "2000 1500")) as trace:
        found = looked_at(trace)
    assert found is not None
    lasts, running = found
    alone = running[:, MAIN] > 0
    # With a cpu for each, the part of one thread takes as long as that of four; these end one by one.
    assert 0.2 < np.average(alone, weights=lasts) < 0.6
    assert np.average(running[alone].sum(axis=1), weights=lasts[alone]) < 2.8
    assert running[~alone].sum(axis=1).max() == 4
