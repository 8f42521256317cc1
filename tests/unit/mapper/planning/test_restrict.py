"""Machines with fewer cpus: reserved ones, one hwthread a core, and what cannot be."""

import msgspec
import numpy as np
import pytest

from numaplan.common import UsageError
from numaplan.mapper import PlanOptions, Workload, make_plan
from numaplan.mapper.planning.judge.check import check_plan_today
from numaplan.mapper.planning.options import restrict
from numaplan.profiler import Machine

SMT = Machine.from_dict({
    "schema": "numaplan/machine/1",
    "nodes": [{"id": 0, "cpus": [0, 1, 2, 3]}, {"id": 1, "cpus": [4, 5, 6, 7]}],
    "cores": [{"cpus": [c, c + 1], "node": c // 4} for c in range(0, 8, 2)],
})  # fmt: skip


def test_reserved_cpus_get_no_thread() -> None:
    comm = np.ones((5, 5))
    workload = Workload([("p0", f"0.{i}" if i else "0") for i in range(5)], comm, np.ones(5), {})
    plan = make_plan(workload, SMT, PlanOptions(without_cpus=(0, 4, 5))).plan
    used = {cpu for thread in plan.threads for cpu in thread.cpus}
    assert used == {1, 2, 3, 6, 7}
    assert [thread.node for thread in plan.threads].count(0) == 3
    assert plan.provenance["options"]["without_cpus"] == [0, 4, 5]


def test_the_other_hwthread_stands_in_for_a_reserved_one() -> None:
    assert restrict(SMT, smt="avoid").cpus == (0, 2, 4, 6)
    assert restrict(SMT, smt="avoid", without=(0,)).cpus == (1, 2, 4, 6)


def test_a_node_wholly_reserved_gets_nothing() -> None:
    usable = restrict(SMT, without=(4, 5, 6, 7))
    assert [node.id for node in usable.cpu_nodes] == [0]
    assert len(usable.nodes) == 2


def test_a_plan_is_judged_under_its_own_options() -> None:
    rng = np.random.default_rng(2)
    comm = np.triu(rng.random((5, 5)), 1)
    threads = [("p0", f"0.{i}" if i else "0") for i in range(5)]
    workload = Workload(threads, comm + comm.T, np.ones(5), {})
    plan = make_plan(workload, SMT, PlanOptions(without_cpus=(0, 4, 5), objective="remote")).plan
    verdict = check_plan_today(plan, workload, SMT, 0.0, seed=0, effort="normal", name="p")
    assert verdict.ok and verdict.today == plan
    broken = msgspec.structs.replace(plan, provenance={"options": {"without_cpus": "all"}})
    with pytest.raises(UsageError, match="provenance"):
        check_plan_today(broken, workload, SMT, 0.0, seed=0, effort="normal", name="p")


@pytest.mark.parametrize("without", [(99,), tuple(range(8))])
def test_what_cannot_be_is_refused(without: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match=r"no cpu"):
        restrict(SMT, without=without)


def test_a_machine_without_cpus_is_called_that() -> None:
    content = {"schema": "numaplan/machine/1", "nodes": [{"id": 0, "cpus": []}, {"id": 1, "cpus": []}]}
    with pytest.raises(UsageError, match="the machine has no node with cpus"):
        restrict(Machine.from_dict(content))


def test_a_machine_with_caches_loses_them_with_its_cpus() -> None:
    caches = [{"level": 1, "bytes": 1024, "cpus": [[0], [1]]}]
    machine = Machine.from_dict({"nodes": [{"id": 0, "cpus": [0, 1]}], "caches": caches})
    assert restrict(machine, without=(1,)).cpus == (0,)
    assert restrict(machine).caches == machine.caches
