"""The parts of the online loop that need no other process: budget, verdicts, options, journal, samples."""

import json
import os
import signal
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.common import UsageError, read_pids
from numaplan.launcher.commands.main import LaunchCommand
from numaplan.launcher.online.actuator import ActionResult, Actuator, Budget
from numaplan.launcher.online.bindings import Bindings
from numaplan.launcher.online.example import example_observation
from numaplan.launcher.online.judge import Cost, verdict
from numaplan.launcher.online.options import read_budget
from numaplan.launcher.online.reporting import Journal, Tally, action_entry, summary
from numaplan.launcher.online.samples import SampleTable, Window, count_events
from numaplan.launcher.online.saving import shared_pages
from numaplan.launcher.process import page_moves as kernel, procfs
from numaplan.launcher.process.soft_dirty import FAULT_SECONDS, SoftDirtyProbe
from numaplan.mapper.online.actions import MovePages, MoveThread
from numaplan.mapper.online.observation import MachineView
from numaplan.mapper.online.registry import COMBINED, POLICIES, make_policy
from numaplan.profiler import Machine
from numaplan.profiler.sampling.samples import no_samples
from tests.support.waiting import until

NOBODY = 1 << 22  # no kernel gives out such a pid


def test_a_family_is_known_as_it_comes_and_goes() -> None:
    families, ours = procfs.Families(), os.getpid()
    assert ours in families.members([ours], 0.0)
    with subprocess.Popen(["sh", "-c", "sleep 1000 & wait"]) as shell:
        until(lambda: len(families.members([shell.pid], 1.0)) == 2)
        found = families.members([shell.pid], 1.0)
        assert shell.pid in found
        (child,) = set(found) - {shell.pid}
        os.kill(child, signal.SIGKILL)
    assert families.members([shell.pid], 1.0) == []
    assert ours in families.members([ours], 1.0)


def _table(times: list[float], tids: list[int], pages: list[int]) -> SampleTable:
    count = len(times)
    return SampleTable(
        np.array(times),
        np.ones(count, dtype=np.int64),
        np.array(tids, dtype=np.int64),
        np.array(pages, dtype=np.int64),
        np.zeros(count, dtype=np.int64),
        np.ones(count),
        np.zeros(count, dtype=np.bool_),
        np.zeros(count, dtype=np.bool_),
        np.full(count, np.nan),
    )


def test_budget_saves_up_and_refuses_beyond_it() -> None:
    budget = Budget(moves=2.0, megabytes=1.0)
    budget.refill(0.0)
    assert budget.take_moves(8)  # four seconds' worth is there at the start
    assert not budget.take_moves(1)
    budget.refill(1.0)
    assert budget.take_moves(2)
    assert not budget.take_moves(1)
    assert budget.take_bytes(10_000_000) == 4_000_000
    assert budget.take_bytes(1) == 0
    budget.give_back_bytes(500)
    assert budget.take_bytes(10_000) == 500


def test_a_budget_of_less_than_a_move_a_second_still_allows_one_in_time() -> None:
    budget = Budget(moves=0.1, megabytes=0.0)
    budget.refill(0.0)
    assert not budget.take_moves(1)
    for second in range(1, 11):
        budget.refill(float(second))
    assert budget.take_moves(1)
    assert budget.take_bytes(4096) == 0


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (Cost(100.0, 1.0, 1000, 0.5), Cost(120.0, 1.0, 1000, 0.4), "worse"),
        (Cost(100.0, 1.0, 1000, 0.5), Cost(80.0, 1.0, 1000, 0.6), "better"),
        (Cost(100.0, 1.0, 1000, 0.5), Cost(101.0, 0.1, 1000, 0.5), "open"),  # too little
        (Cost(100.0, 15.0, 1000, 0.5), Cost(120.0, 15.0, 1000, 0.4), "open"),  # may be chance
        (Cost(100.0, 1.0, 5, 0.5), Cost(200.0, 1.0, 1000, 0.0), "open"),  # too few samples
        (
            Cost(100.0, 1.0, 1000, 0.5, 0.4),
            Cost(100.0, 1.0, 1000, 0.5, 0.47),
            "open",
        ),  # waits as much as ever
        (Cost(100.0, 1.0, 1000, 0.5, 0.0), Cost(100.0, 1.0, 1000, 0.5, 0.3), "worse"),  # threads share cpus
    ],
)
def test_verdict(before: Cost, after: Cost, expected: str) -> None:
    assert verdict(before, after) == expected


