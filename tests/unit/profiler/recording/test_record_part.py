"""The part of a run that is recorded: how it is asked for, switched, and cut out of what was seen."""

from dataclasses import replace
from queue import SimpleQueue
from signal import SIGUSR2, raise_signal

import numpy as np
import pytest

from numaplan.common import UsageError
from numaplan.machine import Machine
from numaplan.profiler import Identity, ThreadRecord
from numaplan.profiler.backends.base import Recording
from numaplan.profiler.backends.choice import choose_backend
from numaplan.profiler.backends.on_signal import told_by_signal
from numaplan.profiler.backends.part import RecordedPart, Switch, Turn
from numaplan.profiler.commands.record import RecordCommand
from numaplan.profiler.page_use_block import PageUseBlock
from numaplan.profiler.recording.spans import GaplessLine, common, cut, union
from numaplan.profiler.sample_block import SampleBlock
from numaplan.profiler.transfer_block import TransferBlock

PATIENCE_S = 100.0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({"skip": "2s"}, RecordedPart(skip_seconds=2.0)),
        ({"skip": "20M", "take": "1.5G"}, RecordedPart(skip_accesses=20 * 10**6, take_accesses=15 * 10**8)),
        ({"skip": "500ms", "take": "2m"}, RecordedPart(skip_seconds=0.5, take_seconds=120.0)),
        ({"on_signal": True, "marked": True}, RecordedPart(on_signal=True, marked=True)),
        ({}, RecordedPart()),
    ],
)
def test_what_is_asked_for(words: dict[str, str], expected: RecordedPart) -> None:
    assert RecordCommand(**words).part() == expected


