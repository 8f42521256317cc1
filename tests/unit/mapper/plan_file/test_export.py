"""Placements in the languages of other launchers: what their programs would not survive."""

import re

import pytest

from numaplan.common import UsageError
from numaplan.machine import Machine
from numaplan.mapper import Plan, PlanApp, PlanMachine, PlanThread, Predicted
from numaplan.mapper.plan_file.export import export_plan


def plan_of_ranks(*ranks: tuple[int, ...]) -> Plan:
    """Ranks of one thread a cpu, on a machine of 2x32 cpus."""
    machine = Machine.load("2x32")
    threads = [
        (f"r{rank}", number, cpu) for rank, cpus in enumerate(ranks) for number, cpu in enumerate(cpus)
    ]
    return Plan(
        app=PlanApp(threads=len(threads)),
        machine=PlanMachine.of(machine),
        method="best",
        objective="remote",
        threads=tuple(
            PlanThread(
                process=process, path=f"0.{n}" if n else "0", thread=n, node=cpu // 32, cpus=(cpu,), load=1
            )
            for process, n, cpu in threads
        ),
        memory=(),
        predicted=Predicted(remote_comm=0, remote_share=0, hop_cost=0, load_std=0),
    )


def test_a_rankfile_has_ranges_in_order_of_ranks() -> None:
    """Lists of some 50 characters make mpirun of Open MPI 4.1 crash."""
    lines = export_plan(plan_of_ranks(tuple(range(32)), tuple(range(32, 64))), "rankfile").splitlines()
    assert [line for line in lines if line[0] != "#"] == [
        "rank 0=localhost slot=0-31",
        "rank 1=localhost slot=32-63",
    ]
    many = export_plan(plan_of_ranks(*((cpu,) for cpu in range(12))), "rankfile")
    assert re.findall(r"rank (\d+)", many) == [str(rank) for rank in range(12)]


def test_cpus_that_mpirun_cannot_hold_are_refused() -> None:
    with pytest.raises(UsageError, match=r"rank 1.*more than mpirun can hold"):
        export_plan(plan_of_ranks((0,), tuple(range(1, 64, 2))), "rankfile")


def test_srun_begins_its_list_on_one_node() -> None:
    """On several it would begin again on each."""
    text = export_plan(plan_of_ranks((0,), (1,), (32,)), "slurm")
    line = text.partition("\n")[0]
    assert line == "srun --nodes=1 --ntasks=3 --cpu-bind=map_cpu:0,1,32 --mem-bind=map_mem:0,0,1 ./app"
    wide = export_plan(plan_of_ranks((0, 1), (32, 33)), "slurm")
    masks = "--cpu-bind=mask_cpu:0x3,0x300000000 --mem-bind=map_mem:0,1"
    assert wide.partition("\n")[0] == f"srun --nodes=1 --ntasks=2 {masks} ./app"
