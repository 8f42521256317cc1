"""Which threads run at the same time."""

from pathlib import Path

import numpy as np
import pytest

from numaplan.analyzer import TraceSamples
from numaplan.analyzer.timeline.activity import STRETCHES, activity, living_together, running, together
from numaplan.profiler import Trace
from tests.support.traces import write_trace


def test_threads_run_together_as_far_as_their_accesses_fall_into_the_same_time() -> None:
    line = np.zeros((100, 3))
    line[:50, 0] = line[50:, 1] = line[:, 2] = 10.0
    found = together(np.ones(100), running(line, np.ones_like(line)))
    assert found[0, 1] == found[1, 0] == 0
    assert found[0, 2] == found[1, 2] == 1
    assert found[2, 0] == found[2, 1] == 0.5
    longer = np.repeat([3.0, 1.0], 50)
    assert together(longer, running(line, np.ones_like(line)))[2].tolist() == [0.75, 0.25, 0]


def test_no_stretch_has_the_end_of_one_pool_and_the_beginning_of_the_next(tmp_path: Path) -> None:
    """Four threads run at a time, and in the middle of a stretch others take their places."""
    rounds, turn = 6400, 3270
    moment = np.repeat(np.arange(rounds), 4)
    samples = {"time_ns": moment, "thread": np.tile(np.arange(4), rounds) + 4 * (moment >= turn)}
    threads = [
        (number, "p0", f"0.{number}", number, 1, "x", *((0, turn) if number < 4 else (turn, -1)))
        for number in range(8)
    ]
    with Trace.open(write_trace(tmp_path / "t.db", samples, threads)) as trace:
        lives = [(row.start_ns, row.end_ns) for row in trace.thread_rows]
        lasts, ran = activity(TraceSamples(trace), lives)
        assert len(lasts) == STRETCHES + 1 and lasts.sum() == rounds
        assert ran.sum(axis=1).tolist() == [4.0] * len(lasts)
        assert together(lasts, ran)[0].tolist() == [0, 1, 1, 1, 0, 0, 0, 0]
        # Of what is not known of lives, a stretch has both.
        assert activity(TraceSamples(trace), [])[1].sum(axis=1).max() > 4


def test_threads_that_live_for_a_part_of_a_stretch_run_for_that_part() -> None:
    """Ten after one another, beside one that runs all the time, and one that was there for a moment."""
    lived = np.array([[0.1] * 10 + [1.0, 1e-4, 0.0]])
    found = running(np.array([[20.0] * 10 + [200.0, 1.0, 0.0]]), lived)[0]
    assert found[:10] == pytest.approx(np.full(10, 0.1), rel=0.1)
    assert running(np.array([[1000.0, 100.0]]), np.array([[1.0, 0.1]]))[0].tolist() == [1.0, 0.1]
    short = running(np.array([[100.0, 100.0, 100.0, 15.0]]), np.full((1, 4), 0.02))[0]
    assert short == pytest.approx(np.array([1, 1, 1, 0.15 / 0.7875]) * 0.02)
    assert found[10] > 0.9 and found[11] <= 1e-4 and found[12] == 0
    few = running(np.array([[200.0, 100.0, 100.0]]), np.array([[1e-9, 1.0, 1.0]]))[0]
    assert few.tolist() == [1e-9, 1.0, 1.0]
    dead = running(np.array([[1.0, 100.0, 100.0]]), np.array([[0.0, 1.0, 1.0]]))[0]
    assert dead[0] == pytest.approx(0.01) and dead[1:].tolist() == [1.0, 1.0]
    busy = running(np.array([[100.0] * 16]), np.array([[0.0] + [1.0] * 15]))[0]
    assert busy[0] == pytest.approx(1 / 15) and busy[1:].tolist() == [1.0] * 15
    assert running(np.array([[5.0, 0.0]]), np.zeros((1, 2)))[0].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("lives", [0.1, 0.0909, 0.09, 0.05])
def test_who_waits_for_short_ones_after_one_another_does_not_run_all_the_time(lives: float) -> None:
    found = running(np.array([[200.0] + [100.0] * 10]), np.array([[1.0] + [lives] * 10]))[0]
    assert found[0] < 0.4 and found[1:] == pytest.approx(np.full(10, lives), rel=0.1)


def test_many_that_follow_one_another_are_not_there_at_once(tmp_path: Path) -> None:
    """More than stretches could be divided for."""
    count, each = 600, 10
    moment = np.arange(count * each)
    samples = {"time_ns": moment, "thread": moment // each}
    threads = [
        (number, f"p{number}", "0", number, 1, "x", each * number, each * (number + 1))
        for number in range(count)
    ]
    with Trace.open(write_trace(tmp_path / "t.db", samples, threads)) as trace:
        lives = [(row.start_ns, row.end_ns) for row in trace.thread_rows]
        lasts, ran = activity(TraceSamples(trace), lives)
    assert len(lasts) == STRETCHES
    assert ran.sum(axis=1) == pytest.approx(np.ones(STRETCHES), rel=0.2)


def test_threads_live_together_unless_one_begins_when_the_other_has_ended() -> None:
    found = living_together([(0, -1), (0, 495), (495, -1), (494, 500)])
    assert found.tolist() == [
        [True, True, True, True],
        [True, True, False, True],
        [True, False, True, True],
        [True, True, True, True],
    ]
    assert living_together([]).shape == (0, 0)