@pytest.mark.parametrize(
    "words",
    [
        {"skip": "20"},
        {"skip": "0M"},
        {"take": "0s"},
        {"take": "soon"},
        {"skip": "1s", "on_signal": True},
        {"take": "1s", "duration": "1s"},
        {"marked": True, "pids": ["1"]},
    ],
)
def test_what_cannot_be_asked_for(words: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        RecordCommand(**words).part()


@pytest.mark.parametrize(
    ("part", "hint"),
    [
        (RecordedPart(skip_seconds=2.0, take_seconds=1.0), "smaller --skip"),
        (RecordedPart(skip_accesses=1), "smaller --skip"),
        (RecordedPart(take_seconds=0.001), "take more"),
    ],
)
def test_why_nothing_of_it_was_recorded(part: RecordedPart, hint: str) -> None:
    assert hint in part.nothing("app", 1.0).hint


def test_perf_cannot_count_accesses() -> None:
    with pytest.raises(UsageError, match="cannot count accesses"):
        choose_backend("faults", Machine.load("2x2"), part=RecordedPart(take_accesses=1))


def switched(part: RecordedPart) -> tuple[Switch, "SimpleQueue[Turn]"]:
    turns: SimpleQueue[Turn] = SimpleQueue()
    switch = Switch(part, turns.put)
    switch.begin()
    return switch, turns


def test_by_time() -> None:
    switch, turns = switched(RecordedPart(skip_seconds=0.01, take_seconds=0.01))
    assert [turns.get(timeout=PATIENCE_S) for _ in range(2)] == [Turn.NOW, Turn.NEVER_MORE]
    switch.end()
    assert turns.empty()
    ((start, end),) = switch.spans
    assert end - start >= 10**7


def test_by_signals() -> None:
    switch, turns = switched(RecordedPart(on_signal=True))
    assert turns.empty()
    for expected in (Turn.NOW, Turn.NOT_NOW, Turn.NOW):
        switch.signals[SIGUSR2]()
        assert turns.get(timeout=PATIENCE_S) is expected
    switch.end()
    assert len(switch.spans) == 2
    assert all(0 < start <= end for start, end in switch.spans)
    assert not Switch(RecordedPart(), turns.put).signals


@pytest.mark.parametrize("early", [0, 1, 2, 3])
def test_a_signal_that_comes_early_is_held_and_one_that_comes_late_is_refused(
    early: int, capfd: pytest.CaptureFixture[str]
) -> None:
    with told_by_signal(True):
        for _ in range(early):
            raise_signal(SIGUSR2)
        switch, turns = switched(RecordedPart(on_signal=True))
        raise_signal(SIGUSR2)
        expected = [Turn.NOW, Turn.NOT_NOW][: 1 + early % 2]
        assert [turns.get(timeout=PATIENCE_S) for _ in expected] == expected
        switch.end()
        raise_signal(SIGUSR2)
    assert turns.empty()
    said = capfd.readouterr().err.splitlines()
    assert ["early" in line for line in said] == [True] * early + [False]
    assert "came late" in said[-1]


def test_what_was_to_be_taken_ends_it_though_a_signal_paused_it() -> None:
    switch, turns = switched(RecordedPart(on_signal=True, take_seconds=0.2))
    switch.signals[SIGUSR2]()
    switch.signals[SIGUSR2]()
    assert turns.get(timeout=PATIENCE_S) is Turn.NOW
    assert turns.get(timeout=PATIENCE_S) in (Turn.NOT_NOW, Turn.NEVER_MORE)
    switch.end()


def test_a_program_that_ends_before() -> None:
    switch, turns = switched(RecordedPart(skip_seconds=3600))
    switch.end()
    assert turns.empty() and not switch.spans


def test_spans() -> None:
    assert union([(5, 9), (1, 3), (2, 4), (9, 9), (9, 12)]) == [(1, 4), (5, 12)]
    assert common([(0, 10), (20, 30)], [(5, 25)]) == [(5, 10), (20, 25)]
    line = GaplessLine([(100, 200), (300, 350)])
    times = np.array([-1, 0, 100, 150, 200, 250, 300, 320, 350, 900])
    assert line(times).tolist() == [-1, 0, 0, 50, 100, 100, 100, 120, 150, 150]


def block(times: list[int], pids: list[int]) -> SampleBlock:
    count = len(times)
    plain = {name: np.zeros(count, np.int32) for name in SampleBlock.__dataclass_fields__}
    return SampleBlock(**plain | {"time_ns": np.array(times, np.int64), "pid": np.array(pids, np.int32)})


def test_gaps_are_cut_out_of_samples_and_of_who_lived_when() -> None:
    recording = Recording(0, 50, [block([90, 110, 250, 310, 349], [1, 1, 1, 2, 1])])
    threads = (ThreadRecord("p0", "0", 1, 1, "", 50, -1), ThreadRecord("p0", "0.1", 1, 2, "", 120, 320))
    spans = [(100, 200), (300, 350)]
    found, identity = cut(recording, Identity(threads=threads), spans)
    (kept,) = found.blocks
    assert kept.time_ns.tolist() == [10, 110, 149]
    assert found.start_ns == 0
    assert [(one.start_ns, one.end_ns) for one in identity.threads] == [(0, -1), (20, 120)]
    assert [len(one) for one in found.blocks] == [3]  # they can be walked again
    (own,) = cut(recording, Identity(), spans, {1: [(100, 200)], 2: [(300, 350)]})[0].blocks
    assert own.time_ns.tolist() == [10, 110]


def test_what_was_counted_within_the_spans_stays() -> None:
    one, at, where = np.array([5]), np.array([120, 310]), np.array([4096, 8192], np.uint64)
    moved = TransferBlock(1, 90, 320, where[:1], one, at[:1], one + 1, at[1:], one, (330,))
    used = PageUseBlock(1, at - 30, at, at - 10, where, one.repeat(2), at, one, one, one)
    recording = Recording(0, 50, [], transfers=[moved], page_use=[used])
    whole = cut(recording, Identity(), [(100, 200), (300, 350)])[0]
    assert whole.transfers is None and whole.page_use is None
    counted = replace(recording, counted_spans=True)
    found = cut(counted, Identity(), [(100, 200), (300, 350)])[0]
    assert found.transfers is not None and found.page_use is not None
    ((one_moved,), (one_used,)) = (list(found.transfers), list(found.page_use))
    assert (one_moved.start_ns, one_moved.end_ns, one_moved.late_ns) == (0, 120, (130,))
    assert (one_moved.writer_ns.tolist(), one_moved.reader_ns.tolist()) == ([20], [110])
    assert (one_used.start_ns.tolist(), one_used.end_ns.tolist()) == ([0, 100], [20, 110])
    assert (one_used.first_ns.tolist(), one_used.alive_ns.tolist()) == ([10, 100], [20, 110])
