"""The plugin's counts file, the costs made of it, and who is who among the tasks."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from numaplan.common import UsageError
from numaplan.lab.runs.counts import HEAD, UNKNOWN_NODE, parse_counts
from numaplan.lab.runs.results import LabRun, lab_run, summarize
from numaplan.lab.runs.threads import Starter, program_threads
from numaplan.machine import Machine

EXAMPLE = b"""numaplan-lab-counts 5
0 ffff888000001000 0 0:70 1:30
1 ffff888000001000 0 1:5
2 ffff888000002000 0 0:11 64:4
3 ffff888000003000 1 0:1000
end
"""


CACHED = b"""numaplan-lab-counts 5
0 ffff888000001000 0 0:70 1:30 64:4 m0:2 m1:4 m64:1 c1:7 c3:5 w0:50
3 ffff888000003000 1 0:9 m0:9
end
"""


def example_run(data: bytes = EXAMPLE, *, cached: bool = False) -> LabRun:
    return lab_run(
        Machine.load("2x2"),
        parse_counts(data, 4, 2),
        config="default",
        argv=["app"],
        kernel={"pgmigrate_success": 5, "compacted": 2, "moved": 3, "numa_hint_faults": 9},
        exit_code=0,
        timed_out=False,
        seconds=1.5,
        cached=cached,
    )


def test_counts_by_cpu_task_and_node() -> None:
    counts = parse_counts(EXAMPLE, 4, 2)
    assert counts.accesses.tolist() == [[70, 30], [0, 5], [11, 0], [0, 0]]
    assert counts.tasks[0xFFFF888000001000][:, :2].tolist() == [[70, 30], [0, 5], [0, 0], [0, 0]]
    assert (counts.unknown, counts.excluded) == (4, 1000)


def test_polls_are_counted_apart() -> None:
    counts = parse_counts(EXAMPLE.replace(b" 1:5\n", b" 1:5 p0:7 p64:2\n"), 4, 2)
    assert counts.accesses.tolist() == [[70, 30], [0, 5], [11, 0], [0, 0]]
    assert counts.polls.tolist() == [[0, 0], [7, 0], [0, 0], [0, 0]]
    assert counts.unknown == 4
    assert example_run(EXAMPLE.replace(b" 1:5\n", b" 1:5 p0:7\n")).polls == 7


def test_what_left_the_caches_is_counted_by_node_and_by_cpu() -> None:
    counts = parse_counts(CACHED, 4, 2)
    assert counts.accesses.tolist() == [[70, 30], [0, 0], [0, 0], [0, 0]]
    assert counts.memory.tolist() == [[2, 4], [0, 0], [0, 0], [0, 0]]
    assert counts.lines.tolist() == [[0, 7, 0, 5], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert (counts.unknown, counts.excluded) == (4, 9)


def test_costs_of_what_left_the_caches() -> None:
    run = example_run(CACHED, cached=True)
    assert run.memory_local_share == 2 / 6
    assert run.lines_between_nodes == 5
    assert run.memory_imbalance == 4 / 3
    assert run.busiest_cpu == 4
    assert run.cost > 0
    assert not example_run(CACHED).cached


def test_costs() -> None:
    run = example_run()
    assert (run.local, run.remote) == (70, 46)
    assert run.local_share == 70 / 116
    assert run.hop_cost == 70 * 10 + 46 * 21
    assert run.mean_distance == run.hop_cost / 116
    assert run.node_traffic == [81, 35]
    assert run.traffic_imbalance == 81 / 58
    assert (run.migrated, run.hint_faults) == (3, 9)


def test_nothing_counted_costs_nothing() -> None:
    run = example_run(HEAD + b"\nend\n")
    assert (run.local_share, run.hop_cost, run.traffic_imbalance) == (0.0, 0.0, 0.0)


def test_spreads() -> None:
    runs = [example_run() for _ in range(3)]
    for run, seconds in zip(runs, (3.0, 1.0, 2.0), strict=True):
        run.seconds = seconds
    result = summarize(runs)
    assert (result.seconds.median, result.seconds.min, result.seconds.max) == (2.0, 1.0, 3.0)


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        EXAMPLE[:-4],
        EXAMPLE[:60],
        EXAMPLE.replace(b"70", b"-70"),
        EXAMPLE.replace(b"1:5", b"2:5"),
        EXAMPLE.replace(b"1:5", b"65:5"),
        EXAMPLE.replace(b"\n3 ", b"\n4 "),
        EXAMPLE.replace(b"ffff888000002000", b"xyz"),
        CACHED.replace(b"m1:4", b"m2:4"),
        CACHED.replace(b"c1:7", b"c4:7"),
        CACHED.replace(b"c1:7", b"d1:7"),
        EXAMPLE.replace(b"1000\nend", b"99999999999999999999\nend"),
    ],
)
def test_damaged_counts_are_refused(damaged: bytes) -> None:
    with pytest.raises(UsageError):
        parse_counts(damaged, 4, 2)


rows = st.lists(
    st.tuples(
        st.integers(0, 7),
        st.integers(0, 5),
        st.booleans(),
        st.dictionaries(st.sampled_from([0, 1, 2, UNKNOWN_NODE]), st.integers(0, 1 << 40)),
    ),
    max_size=30,
)


@given(rows)
def test_totals_are_kept(table: list[tuple[int, int, bool, dict[int, int]]]) -> None:
    lines = [HEAD]
    for cpu, task, excluded, cells in table:
        words = [
            f"{cpu}",
            f"{task:x}",
            f"{excluded:d}",
            *(f"{node}:{value}" for node, value in cells.items()),
        ]
        lines.append(" ".join(words).encode())
    counts = parse_counts(b"\n".join([*lines, b"end\n"]), 8, 3)
    kept = [cells for _, _, excluded, cells in table if not excluded]
    assert counts.unknown == sum(cells.get(UNKNOWN_NODE, 0) for cells in kept)
    assert int(counts.accesses.sum()) + counts.unknown == sum(sum(cells.values()) for cells in kept)
    assert counts.excluded == sum(sum(cells.values()) for *_, excluded, cells in table if excluded)


def test_stages_add_up_to_their_task() -> None:
    data = b"""numaplan-lab-counts 5
