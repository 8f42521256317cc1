"""Programs that a plan leaves alone, on all cpus or on those that are left, and what goes without a plan."""

from typing import Any

import msgspec
import numpy as np
import pytest

from numaplan.common import UsageError
from numaplan.machine import Machine
from numaplan.mapper import Plan, PlanOptions, make_plan
from numaplan.mapper.plan_file.export import export_plan
from numaplan.mapper.plan_file.summary import summary
from numaplan.mapper.workload.larger_inputs import LargerInput
from tests.support.timed import PAIRS, plan_of, workload


@pytest.mark.parametrize(
    ("options", "cpus"),
    [({"without_cpus": (0,)}, (1, 2, 3)), ({"without_cpus": (3, 0)}, (1, 2)), ({"nodes": (0, 1)}, ())],
)
def test_threads_keep_to_the_cpus_that_are_left(options: dict[str, Any], cpus: tuple[int, ...]) -> None:
    plan = plan_of(workload(), **options)
    assert "kernel" in plan.alone and plan.memory == ()
    assert [thread.cpus for thread in plan.threads] == [cpus] * (4 if cpus else 0)
    assert {thread.pool for thread in plan.threads} <= {1}
    assert Plan.from_json(plan.to_json()) == plan
    said = summary(plan)
    assert said[0].startswith("leave it alone: ")
    kept = f"the plan keeps all 4 threads on cpus {cpus[0]}-{cpus[-1]}, and" if cpus else "the plan places no"
    assert said[-1].startswith(kept)


def test_hwthreads_of_a_core_that_others_may_have_are_left() -> None:
    machine = Machine.load("2x2")
    shared = msgspec.structs.replace(
        machine,
        cores=tuple(
            msgspec.structs.replace(machine.cores[2 * n], cpus=node.cpus)
            for n, node in enumerate(machine.nodes)
        ),
    )
    plan = make_plan(workload(), shared, PlanOptions(smt="avoid")).plan
    assert plan.alone and [thread.cpus for thread in plan.threads] == [(0, 2)] * 4


def test_without_a_plan_nothing_is_asked_for() -> None:
    """What goes on all cpus with no pins is what a plan is told against."""
    work = workload(lines=PAIRS, users=[[0], [1], [2], [3]])
    free = plan_of(work).predicted
    for options in ({"nodes": (0,)}, {"without_cpus": (1, 2)}, {"pins": {"0.1": "0", "0.2": "0"}}):
        found = plan_of(work, **options).predicted
        assert found.today == free.today and free.today is not None
        for name in ("alone", "alone, interleaved"):
            assert found.costs[name] == free.costs[name]


def test_what_a_plan_loses_is_said() -> None:
    made = make_plan(workload(), Machine.load("2x2"), PlanOptions(nodes=(0,)))
    today = made.plan.predicted.today
    assert today is not None
    lost = f"{(made.plan.predicted.cost - today.cost) / 1e6:.3g}"
    said = f"expected to cost {lost} ms of waiting more than leaving it alone, as pins or options ask for it"
    assert float(lost) > 0 and said in made.notes
    assert not any("within what is unsure" in note for note in made.notes)


def test_with_larger_inputs_too_it_is_alone_on_all_cpus() -> None:
    work = workload()
    assert work.pages is not None
    work = msgspec.structs.replace(work, larger=(LargerInput(2, 1 << 20, work.pages),))
    free, few = (
        make_plan(work, Machine.load("4x1"), PlanOptions(without_cpus=cpus)).larger for cpus in ((), (0, 1))
    )
    assert free[0].alone == few[0].alone and few[0].best_here == few[0].cost


def test_there_is_nothing_to_export_of_a_program_that_is_left_alone() -> None:
    plan = plan_of(workload())
    with pytest.raises(UsageError, match="leave the program alone"):
        export_plan(plan, "taskset")
    kept = export_plan(plan_of(workload(), without_cpus=(0,)), "taskset")
    assert kept.startswith("taskset --cpu-list 1,2,3 ")


def test_threads_that_follow_one_another_have_a_lane() -> None:
    lives = ((0, -1), (1, 10), (2, 10), (11, 20))
    work = msgspec.structs.replace(workload(lines=PAIRS), lives=lives)
    work = msgspec.structs.replace(work, comm=np.ones((4, 4)) - np.eye(4))
    plan = make_plan(work, Machine.load("2x2"), PlanOptions(method="compact")).plan
    assert [thread.lane for thread in plan.threads] == [msgspec.UNSET, 2, msgspec.UNSET, 2]
    assert plan.threads[1].cpus == plan.threads[3].cpus
    assert Plan.from_json(plan.to_json()) == plan
