"""A job's plan on four hosts, started by real launchers with the lines that `nmap export` prints.

The hosts are namespaces of this machine. NUMAPLAN_STARTS: how often each launcher starts the job (1).
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from numaplan.mapper import JobPlan
from tests.support.commands import needs, succeed
from tests.support.hosts import Hosts, hosts, slurm, with_our_commands
from tests.support.jobs import ORDER, job_of
from tests.support.programs import PROGRAMS, compiled

pytestmark = pytest.mark.system
STARTS = int(os.environ.get("NUMAPLAN_STARTS", "1"))
ALLOCATED = ("salloc", "--quiet", "--nodes=4", "--ntasks=8")
# launcher: (form of the export, compiler, what stands before the shell). Not Open MPI by srun and PMIx: with
# those of Debian 12 ranks crash now and then in MPI_Finalize, without nlaunch too.
LAUNCHERS = {
    "Open MPI's rankfile": ("openmpi", "mpicc.openmpi", ()),
    "Open MPI's sequence": ("seq", "mpicc.openmpi", ()),
    "MPICH": ("hydra", "mpicc.mpich", ()),
    "Slurm": ("slurm", "mpicc.mpich", ()),
    "Open MPI in Slurm's allocation": ("openmpi", "mpicc.openmpi", ALLOCATED),
}
TOOLS = {"openmpi": "mpirun.openmpi", "seq": "mpirun.openmpi", "hydra": "mpiexec.hydra", "slurm": "srun"}


@pytest.fixture(scope="module")
def four() -> Iterator[Hosts]:
    with hosts(4) as made:
        yield made


@pytest.fixture(scope="module")
def under_slurm(four: Hosts) -> Iterator[Mapping[str, str]]:
    with slurm(four) as environment:
        yield environment


def program(compiler: str) -> Path:
    return compiled(PROGRAMS / "job_ranks.c", flags=("-O1", "-pthread"), compiler=compiler)


def planned_cpus(job: JobPlan) -> dict[tuple[str, str], list[int]]:
    return {
        (thread.process, thread.path): list(thread.cpus)
        for plan in job.hosts.values()
        for thread in plan.threads
    }


def reports_in(folder: Path) -> dict[int, dict[str, Any]]:
    found = [json.loads(file.read_bytes()) for file in folder.iterdir()]
    return {report["rank"]["rank"]: report for report in found}


def assert_as_planned(job: JobPlan, said: str, folder: Path) -> None:
    """Ranks said where they ran, their threads what the kernel let them run on; reports name the threads."""
    lines = [line.split() for line in said.splitlines()]
    ranks = {int(words[1]): words[2:] for words in lines if words[0] == "rank"}
    ring = {rank: [host, str((rank - 1) % len(ORDER))] for rank, host in job.host_of.items()}
    assert ranks == ring
    seen = {(int(words[1]), int(words[2])): words[3] for words in lines if words[0] == "thread"}
    found = {}
    for rank, report in reports_in(folder).items():
        assert (report["rank"]["host"], report["rank"]["planned"]) == (ORDER[rank], ORDER[rank])
        for thread in report["threads"]:
            assert thread["applied"] == thread["planned"]
            found[thread["process"], thread["path"]] = [int(seen[rank, thread["tid"]])]
    assert found == planned_cpus(job)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_every_rank_and_thread_is_where_the_plan_has_it(
    launcher: str, four: Hosts, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    form, compiler, before = LAUNCHERS[launcher]
    needs(TOOLS[form])
    environment = with_our_commands({"SLURM_MPI_TYPE": "pmi2"})
    if before or form == "slurm":
        environment.update(request.getfixturevalue("under_slurm"))
    job = job_of((str(program(compiler)),))
    job.save(tmp_path / "job.json")
    line = succeed("nmap", "export", "job.json", "--format", form, cwd=tmp_path).decode()
    for start in range(STARTS):
        folder = tmp_path / f"reports{start}"
        told = line.replace("--job job.json", f"--job job.json --report {folder.name}")
        done = four.run([*before, "sh", "-ec", told], tmp_path, **environment)
        assert done.returncode == 0, done.stderr
        assert_as_planned(job, done.stdout, folder)
