"""Whether `nmap check` judges what can be judged, and how it says so."""

import numpy as np
import pytest
from msgspec.structs import replace

from numaplan.common import UsageError
from numaplan.mapper import Plan, PlanOptions, make_plan
from numaplan.mapper.plan_file.diff import differences
from numaplan.mapper.planning.judge.check import Verdict, check_plan_today, parse_share
from numaplan.mapper.workload.workload import Workload
from numaplan.profiler import Machine

MACHINE = Machine.load("2x4")


def workload(threads: int, program: str = "./app", build: str = "aa") -> Workload:
    """Threads i and i + N/2 exchange 3, neighbours 1."""
    comm = np.zeros((threads, threads))
    for i in range(threads):
        for other, weight in ((i + threads // 2, 3.0), (i + 1, 1.0)):
            comm[i, other % threads] = comm[other % threads, i] = weight
    return Workload(
        threads=[("p0", f"0.{i}" if i else "0") for i in range(threads)],
        comm=comm,
        loads=np.ones(threads),
        sources={},
        argv=(program,),
        build_id=build,
    )


def plan_of(work: Workload, method: str = "best") -> Plan:
    return make_plan(work, MACHINE, PlanOptions(method=method)).plan


def judge(plan: Plan, work: Workload, *, strict: bool = False) -> Verdict:
    return check_plan_today(
        plan, work, MACHINE, 0.05, seed=0, effort="normal", name="plan.json", strict=strict
    )


def crossing(pairs: int, scale: float = 1.0, source: str = "comm") -> Workload:
    """Threads i and i ^ 1 exchange 10,000; by their numbers 3 * pairs cross nodes, at best 2 * pairs."""
    comm = np.zeros((8, 8))
    for one, other, weight in (
        *((i, i + 1, 10_000) for i in (0, 2, 4, 6)),
        *((0, 4, pairs), (1, 5, 2 * pairs), (0, 2, 2 * pairs)),
    ):
        comm[one, other] = comm[other, one] = weight * scale
    return replace(workload(8), comm=comm, sources={source: "00"})


@pytest.mark.parametrize(("pairs", "good"), [(30, True), (1000, False)])
def test_a_small_loss_is_told_and_breaks_nothing(pairs: int, good: bool) -> None:
    work = crossing(pairs)
    plan = plan_of(crossing(0), "compact")
    verdict, strict = judge(plan, work), judge(plan, work, strict=True)
    assert verdict.regress == strict.regress == pytest.approx(0.5)
    assert verdict.loss == pytest.approx(pairs / (40_000 + 5 * pairs))
    assert verdict.ok == good and not strict.ok
    assert ("0.07% of all communication (--strict" in verdict.reason) == good


def test_a_loss_that_may_be_chance_breaks_nothing() -> None:
    plan = plan_of(crossing(0), "compact")
    assert not judge(plan, crossing(1000, 0.01)).ok  # a matrix from elsewhere
    assert not judge(plan, crossing(1000, 1.0, "trace")).ok
    few = judge(plan, crossing(1000, 0.01, "trace"))
    assert few.ok and few.chance > few.loss > 0.005 and "may be chance" in few.reason
    assert not judge(plan, crossing(1000, 0.01, "trace"), strict=True).ok


def unequal(samples: float, source: str = "trace", off: float = 0.06) -> tuple[Plan, Workload]:
    """A balanced plan, and a run in which one node has so much more load than its share, the other less."""
    loads = np.repeat([1 + off, 1 - off], 4) * samples / 8
    work = replace(workload(8), comm=np.kron(np.eye(2), np.ones((4, 4)) - np.eye(4)) * 1000)
    plan = make_plan(work, MACHINE, PlanOptions(objective="balanced", effort="fast")).plan
    return plan, replace(work, loads=loads, sources={source: "00"})


@pytest.mark.parametrize(
    ("samples", "source", "good"),
    [(200, "trace", True), (100_000, "trace", False), (200, "comm", False)],
)
def test_a_load_off_its_share_fails_where_that_is_no_chance(samples: float, source: str, good: bool) -> None:
    plan, work = unequal(samples, source)
    verdict, strict = judge(plan, work), judge(plan, work, strict=True)
    assert verdict.ok == good and not strict.ok
    off = "a node's load is 6.0% off its share, 5.0% allowed"
    assert strict.reason == off
    assert verdict.reason.endswith(f"; {off}, which may be chance (--strict counts that)" if good else off)
    assert verdict.regress == verdict.loss == 0


def test_a_load_a_little_further_off_than_allowed_breaks_nothing() -> None:
    plan, work = unequal(100_000, "comm", 0.054)
    verdict = judge(plan, work)
    assert verdict.ok and verdict.reason.endswith("which is little more (--strict counts that)")
    assert not judge(plan, work, strict=True).ok


def test_what_is_cheaper_than_today_s_best_loses_nothing() -> None:
    """Today's best is balanced, and a plan that is not may have less between nodes."""
    plan, work = unequal(200)
    comm = work.comm + 10 * (1 - np.eye(8))
    uneven = replace(work, comm=comm, loads=np.repeat([1.3, 0.7], 4) * 25)
    verdict = judge(plan, uneven)
    assert verdict.today.predicted.remote_comm > verdict.baseline.remote_comm
    assert verdict.regress == verdict.loss == 0
    assert not verdict.ok and verdict.best.remote_comm == verdict.today.predicted.remote_comm
    assert "-" not in verdict.reason


def test_the_worst_pairs_are_named_with_their_nodes_and_shares() -> None:
    work = workload(8)
    verdict = judge(plan_of(work, "compact"), work)
    assert not verdict.ok
    assert verdict.lines[1] == "  0 (node 0) and 0.4 (node 1): 15.0% of all communication"
    assert len(verdict.lines) == 1 + 4 + 2  # four pairs of 3 and two of 1 cross


def test_two_processes_are_told_apart() -> None:
    work = workload(8)
    work = replace(work, threads=[(f"r{i // 4}", f"0.{i % 4}" if i % 4 else "0") for i in range(8)])
    assert "r0:0 (node 0) and r1:0 (node 1)" in judge(plan_of(work, "compact"), work).lines[1]


def test_a_run_with_other_threads_is_refused() -> None:
    with pytest.raises(UsageError, match="not in it"):
        judge(plan_of(workload(6)), workload(8))
    with pytest.raises(UsageError, match="for 8 threads, today there are 3"):
        judge(plan_of(workload(8)), workload(3))


def test_doubts() -> None:
    plan = plan_of(workload(8))
    assert judge(plan, workload(8)).notes == []
    assert judge(plan, workload(8, build="bb")).notes == []  # built again: what check is for
    assert judge(plan, workload(8, "bin/app", "bb")).notes == []
    assert judge(plan, workload(8, "./renamed")).notes == []
    assert judge(plan, workload(8, "./other", "bb")).notes == [
        "plan.json was made for another program (app, not other)"
    ]
    assert judge(plan, workload(6)).notes == ["2 of the 8 threads in plan.json did not run today"]


def test_what_a_plan_does_not_predict_is_unknown_in_a_difference() -> None:
    plan = plan_of(workload(8))
    known = replace(plan, predicted=replace(plan.predicted, local_share=0.5))
    assert differences(plan, known) == ["local_share: unknown -> 0.5"]


def test_a_bare_number_above_one_may_be_meant_in_percent() -> None:
    shares = {"5%": 0.05, "0.05": 0.05, "1": 1.0, "0": 0.0, "900%": 9.0, "1e9": 1e9}
    assert {text: parse_share(text) for text in shares} == shares
    for text, hint in (("5", "write 5% or 0.05"), ("1.5", "write 1.5% or 0.015"), ("100", "write 100% or 1")):
        with pytest.raises(UsageError, match=f"--max-regress {text}") as refused:
            parse_share(text)
        assert refused.value.hint == hint
