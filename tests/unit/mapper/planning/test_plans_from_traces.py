"""Plans from traces: several runs of one program, ranks recorded apart, where threads were recorded."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from msgspec import UNSET

from numaplan.analyzer.report.page import write_report
from numaplan.common import UsageError
from numaplan.mapper import Plan, PlanOptions, make_plan
from numaplan.mapper.commands.compare import CompareCommand
from numaplan.mapper.plan_file.summary import summary
from numaplan.mapper.workload.runs import workload_of_traces
from numaplan.profiler import EVENT_CODE, Machine, Trace
from tests.support.traces import write_trace

THREADS = 8
PAGE = 4096
START = 1 << 24


def record(
    path: Path,
    *,
    roles: list[int] | None = None,
    process: str = "p0",
    build: str = "b1",
    seed: int = 0,
    cpus: list[int] | None = None,
    halves: bool = False,
    machine: str = "4x2",
    local: int = -1,
) -> Path:
    """Roles 2k and 2k+1 share a page each and hardly anything else; roles[i]: what thread i does.

    halves: the first half of the run is made by roles 0..3 alone, the second by the others; local: of 1000
    counted accesses of each thread to its page, those that were local (-1: none was counted), and half as
    many of the 100 that reached memory.
    """
    rng = np.random.default_rng(seed)
    count = 40_000
    doing = np.asarray(roles or range(THREADS))
    thread = rng.integers(0, THREADS, count)
    time = np.sort(rng.integers(0, 10**9, count))
    if halves:
        late = time >= 5 * 10**8
        role = rng.integers(0, 4, count) + 4 * late
        thread = np.argsort(doing)[role]
    role = doing[thread]
    page = np.where(rng.random(count) < 0.97, role // 2, rng.integers(0, 4, count))
    write = rng.random(count) < 0.5
    cpu = np.asarray(cpus or [-1] * THREADS)[thread]
    samples = {
        "time_ns": time,
        "thread": thread,
        "cpu": cpu,
        "addr": START + page * PAGE + rng.integers(0, 64, count) * 64,
        "event": np.where(write, EVENT_CODE["store"], EVENT_CODE["load"]),
        "is_write": write,
        "region": 0,
    }
    names = ["0", *(f"0.{number}" for number in range(1, THREADS))]
    threads = [(i, process, name, i, 1, "t", 0, -1) for i, name in enumerate(names)]
    regions = [(0, process, "heap", "app+0x1", build, START, 4 * PAGE, 0, 1, 0, -1)]
    counted = [
        (0, 10**9, i, i, 0, START + doing[i] // 2 * PAGE, *counts, 0, near)
        for i in range(THREADS)
        for near, counts in ((1, (local, 0, local // 20)), (0, (0, 1000 - local, 100 - local // 20)))
    ]
    meta = {"period": 100, "build_id": build}
    rows = [tuple(map(int, row)) for row in counted] if local >= 0 else None
    return write_trace(path, samples, threads, regions, meta, machine, page_use=rows)


def test_runs_that_agree_are_averaged_and_said_to_be_stable(tmp_path: Path) -> None:
    paths = [record(tmp_path / f"{seed}.db", seed=seed) for seed in range(3)]
    workload = workload_of_traces(paths)
    assert workload.identity is not None
    assert workload.identity["stable"] and workload.identity["runs"] == 3
    assert workload.identity["correlation"] > 0.9
    plan = make_plan(workload, Machine.load("4x2"), PlanOptions()).plan
    nodes = [thread.node for thread in plan.threads]
    assert nodes[::2] == nodes[1::2] and len(set(nodes)) == 4
    assert plan.provenance["identity"] == workload.identity
    assert len(plan.provenance["traces"]) == 3
    assert (
        make_plan(workload_of_traces(paths[:1]), Machine.load("4x2"), PlanOptions()).plan.provenance.get(
            "identity"
        )
        is None
    )


def test_runs_in_which_threads_swap_roles_are_said_to_be_unstable(tmp_path: Path) -> None:
    first = record(tmp_path / "1.db")
    second = record(tmp_path / "2.db", roles=[5, 0, 3, 6, 1, 4, 7, 2], seed=1)
    workload = workload_of_traces([first, second])
    assert workload.identity is not None and not workload.identity["stable"]
    assert workload.identity["matched"] > workload.identity["correlation"] + 0.5
    assert any("swap roles" in note for note in workload.notes)
    plan = make_plan(workload, Machine.load("4x2"), PlanOptions()).plan
    assert any("will not fit the next run" in line for line in summary(plan))
    assert np.array_equal(np.asarray(workload.comm), np.asarray(workload_of_traces([first]).comm))


def test_another_build_is_refused(tmp_path: Path) -> None:
    paths = [record(tmp_path / f"{build}.db", build=build) for build in ("b1", "b2")]
    with pytest.raises(UsageError, match="another build"):
        workload_of_traces(paths)


def test_ranks_recorded_apart_are_put_side_by_side(tmp_path: Path) -> None:
    paths = [record(tmp_path / f"{rank}.db", process=rank, seed=i) for i, rank in enumerate(("r0", "r1"))]
    workload = workload_of_traces(paths)
    assert len(workload.threads) == 16 and workload.identity is None
    comm = np.asarray(workload.comm)
    assert not comm[:8, 8:].any() and comm[:8, :8].any() and comm[8:, 8:].any()
    plan = make_plan(workload, Machine.load("4x4"), PlanOptions(objective="remote")).plan
    assert {region.region.process for region in plan.memory} == {"r0", "r1"}
    assert plan.predicted.apart
    said = [line for line in summary(plan) if line.startswith("remote communication")]
    assert said == [
        "remote communication  not known: processes that were recorded apart exchange what nobody saw"
    ]
    seats = {(thread.process, thread.path): thread.node for thread in plan.threads}
    for rank in ("r0", "r1"):
        for even, odd in (("0", "0.1"), ("0.2", "0.3"), ("0.4", "0.5"), ("0.6", "0.7")):
            assert seats[rank, even] == seats[rank, odd]
    assert plan.predicted.local_share > 0.9
    # The pages of each rank are with that rank's own threads.
    for region in plan.memory:
        for run in region.runs:
            pair = run.offset // PAGE
            name = "0" if pair == 0 else f"0.{2 * pair}"
            assert run.node == seats[region.region.process, name]


def test_the_plan_tells_what_a_child_ran(tmp_path: Path) -> None:
    """By that it is known where it comes under another number; of the program itself nothing is said."""
    for process, expected in (("p0", [UNSET] * THREADS), ("p0.2", ["t", *[UNSET] * (THREADS - 1)])):
        workload = workload_of_traces([record(tmp_path / f"{process}.db", process=process)])
        plan = make_plan(workload, Machine.load("4x2"), PlanOptions()).plan
        assert [thread.program for thread in plan.threads] == expected


def test_traces_of_unlike_machines_are_named(tmp_path: Path) -> None:
    paths = [
        record(tmp_path / f"r{rank}.db", process=f"r{rank}", machine=("4x2", "4x2", "2x8")[rank])
        for rank in range(3)
    ]
    said = [note for note in workload_of_traces(paths).notes if "another machine" in note]
    assert said == [
        f"{paths[2]}: recorded on another machine (2x8) than the first (4x2), which the plan is for unless"
        " --machine names one"
    ]


def test_today_is_where_threads_were_recorded(tmp_path: Path) -> None:
    scattered = [0, 2, 4, 6, 1, 3, 5, 7]
    path = record(tmp_path / "a.db", cpus=scattered)
    workload = workload_of_traces([path])
    assert workload.seen_on == tuple(cpu // 2 for cpu in scattered)
    here = make_plan(workload, Machine.load("4x2"), PlanOptions()).plan.predicted
    assert here.today is not None and here.today.threads == "recorded"
    assert here.today.local_share < 0.5 < 0.95 < here.local_share
    elsewhere = make_plan(workload, Machine.load("2x4"), PlanOptions()).plan.predicted
    assert elsewhere.today is not None and elsewhere.today.threads == "kernel"
    unknown = workload_of_traces([record(tmp_path / "b.db")])
    assert unknown.seen_on == ()


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["time", "balanced"])
def test_today_is_what_was_counted_as_it_was_recorded(tmp_path: Path, objective: str) -> None:
    """On the machine that it was recorded on, and nowhere else; of runs that agree their mean."""
    paths = [record(tmp_path / f"{local}.db", seed=local, local=local) for local in (600, 800)]
    options = PlanOptions(objective=objective)
    for several, accesses, memory in ((paths[:1], 0.6, 0.3), (paths, 0.7, 0.35)):
        plan = make_plan(workload_of_traces(several), Machine.load("4x2"), options).plan
        today = plan.predicted.today
        assert today is not None and today.counted
        assert (today.local_share, today.memory_share) == pytest.approx((accesses, memory))
        assert f"(today {accesses:.1%})" in "".join(summary(plan))
        assert any(line.startswith("today: what is local was counted") for line in summary(plan))
        assert Plan.from_json(plan.to_json()).predicted.today == today
    elsewhere = make_plan(workload_of_traces(paths), Machine.load("2x4"), options).plan
    not_counted = workload_of_traces([paths[0], record(tmp_path / "sampled.db")])
    for plan in (elsewhere, make_plan(not_counted, Machine.load("4x2"), options).plan):
        assert plan.predicted.today is not None and not plan.predicted.today.counted
        assert "counted" not in "".join(summary(plan))


def test_comparison_and_page_say_what_was_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page = record(tmp_path / "a.db", local=600), tmp_path / "page.html"
    CompareCommand(trace=path, machine="4x2", methods="compact", objective="time").run()
    assert "as it was recorded 60.0% of accesses were local (counted)" in capsys.readouterr().out
    CompareCommand(trace=path, machine="2x4", methods="compact", objective="time").run()
    assert "counted" not in capsys.readouterr().out
    plan = make_plan(workload_of_traces([path]), Machine.load("4x2"), PlanOptions()).plan
    with Trace.open(path) as trace:
        write_report(trace, page, plan=msgspec.to_builtins(plan))
    assert "with the plan, 60.0% without (counted)" in page.read_text()


def test_every_phase_is_balanced_from_a_trace(tmp_path: Path) -> None:
    """Roles 0..3 work first, 4..7 after: pairs of one half must not fill a node."""
    path = record(tmp_path / "a.db", halves=True)
    workload = workload_of_traces([path], by_phase=True)
    assert workload.phases is not None and workload.phase_rates is not None
    assert len(workload.phase_rates) == len(workload.phases)
    plan = make_plan(workload, Machine.load("2x4"), PlanOptions(objective="phased")).plan
    assert plan.objective == "phased" and plan.predicted.phase_imbalance >= 0
    nodes = np.array([thread.node for thread in plan.threads])
    assert (nodes[::2] == nodes[1::2]).all()  # pairs together
    for row in workload.phases:
        if row[:4].sum() > 10 * row[4:].sum() or row[4:].sum() > 10 * row[:4].sum():
            shares = np.bincount(nodes, weights=row, minlength=2) / row.sum()
            assert shares.max() < 0.6
