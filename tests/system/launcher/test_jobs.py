"""A job's plan on four hosts, started by real launchers with the lines that `nmap export` prints.

The hosts are namespaces of this machine. NUMAPLAN_STARTS: how often each launcher starts the job (1).
"""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from numaplan.machine import Machine
from numaplan.mapper import JobPlan
from numaplan.mapper.plan_file.export import export_plan
from tests.support.commands import needs, succeed
from tests.support.hosts import Hosts, hosts, slurm, with_our_commands
from tests.support.jobs import ORDER, job_of
from tests.support.outside import plan_of_threads
from tests.support.programs import EXAMPLES, PROGRAMS, compiled
from tests.support.waiting import until

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
    try:
        return compiled(PROGRAMS / "jobs/job_ranks.c", flags=("-O1", "-pthread"), compiler=compiler)
    except subprocess.CalledProcessError as error:
        if "mpi.h" in error.stderr:
            pytest.skip(f"{compiler} has no mpi.h here")
        raise AssertionError(error.stderr) from None


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


@pytest.mark.slow
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
        total = json.loads(succeed("nmap", "show", folder, "--json"))
        assert total["ok"] and total["ranks"] == total["total"]["ranks_as_planned"] == len(ORDER)
        assert total["total"]["threads_as_planned"] == len(planned_cpus(job))


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["Open MPI's rankfile", "Open MPI's sequence", "MPICH", "Slurm"])
def test_ranks_of_several_programs_each_start_theirs(
    launcher: str, four: Hosts, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    form, compiler, _ = LAUNCHERS[launcher]
    needs(TOOLS[form])
    environment = with_our_commands({"SLURM_MPI_TYPE": "pmi2"})
    if form == "slurm":
        environment.update(request.getfixturevalue("under_slurm"))
    scripts = [tmp_path / "atmos", tmp_path / "ocean"]
    for script in scripts:
        variables = "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$SLURM_PROCID}}"
        script.write_text(f"#!/bin/sh\necho program {variables} {script.name}\nexec {program(compiler)}\n")
        script.chmod(0o755)
    job = job_of((str(scripts[0]),))
    ranks = tuple(msgspec.structs.replace(one, argv=(str(scripts[one.rank in (1, 2)]),)) for one in job.ranks)
    job = msgspec.structs.replace(job, ranks=ranks)
    job.save(tmp_path / "job.json")
    line = succeed("nmap", "export", "job.json", "--format", form, cwd=tmp_path).decode()
    done = four.run(
        ["sh", "-ec", line.replace("--job job.json", "--job job.json --report reports")],
        tmp_path,
        **environment,
    )
    assert done.returncode == 0, done.stderr
    said = dict(line.split()[1:] for line in done.stdout.splitlines() if line.startswith("program"))
    assert {int(rank): name for rank, name in said.items()} == {
        rank: "ocean" if rank in (1, 2) else "atmos" for rank in range(len(ORDER))
    }
    assert_as_planned(job, done.stdout, tmp_path / "reports")


@pytest.mark.slow
def test_a_job_of_slurm_from_its_recording_to_its_report(
    four: Hosts, under_slurm: Mapping[str, str], tmp_path: Path
) -> None:
    """As in the guide; first by an MPI that the launcher's numbers do not reach."""
    needs("perf", "srun", "mpicc.mpich")
    example = compiled(EXAMPLES / "every_second.c", flags=("-O2", "-pthread"), compiler="mpicc.mpich")
    record = "nprof record --backend faults --multiprocess --messages auto"
    (tmp_path / "batch").write_text(
        f"SLURM_MPI_TYPE=none srun -n 2 {record} -o alone.db {example} 5\n"
        f"srun -n 8 {record} --reduce -o job/ {example} 20\n"
        "nmap cluster --slurm -o cluster.json\n"
        "nmap plan job/ --cluster cluster.json -o job.json\n"
        "nmap export job.json --format slurm -o start.sh\n"
        "sed -i 's/--job job.json/& --report reports/' start.sh\n"
        "sh start.sh\n"
    )
    environment = with_our_commands({**under_slurm, "SLURM_MPI_TYPE": "pmi2", "UCX_TLS": "self,sm"})
    done = four.run([*ALLOCATED, "sh", "-ex", "batch"], tmp_path, **environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("warning: no messages: each rank is alone in MPI") == 2
    job = JobPlan.load(tmp_path / "job.json")
    assert [host.slots for host in job.cluster.hosts] == [2] * 4
    steps_of = 20 * 2 * 4096 * 8  # what a rank sends
    assert job.predicted.baselines["rank order"] == pytest.approx(8 * steps_of, rel=0.01)
    assert job.predicted.between_hosts == pytest.approx(4 * steps_of, rel=0.01)
    total = json.loads(succeed("nmap", "show", "reports", "--json", cwd=tmp_path))
    assert total["ok"] and total["ranks"] == total["total"]["ranks_as_planned"] == 8


def test_slurm_binds_cpus_and_memory_as_an_exported_plan_has_them(
    four: Hosts, under_slurm: Mapping[str, str], tmp_path: Path
) -> None:
    cpus = Machine.load("local").cpus[:2]
    if len(cpus) < 2:
        pytest.skip("needs two cpus")
    show = "cat /proc/self/status /proc/self/numa_maps >$SLURM_PROCID"
    plan = plan_of_threads([("p0", "0"), ("p0", "0.1")])
    turned = [
        msgspec.structs.replace(one, cpus=(cpu,)) for one, cpu in zip(plan.threads, cpus[::-1], strict=True)
    ]
    app = msgspec.structs.replace(plan.app, argv=("sh", "-c", show))
    text = export_plan(msgspec.structs.replace(plan, app=app, threads=tuple(turned)), "slurm")
    done = four.run(["sh", "-ec", text], tmp_path, **under_slurm)
    assert done.returncode == 0, done.stderr
    for rank, thread in enumerate(turned):
        said = (tmp_path / str(rank)).read_text()
        assert f"Cpus_allowed_list:\t{thread.cpus[0]}\n" in said
        assert f" bind:{thread.node} " in said


def test_look_finds_the_processes_of_a_job_that_slurm_has_started(
    four: Hosts, under_slurm: Mapping[str, str], tmp_path: Path
) -> None:
    cpu = Machine.load("local").cpus[-1]
    environment = with_our_commands(under_slurm)
    words = ["srun", "--nodelist=h0", f"--cpu-bind=map_cpu:{cpu}", "sh", "-c"]
    told = tmp_path / "job"
    started = f"echo $SLURM_JOB_ID >{told}.new && mv {told}.new {told} && exec yes >/dev/null"
    four.serve([*words, started], "job", **environment)
    until(told.exists)
    job = told.read_text().strip()
    look, busy = ["numaplan", "look", "--seconds", "0.2", "--slurm"], []

    def runs() -> bool:
        done = four.run([*look, job, "--json"], tmp_path, **environment)
        assert done.returncode == 0, done.stderr
        processes = json.loads(done.stdout)["processes"]
        busy[:] = [
            one["cpus"] for process in processes if process["command"] == ["yes"] for one in process["busy"]
        ]
        return bool(busy)

    until(runs)
    assert busy == [[cpu]], "where Slurm has bound it"
    four.run(["scancel", job], tmp_path, **environment)
    missing = four.run([*look, "9999"], tmp_path, **environment)
    assert missing.returncode == 2 and "no processes of Slurm job 9999 on this host" in missing.stderr


def sent(on: Hosts) -> int:
    """Bytes that h0 has sent to other hosts."""
    told = json.loads(on.run(["ip", "-json", "-statistics", "link", "show", "eth0"], on.folder).stdout)
    return int(told[0]["stats64"]["tx"]["bytes"])


@pytest.mark.slow
def test_a_plan_keeps_bytes_on_their_host(four: Hosts, tmp_path: Path) -> None:
    """Ranks that talk to the next but one: in rank order all of it goes to the other host."""
    needs("mpirun.openmpi")
    example = compiled(EXAMPLES / "every_second.c", flags=("-O2", "-pthread"), compiler="mpicc.openmpi")
    job_of((str(example),), order=("h0", "h1", "h0", "h1")).save(tmp_path / "job.json")
    line = succeed("nmap", "export", "job.json", "--format", "openmpi", cwd=tmp_path).decode()
    begun = sent(four)
    four.run(["mpirun.openmpi", "--host", "h0:2,h1:2", "--bind-to", "none", example], tmp_path)
    in_order = sent(four) - begun
    done = four.run(["sh", "-ec", line], tmp_path, **with_our_commands({}))
    assert done.returncode == 0, done.stderr
    assert in_order > 20 * 2 * 4096 * 8 * 2  # steps, edges, doubles in bytes, ranks
    assert 10 * (sent(four) - begun - in_order) < in_order


@pytest.mark.slow
def test_a_missing_host_and_a_rank_too_many_do_not_stop_the_job(four: Hosts, tmp_path: Path) -> None:
    """Seven ranks in order on three of the four hosts: only ranks 1 and 5 are where they are planned."""
    needs("mpirun.openmpi")
    job_of().save(tmp_path / "job.json")
    started = ["mpirun.openmpi", "-n", "7", "--host", "h0:3,h1:1,h2:3", "--bind-to", "none"]
    words = [*started, "nlaunch", "--job", "job.json", "--report", "reports", program("mpicc.openmpi")]
    done = four.run(words, tmp_path, **with_our_commands({}))
    assert done.returncode == 0, done.stderr
    assert sum(line.startswith("rank ") for line in done.stdout.splitlines()) == 7
    assert "rank 2 is planned on host h3, and runs on h0: it is not bound" in done.stderr
    assert "rank 6 is not in the plan (it has ranks 0-5): it is not bound" in done.stderr
    total = json.loads(succeed("nmap", "show", "reports", "--json", cwd=tmp_path))
    odd = {one["rank"]: one["what"][0] for one in total["odd"]}
    wrong = {rank: f"planned on {ORDER[rank]}" for rank in (0, 2, 3, 4)}
    assert odd == wrong | {6: "not in the plan"} and not total["silent"]
    assert total["total"]["threads_as_planned"] == total["total"]["threads"] == 6
