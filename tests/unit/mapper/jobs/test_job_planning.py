"""`nmap plan job/`: the same bytes on every engine, unlike hosts, and what it says."""

from pathlib import Path

import msgspec
import pytest

from benchmarks.mapper.job_instances import halo, make_job
from numaplan.machine import Cluster
from numaplan.mapper import JobPlan
from numaplan.mapper.commands.main import main
from numaplan.mapper.jobs.part_reading import read_part
from numaplan.mapper.jobs.part_tables import part_folders
from numaplan.mapper.jobs.part_writing import write_part
from tests.support.commands import succeed


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve ranks of two threads."""
    return make_job(tmp_path_factory.mktemp("jobs") / "job", halo((3, 2, 2)), 2, "2x4")


CLUSTER = "2*2x4:4+2*4x2:2"


def planned(job: Path, output: Path, *words: str) -> bytes:
    succeed("nmap", "plan", job, "--cluster", CLUSTER, "-o", output, *words)
    return output.read_bytes()


def test_the_plan_of_unlike_hosts(job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("plan", str(job), "--cluster", CLUSTER, "--engine", "local:1", "-o", str(tmp_path / "job.json"))
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "12 ranks on 4 of 4 hosts" in out and "bytes between hosts" in out
    plan = JobPlan.load(tmp_path / "job.json")
    assert plan.cluster == Cluster.load(CLUSTER)
    assert [len(plan.ranks_on(f"h{number}")) for number in range(4)] == [4, 4, 2, 2]
    for host, own in plan.hosts.items():
        assert {thread.process for thread in own.threads} == {f"r{rank}" for rank in plan.ranks_on(host)}
        assert own.machine.fingerprint == plan.cluster.by_name[host].machine.fingerprint
        cpus = [cpu for thread in own.threads for cpu in thread.cpus]
        assert len(cpus) == len(set(cpus))
    found = plan.predicted
    assert found.message_bytes == 20 * 2 << 20
    assert 0 < found.between_hosts <= found.baselines["rank order"] < found.message_bytes
    assert set(found.local_share) == {"h0", "h1", "h2", "h3"}
    assert main(("show", str(tmp_path / "job.json"))) == 0
    assert "h3" in capsys.readouterr().out
    assert main(("show", str(tmp_path / "job.json"), "--host", "h3")) == 0
    assert "4 threads on 4 nodes" in capsys.readouterr().out
    assert main(("show", str(tmp_path / "job.json"), "--json")) == 0
    assert capsys.readouterr().out.encode() == (tmp_path / "job.json").read_bytes()
    assert main((*words, "--json")) == 0
    answer = msgspec.json.decode(capsys.readouterr().out)
    assert answer["ranks"] == 12 and sorted(rank for own in answer["hosts"].values() for rank in own) == list(
        range(12)
    )


@pytest.mark.slow
def test_processes_give_the_same_bytes(job: Path, tmp_path: Path) -> None:
    assert planned(job, tmp_path / "a", "--engine", "local:1") == planned(
        job, tmp_path / "b", "--engine", "local:3"
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--cluster", "1*2x4:4"), "12 ranks for 4 slots on one host"),
        (("--cluster", "1*2x4:1"), "12 ranks for 1 slot on one host"),
        (("--cluster", CLUSTER, "--engine", "ray"), "no such engine"),
        (("--cluster", CLUSTER, "--engine", "local:0"), "no such engine"),
        (("--cluster", CLUSTER, "--engine", "dask:nothing.json"), "no such file"),
        (("--cluster", CLUSTER, "--engine", "mpi"), "mpirun -n 5 python -m mpi4py.futures -m numaplan"),
        (("--cluster", CLUSTER, "--machine", "2x4"), "--machine with --cluster"),
        (("--cluster", CLUSTER, "--from", "1s"), "--from with --cluster"),
        (("--cluster", CLUSTER, "--method", "magic"), "magic"),
        (("--cluster", "nowhere.json"), "nowhere.json"),
        ((), "needs --cluster"),
    ],
)
def test_calls_that_cannot_be(
    job: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    if "dask:nothing.json" in words:
        pytest.importorskip("distributed")
    assert main(("plan", str(job), "-o", str(tmp_path / "j"), *words)) == 2
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "says"), [("nowhere", "no such folder"), ("file", "not the folder of a job")]
)
def test_no_folder_of_a_job(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "file").touch()
    assert main(("plan", str(tmp_path / name), "--cluster", CLUSTER)) == 2
    error = capsys.readouterr().err
    assert f"{name}: {says}" in error and error.count("\n") == 1


def test_a_job_without_a_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    peers = halo((4,))
    make_job(tmp_path / "job", peers, 1, "1x2")
    for file in (tmp_path / "job/rank=2").iterdir():
        file.unlink()
    (tmp_path / "job/rank=2").rmdir()
    words = (
        "plan",
        str(tmp_path / "job"),
        "--cluster",
        "2*1x2:2",
        "-o",
        str(tmp_path / "j"),
        "--engine",
        "local:1",
    )
    assert main(words) == 2
    assert "parts of 3 ranks of 4; missing: 2" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(("plan", str(tmp_path / "empty"), "--cluster", "2*1x2:2")) == 2
    assert "no part of a rank" in capsys.readouterr().err


def test_ranks_of_several_programs_keep_theirs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_job(tmp_path / "job", halo((3,)), 1, "1x2")
    words = ("plan", str(folder), "--cluster", "2*1x2:2", "--engine", "local:1", "-o")
    assert main((*words, str(tmp_path / "one.json"))) == 0
    assert '"argv"' not in (tmp_path / "one.json").read_text().partition('"hosts"')[0]
    for part in map(read_part, part_folders(folder).values()):
        argv = ("./ocean", "3") if part.facts.rank else ("./atmos",)
        write_part(
            folder, msgspec.structs.replace(part, facts=msgspec.structs.replace(part.facts, argv=argv))
        )
    assert main((*words, str(tmp_path / "two.json"))) == 0
    found = JobPlan.load(tmp_path / "two.json")
    assert [one.argv for one in found.ranks] == [("./atmos",), ("./ocean", "3"), ("./ocean", "3")]
    capsys.readouterr()
    assert main(("export", str(tmp_path / "two.json"), "--format", "openmpi")) == 0
    line = capsys.readouterr().out
    assert "./atmos : -n 2 " in line and line.count("./ocean 3") == 1