0 1000 0 0:5
stage 1000
stage 1000
1 1000 0 1:7
stage 2000
end
"""
    counts = parse_counts(data, 2, 2)
    assert [part[:, :2].tolist() for part in counts.stages[0x1000]] == [
        [[5, 0], [0, 0]],
        [[0, 0], [0, 0]],
        [[0, 0], [0, 7]],
    ]
    assert counts.tasks[0x1000][:, :2].tolist() == [[5, 0], [0, 7]]
    assert list(counts.tasks) == [0x1000]
    assert counts.accesses.tolist() == [[5, 0], [0, 7]]
    with pytest.raises(UsageError):
        parse_counts(data.replace(b"stage 2000", b"stage x"), 2, 2)


# init starts app (100), which makes threads 102 and, by that, 103, and a process 104 with a thread 105.
TRACE = """\
# tracer: nop
 init-1       [000] .....     2.1: task_newtask: pid=100 comm=init clone_flags=1200000 oom_score_adj=0
 init-1       [000] .....     2.1: new: (wake_up_new_task+0x0/0x2d0) task=0x1000
 init-100     [001] .....     2.15: exec: (begin_new_exec+0x0/0xb40)
 app-100     [001] .....     2.2: task_rename: pid=100 oldcomm=init newcomm=app oom_score_adj=0
 kthreadd-2       [001] .....     2.2: task_newtask: pid=101 comm=kthreadd clone_flags=800f00 oom_score_adj=0
 kthreadd-2       [001] .....     2.2: new: (wake_up_new_task+0x0/0x2d0) task=0x9000
 app-100     [001] .....     2.3: task_newtask: pid=102 comm=app clone_flags=3d0f00 oom_score_adj=0
 app-100     [001] .....     2.3: new: (wake_up_new_task+0x0/0x2d0) task=0x2000
 app-102     [001] .....     2.3: task_newtask: pid=103 comm=app clone_flags=3d0f00 oom_score_adj=0
 app-102     [001] .....     2.3: new: (wake_up_new_task+0x0/0x2d0) task=0x3000
 app-102     [001] .....     2.35: exit: (do_exit+0x0/0xb50)
 app-100     [001] .....     2.4: task_newtask: pid=104 comm=app clone_flags=1200000 oom_score_adj=0
 app-100     [001] .....     2.4: new: (wake_up_new_task+0x0/0x2d0) task=0x4000
 app-104     [001] .....     2.45: exec: (begin_new_exec+0x0/0xb40)
 app-104     [001] .....     2.5: task_newtask: pid=105 comm=app clone_flags=3d0f00 oom_score_adj=0
 app-104     [001] .....     2.5: new: (wake_up_new_task+0x0/0x2d0) task=0x2000
 app-105     [001] .....     2.55: exit: (do_exit+0x0/0xb50)
 app-104     [001] .....     2.6: exit: (do_exit+0x0/0xb50)
 app-100     [001] .....     2.7: task_newtask: pid=106 comm=app clone_flags=1200000 oom_score_adj=0
 app-100     [001] .....     2.7: new: (wake_up_new_task+0x0/0x2d0) task=0x4000