def test_options_are_checked() -> None:
    assert read_budget("") == (8.0, 256.0)
    assert read_budget("mb=10,moves=0.5") == (0.5, 10.0)
    assert read_pids("--attach", ("1,2", "2", "30")) == (1, 2, 30)
    for wrong in ("moves", "moves=x", "mb=-1", "speed=3", "moves=1e9999"):
        with pytest.raises(UsageError, match="--budget"):
            read_budget(wrong)
    for pid in ("", "x", "0", "-5", "99999999999"):
        with pytest.raises(UsageError, match="--attach"):
            read_pids("--attach", (pid,))
    with pytest.raises(UsageError, match="--attach 1,,2: '' is no process"):
        read_pids("--attach", ("1,,2",))
    with pytest.raises(UsageError, match="policy"):
        LaunchCommand(attach=["1"]).online_options()
    with pytest.raises(UsageError, match="--overhead"):
        LaunchCommand(online="nimar", overhead=0.0).online_options()


def test_journal_keeps_a_line_an_entry_and_survives_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(str(path))
    done = [
        ActionResult(MoveThread(7, 1, "why", partner=8), moved=1),
        ActionResult(MovePages(3, np.array([1, 2]), 0, "latency"), problem="it has ended"),
    ]
    journal.write(time_s=1.5, share=float("nan"), actions=[action_entry(one) for one in done])
    journal.write(note="second", moved=np.int64(3), share=np.float32(0.5))
    journal.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0]["share"] is None
    assert lines[0]["actions"][0] == {
        "move": "thread", "tid": 7, "node": 1, "cpu": None, "partner": 8, "moved": 1, "reason": "why",
    }  # fmt: skip
    assert lines[0]["actions"][1]["problem"] == "it has ended"
    assert lines[1:] == [{"note": "second", "moved": 3, "share": 0.5}]
    full = Journal("/dev/full")
    full.write(note="lost")
    assert full.problem
    full.write(note="not tried any more")
    full.close()
    with pytest.raises(UsageError, match="--journal"):
        Journal(str(tmp_path / "no" / "journal"))


def test_window_drops_what_is_old_and_bounds_what_it_keeps() -> None:
    window = Window(5.0)
    assert len(window.add(_table([0.0, 1.0], [1, 1], [1, 2]), 2.0).tid) == 2
    assert window.add(_table([6.0], [2], [3]), 6.0).page.tolist() == [3]


def test_where_samples_are_many_those_of_one_look_count_alone() -> None:
    """Else a page that has a new user would seem to be the old one's for as long again."""
    window = Window(0.0)
    assert window.add(_table([0.0, 1.9], [1, 1], [1, 2]), 2.0, 2.0).page.tolist() == [1, 2]
    assert window.add(_table([1.9, 3.0], [2, 2], [3, 4]), 4.0, 2.0).page.tolist() == [3, 4]


def test_touches_are_revealed_again_only_when_the_last_faults_are_paid_for() -> None:
    probe = SoftDirtyProbe(0.01, 1)
    if not probe.works:
        assert probe.write_protect([os.getpid()], 0.0) == []
        return
    me = os.getpid()
    assert probe.write_protect([me], 0.0) == [me]
    assert probe.write_protect([me], 100.0) == []  # nobody knows yet what that cost
    probe.update_costs({me: int(0.02 / FAULT_SECONDS)})  # two seconds' allowance
    assert probe.write_protect([me], 1.0) == []
    assert probe.write_protect([me], 2.5) == [me]


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 9)), max_size=40))
def test_estimated_misses_count_each_page_of_a_thread_once(pairs: list[tuple[int, int]]) -> None:
    tids = np.array([3, 1, 2], dtype=np.int64)
    fresh = _table([0.0] * len(pairs), [tid for tid, _ in pairs], [page for _, page in pairs])
    counts = count_events(tids, no_samples(), fresh, np.array([5, 6, 7]), estimate=True)
    expected = [64.0 * len({page for tid, page in pairs if tid == wanted}) for wanted in tids]
    assert counts.misses.tolist() == expected
    assert counts.instructions.tolist() == [5.0, 6.0, 7.0]
    assert not counts.counted
    nothing = count_events(tids, no_samples(), fresh, np.array([5, 6, 7]), estimate=False)
    assert not nothing.misses.any()
    assert not nothing.instructions.any()


def test_sampled_misses_are_taken_where_only_instructions_are_not_counted() -> None:
    fresh = _table([0.0] * 3, [1, 1, 2], [7, 7, 8])
    fresh = fresh._replace(missed=np.array([True, True, False]), weight=np.array([100.0, 50.0, 70.0]))
    counts = count_events(np.array([2, 1]), no_samples(), fresh, np.array([5, 6]), estimate=True)
    assert counts.misses.tolist() == [0.0, 150.0]
    assert counts.instructions.tolist() == [5.0, 6.0]


