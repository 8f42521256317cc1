"""What `nmap export` writes, given to the programs it is meant for: they must place as the plan says."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import msgspec
import numpy as np
import pytest

from numaplan.mapper import Plan, PlanOptions, Workload, make_plan
from numaplan.mapper.plan_file.export import export_plan
from numaplan.profiler import Machine
from tests.support.programs import PROGRAMS
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.system
SHOW = "import os; print(*sorted(os.sched_getaffinity(0)))"


def plan_here(threads: int, argv: tuple[str, ...] = (), seed: int = 1) -> Plan:
    """A plan for this machine, its threads in an order that no runtime would come to by itself."""
    comm = np.triu(np.random.default_rng(seed).random((threads, threads)), 1)
    workload = Workload(
        threads=[("p0", f"0.{i}" if i else "0") for i in range(threads)],
        comm=comm + comm.T,
        loads=np.ones(threads),
        sources={},
        argv=argv,
    )
    plan = make_plan(workload, Machine.load("local"), PlanOptions()).plan
    cpus = [thread.cpus for thread in plan.threads][::-1]
    turned = tuple(msgspec.structs.replace(t, cpus=c) for t, c in zip(plan.threads, cpus, strict=True))
    return msgspec.structs.replace(plan, threads=turned)


def shell(text: str, folder: Path, **more: str) -> str:
    command, env = ["sh", "-c", text], {**os.environ, **more}
    result = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def needed(program: str, package: str) -> None:
    if not shutil.which(program):
        pytest.skip(f"{program} is not here (Debian package {package})")


@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize(
    "compiler,form", [("gcc", "omp"), ("gcc", "gomp"), ("clang", "omp"), ("clang", "kmp")]
)
def test_openmp_runtimes_bind_as_planned(compiler: str, form: str, threads: int, tmp_path: Path) -> None:
    needed(compiler, compiler)
    source = PROGRAMS / "mapper/export_threads.c"
    command = [compiler, "-fopenmp", "-o", str(tmp_path / "app"), str(source)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode and ("omp.h" in built.stderr or "lomp" in built.stderr):
        pytest.skip(f"{compiler} has no OpenMP runtime here (Debian package libomp-dev)")
    assert built.returncode == 0, built.stderr
    plan = plan_here(threads)
    said = shell(export_plan(plan, form) + "./app", tmp_path)
    bound = {int(line.split()[0]): tuple(map(int, line.split()[1:])) for line in said.splitlines()}
    assert bound == {thread.thread: tuple(thread.cpus) for thread in plan.threads}


@pytest.mark.parametrize(
    "form,program,package",
    [
        ("taskset", "taskset", "util-linux"),
        ("numactl", "numactl", "numactl"),
        ("hwloc", "hwloc-bind", "hwloc"),
    ],
)
def test_binding_programs_take_the_command(form: str, program: str, package: str, tmp_path: Path) -> None:
    needed(program, package)
    for threads in (1, 2):
        plan = plan_here(threads, ("python3", "-c", SHOW))
        wanted = sorted({cpu for thread in plan.threads for cpu in thread.cpus})
        assert shell(export_plan(plan, form), tmp_path).split() == [str(cpu) for cpu in wanted]


def test_mpirun_takes_the_rankfile(tmp_path: Path) -> None:
    needed("mpirun", "openmpi-bin")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("Open MPI wants a cpu a rank, and there is one")
    plan = plan_here(2)
    (tmp_path / "ranks").write_text(export_plan(plan, "rankfile"))
    # To a file of its own: mpirun may mix the ends of its ranks' lines.
    (tmp_path / "show.py").write_text(
        "import os\n"
        "with open('cpus' + os.environ['OMPI_COMM_WORLD_RANK'], 'w') as said:\n"
        "    print(*sorted(os.sched_getaffinity(0)), file=said)\n"
    )
    shell(
        "mpirun -np 2 --mca rmaps_rank_file_physical 1 --rankfile ranks python3 show.py", tmp_path,
        OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
    )  # fmt: skip
    bound = [tuple(map(int, (tmp_path / f"cpus{number}").read_text().split())) for number in range(2)]
    assert dict(enumerate(bound)) == {thread.thread: thread.cpus for thread in plan.threads}


@pytest.mark.parametrize("form,program,rank", [
    ("openmpi", "mpirun", "OMPI_COMM_WORLD_RANK"), ("hydra", "mpiexec.hydra", "PMI_RANK"),
])  # fmt: skip
def test_launchers_of_ranks_take_the_line(form: str, program: str, rank: str, tmp_path: Path) -> None:
    needed(program, {"mpirun": "openmpi-bin", "mpiexec.hydra": "mpich"}[program])
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("a cpu a rank is wanted, and there is one")
    show = f"import os; open(os.environ['{rank}'], 'w').write(str(sorted(os.sched_getaffinity(0))))"
    plan = plan_here(2, ("python3", "-c", show))
    text = export_plan(plan, form).replace("mpirun ", "mpirun --display-map ")
    said = shell(text, tmp_path, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    bound = [(tmp_path / str(number)).read_text() for number in range(2)]
    assert bound == [str(list(thread.cpus)) for thread in plan.threads]
    assert form == "hydra" or said.count("Process OMPI jobid") == 2


def test_srun_syntax(tmp_path: Path) -> None:
    """srun needs a controller: its grammar (man srun, --cpu-bind) is checked, and that a shell keeps it."""
    plan = plan_here(2, ("./app", "two words"))
    text = export_plan(plan, "slurm")
    binding = r"--cpu-bind=(map_cpu:\d+(,\d+)*|mask_cpu:0x[0-9a-f]+(,0x[0-9a-f]+)*)"
    memory = binding.replace("cpu", "mem")
    line, *notes = text.splitlines()
    assert re.fullmatch(rf"srun --nodes=1 --ntasks=2 {binding} {memory} .*", line)
    assert all(note.startswith("# ") for note in notes)
    said = shell('srun() { printf "%s\\n" "$@"; }\n' + text, tmp_path).splitlines()
    cpus = ",".join(str(thread.cpus[0]) for thread in plan.threads)
    nodes = ",".join(str(thread.node) for thread in plan.threads)
    bound = [f"--cpu-bind=map_cpu:{cpus}", f"--mem-bind=map_mem:{nodes}"]
    assert said == ["--nodes=1", "--ntasks=2", *bound, "./app", "two words"]
