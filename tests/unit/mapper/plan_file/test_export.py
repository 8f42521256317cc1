"""Placements in the languages of other launchers: what their programs would not survive."""

import re

import msgspec
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


@pytest.mark.parametrize("form", ["openmpi", "hydra", "slurm"])
def test_ranks_do_not_start_the_job_again(form: str) -> None:
    """'nprof record mpirun -n 4 ./app' has the launcher in its command line."""
    app = PlanApp(argv=("mpirun", "-n", "2", "./app", "two words"), threads=2, executable="app")
    plan = msgspec.structs.replace(plan_of_ranks((0,), (1,)), app=app)
    line = next(line for line in export_plan(plan, form).splitlines() if line.endswith("./app 'two words'"))
    assert line.count("mpirun") == (form == "openmpi")
    unknown = msgspec.structs.replace(plan, app=msgspec.structs.replace(app, executable="other"))
    assert line.replace("'two words'", "").strip() in export_plan(unknown, form).splitlines()


def test_forked_processes_are_ranks_in_order_of_creation() -> None:
    plan = plan_of_ranks(*((cpu,) for cpu in range(12)))
    names = ["p0", *(f"p0.{number}" for number in range(1, 12))]
    threads = [
        msgspec.structs.replace(one, process=name) for one, name in zip(plan.threads, names, strict=True)
    ]
    text = export_plan(msgspec.structs.replace(plan, threads=tuple(threads)), "slurm")
    assert " --cpu-bind=map_cpu:0,1,2,3,4,5,6,7,8,9,10,11 " in text


def test_threads_that_follow_others_are_no_more_threads_at_a_time() -> None:
    """A team of four of which two end, twice, and come again: the runtime gives them the same numbers."""
    plan = plan_of_ranks((0, 1, 2, 3, 4, 5, 6, 7))
    cpus, lanes = (0, 1, 2, 3, 2, 3, 2, 3), (msgspec.UNSET, msgspec.UNSET, 3, 4, 3, 4, 3, 4)
    threads = tuple(
        msgspec.structs.replace(one, cpus=(cpu,), lane=lane)
        for one, cpu, lane in zip(plan.threads, cpus, lanes, strict=True)
    )
    plan = msgspec.structs.replace(plan, threads=threads)
    omp = export_plan(plan, "omp").splitlines()
    assert omp[0] == "export OMP_PLACES='{0},{1},{2},{3}'"
    assert omp[2] == "export OMP_NUM_THREADS=4"
    assert export_plan(plan, "gomp").startswith(
        "export GOMP_CPU_AFFINITY='0 1 2 3'\nexport OMP_NUM_THREADS=4\n"
    )
    hydra = export_plan(plan, "hydra")
    assert hydra.startswith("mpiexec.hydra -n 4 -bind-to user:0,1,2,3 ./app\n")
    assert "one process with 8 threads, 4 at a time: this starts it 4 times" in hydra