def test_shared_pages_is_the_lesser_of_two_threads_accesses() -> None:
    seen = example_observation(MachineView.of(Machine.load("4x2")))
    comm = shared_pages(seen)
    expected = np.zeros_like(comm)
    for page in range(seen.pages.count):
        rows = np.flatnonzero(seen.touches.page == page)
        one, other = seen.touches.thread[rows]
        expected[one, other] += 100.0
        expected[other, one] += 100.0
    assert comm.tolist() == expected.tolist()


@pytest.mark.parametrize("name", [*POLICIES, *COMBINED, "nimar+next-touch"])
def test_every_policy_can_be_rehearsed(name: str) -> None:
    view = MachineView.of(Machine.load("4x2"))
    decision = make_policy(name).decide(example_observation(view), None)
    for action in decision.actions:
        assert action.node in view.node_ids
        assert action.reason


def test_hands_undo_what_they_did_and_say_what_failed() -> None:
    mine = frozenset(os.sched_getaffinity(0))
    bindings = Bindings()
    bindings.movable(os.getpid(), [os.getpid()])
    node = Machine.load("local").nodes[0].id
    first = frozenset({min(mine)})
    actuator = Actuator({node: first}, bindings, Budget(), {os.getpid(): os.getpid()})
    try:
        done = actuator.apply([MoveThread(os.getpid(), node, "test")])
        assert [one.moved for one in done] == [1]
        assert os.sched_getaffinity(0) == first
        assert actuator.undo(done) == 1
        assert frozenset(os.sched_getaffinity(0)) == mine
    finally:
        os.sched_setaffinity(0, mine)
    gone = actuator.apply([MoveThread(NOBODY, node, "test")])
    assert gone[0].moved == 0
    assert gone[0].problem
    ended = actuator.apply([MovePages(NOBODY, np.array([1]), node, "test")])
    assert ended[0].problem == "it has ended"


def test_threads_are_confined_to_their_node_unless_they_are_bound_closer() -> None:
    """Such as by a plan, to one cpu."""
    mine, one = frozenset(os.sched_getaffinity(0)), frozenset({min(os.sched_getaffinity(0))})
    seen = example_observation(MachineView.of(Machine.load("2x2")))
    tids = np.array([os.getpid(), *seen.threads.tid[1:].tolist()])
    movable = np.arange(len(tids)) == 0
    seen = replace(seen, threads=replace(seen.threads, tid=tids, movable=movable))
    try:
        for before, node_cpus, after in ((one, mine, one), (mine, one, one)):
            os.sched_setaffinity(0, before)
            bindings = Bindings()
            bindings.movable(os.getpid(), [os.getpid()])
            actuator = Actuator({0: node_cpus}, bindings, Budget(), {os.getpid(): os.getpid()})
            assert len(actuator.confine(seen)) == (before != after)
            assert frozenset(os.sched_getaffinity(0)) == after
    finally:
        os.sched_setaffinity(0, mine)


def test_page_nodes_tells_touched_pages_from_others() -> None:
    size = kernel.PAGE_BYTES
    touched = np.ones(4 * size, dtype=np.uint8)
    first = touched.ctypes.data // size + 1
    nodes = kernel.page_nodes(os.getpid(), np.array([first, first + 1, 5]))
    assert nodes[0] >= 0
    assert nodes[1] >= 0
    assert nodes[2] == -1
    with pytest.raises(OSError, match="process"):
        kernel.page_nodes(NOBODY, np.array([first]))


@pytest.mark.parametrize(
    "count, words",
    [
        (
            1,
            "1 interval, 1 thread move, 1 page (0.0 MB), 1 event lost, 1 action not done: why, "
            "1 thread got its",
        ),
        (
            2000,
            "2,000 intervals, 2,000 thread moves, 2,000 pages (8.2 MB), 2,000 events lost, 2,000 actions not "
            "done: why, 2,000 threads got their",
        ),
    ],
)
def test_the_summary_counts_in_words(count: int, words: str) -> None:
    actuator = Actuator({}, Bindings(), Budget(1, 1))
    actuator.threads_moved = actuator.pages_moved = count
    tally = Tally(intervals=count, refused=Counter({"why": count}), lost=count)
    assert summary("x", tally, actuator, count) == f"x: {words} original cpus back"