"""
# 104 counts 9000 before it becomes another program and 20 after; 106, which has its place next, counts 300.
COUNTED = b"""numaplan-lab-counts 5
0 1000 %d 0:2
stage 1000
1 2000 0 0:50
stage 2000
2 4000 0 0:9000
stage 4000
2 2000 0 0:6
stage 2000
2 4000 0 0:20
stage 4000
0 1000 %d 0:1000
1 3000 0 1:7
2 4000 0 1:300
end
"""


def test_threads_have_their_creation_paths(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text(TRACE)
    counts = parse_counts(COUNTED % (0, 0), 4, 2)
    counted, threads = program_threads(trace, counts, Starter.PROGRAM)
    found = {thread.path: thread for thread in threads}
    assert list(found) == ["0", "0.1", "0.1.1", "p0.1:0", "p0.1:0.1", "p0.2:0"]
    assert found["0"].name == "app"
    assert [sum(thread.accesses) for thread in threads] == [1002, 50, 7, 9020, 6, 300]
    assert found["p0.1:0"].cpus == {2: 9020}
    assert counted is counts.counted


@pytest.mark.parametrize("launched", [False, True])
def test_a_task_from_before_that_ends_where_another_is_born_is_not_taken_for_it(
    tmp_path: Path, launched: bool
) -> None:
    trace = tmp_path / "trace"
    trace.write_text(TRACE)
    head, rows = (COUNTED % (launched, launched)).split(b"\n", 1)
    older = b"".join(b"1 %x 1 0:7\nstage %x\n" % (place, place) for place in (0x1000, 0x2000, 0x3000, 0x4000))
    plain, more = (
        program_threads(trace, parse_counts(data, 4, 2), Starter(launched))
        for data in (head + b"\n" + rows, head + b"\n" + older + rows)
    )
    assert more[1] == plain[1]


def test_a_launchers_child_is_the_program_from_when_it_becomes_it(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text(TRACE)
    counts = parse_counts(COUNTED % (1, 1), 4, 2)
    counted, threads = program_threads(trace, counts, Starter.LAUNCHER)
    assert [(thread.path, sum(thread.accesses)) for thread in threads] == [("0", 20), ("0.1", 6)]
    assert counted[:, :2].tolist() == [[0, 0], [0, 0], [26, 0], [0, 0]]


def test_what_a_first_process_does_before_it_becomes_the_program_is_not_counted(tmp_path: Path) -> None:
    """The wrapper, 100 until its second exec, starts 104 and its thread; later the program starts 106."""
    lines = TRACE.splitlines(keepends=True)
    becomes = " app-100     [001] .....     2.65: exec: (begin_new_exec+0x0/0xb40)\n"
    without_threads = [line for line in lines if not any(f"{tid} " in line + " " for tid in ("102", "103"))]
    trace = tmp_path / "trace"
    at = next(number for number, line in enumerate(without_threads) if "pid=106" in line)
    trace.write_text("".join([*without_threads[:at], becomes, *without_threads[at:]]))
    counted = COUNTED.replace(
        b"stage 2000\n2 4000 0 0:9000", b"stage 2000\n0 1000 0 0:77\nstage 1000\n2 4000 0 0:9000"
    )
    whole, threads = program_threads(trace, parse_counts(counted % (0, 0), 4, 2), Starter.BECOMES)
    assert [(thread.path, sum(thread.accesses)) for thread in threads] == [("0", 1000), ("p0.1:0", 300)]
    assert whole[:, :2].sum() == 1300


def test_a_trace_that_is_not_there_tells_nothing(tmp_path: Path) -> None:
    counts = parse_counts(COUNTED % (0, 0), 4, 2)
    counted, threads = program_threads(tmp_path / "none", counts, Starter.PROGRAM)
    assert not threads
    assert counted is counts.counted
