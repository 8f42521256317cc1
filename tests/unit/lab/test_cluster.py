"""Jobs on guests: who is where, what launchers are told, what counts as the application's, gates."""

import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from numaplan.common import MachineLacksError, NotSoError, UsageError, read_size
from numaplan.lab.cluster.application import of_application, stage_programs
from numaplan.lab.cluster.gates import Gates, cluster_junit, parse_share, raise_for
from numaplan.lab.cluster.hosts import guest_shapes, wanted_hosts
from numaplan.lab.cluster.launchers import host_files, launcher_environment
from numaplan.lab.cluster.ranks import rank_file, starting_ranks
from numaplan.lab.cluster.results import ClusterRun, cluster_run
from numaplan.lab.cluster.tables import show_cluster
from numaplan.lab.cluster.traffic import Traffic
from numaplan.lab.commands.main import main
from numaplan.lab.runs.counts import Counts, parse_counts
from numaplan.lab.runs.results import LabRun, lab_run
from numaplan.lab.runs.tasks import Task
from numaplan.launcher import PlannedStart
from numaplan.machine import Cluster, Host, Machine
from numaplan.mapper import JobPlan, JobPredicted
from tests.support.jobs import job_of

MACHINE = Machine.load("2x1")


def job(hosts: str = "2*2x1", app: str = "./app", placed: tuple[str, ...] = ("h0", "h1", "h0")) -> JobPlan:
    return msgspec.structs.replace(job_of([app], placed, MACHINE), cluster=Cluster.load(hosts))


def counted(rows: str, cpus: int = 2) -> Counts:
    return parse_counts(f"numaplan-lab-counts 5\n{rows}end\n".encode(), cpus, 2)


def host_run(local: int, remote: int, exit_code: int = 0) -> LabRun:
    return lab_run(
        MACHINE,
        counted(f"0 a 0 0:{local} 1:{remote}\n"),
        config="cluster",
        argv=["mpirun"],
        kernel={},
        exit_code=exit_code,
        timed_out=False,
        seconds=1.5,
    )


def run_of(sent: int, exit_code: int = 0) -> ClusterRun:
    traffic = Traffic(2)
    traffic.application[0, 1], traffic.launcher[1, 0] = sent, 7
    return cluster_run(["mpirun"], {"h0": host_run(90, 10, exit_code), "h1": host_run(50, 50)}, traffic, 3.0)


def test_hosts_are_as_many_as_asked_for_or_those_of_a_cluster_or_of_a_job() -> None:
    assert [host.name for host in wanted_hosts(3, "2x2", "", None, 0)] == ["h0", "h1", "h2"]
    assert {host.slots for host in wanted_hosts(0, "2x2", "", None, 0)} == {4}
    assert [host.slots for host in wanted_hosts(0, "", "2*2x2:3", None, 0)] == [3, 3]
    assert [host.slots for host in wanted_hosts(2, "", "2*2x2:3", None, 1)] == [1, 1]
    without_last = wanted_hosts(0, "", "", job("3*2x1"), 0)
    assert [host.name for host in without_last] == ["h0", "h1"]
    assert {host.machine.name for host in wanted_hosts(0, "1x2", "", job("3*2x1"), 0)} == {"1x2"}
    assert [shape.total_mib for shape in guest_shapes(without_last, "256M")] == [256, 256]


@pytest.mark.parametrize(
    ("count", "machine", "cluster", "plan", "said"),
    [
        (2, "", "", None, "no machine given"),
        (3, "", "2*2x1", None, "2\\*2x1 has 2"),
        (1, "", "", job(), "the plan has 2"),
        (0, "", "2*2x1", job(), "both"),
        (0, "", "65*1x1", None, "65 hosts do not fit"),
        (0, "", "1*2x1+1*64x4", None, "host h1: 64 nodes with 256 cpus do not fit"),
    ],
)
def test_hosts_that_cannot_be(
    count: int, machine: str, cluster: str, plan: JobPlan | None, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        wanted_hosts(count, machine, cluster, plan, 0)


@pytest.mark.parametrize("name", ["localhost", "10.0.0.1", "10", "N0"])
def test_names_that_lead_to_no_host_or_to_two(name: str, tmp_path: Path) -> None:
    hosts = tuple(Host(name=one, slots=2, machine=MACHINE) for one in ("n0", name))
    Cluster(hosts=hosts).save(tmp_path / "cluster.json")
    with pytest.raises(UsageError, match=f"host {name}: the lab's hosts do not find it by this name"):
        wanted_hosts(0, "", str(tmp_path / "cluster.json"), None, 0)
    Cluster(hosts=hosts[1:]).save(tmp_path / "cluster.json")  # whom nobody looks for
    assert [host.name for host in wanted_hosts(0, "", str(tmp_path / "cluster.json"), None, 0)] == [name]


def test_too_little_memory_is_so_for_each_host() -> None:
    """64 hosts were said not to fit in a sixty-fourth of what is there."""
    with pytest.raises(MachineLacksError, match="MiB are available for each of 3 hosts — give less"):
        guest_shapes(wanted_hosts(3, "2x1", "", None, 0), "999T")


def test_what_a_plan_decides_is_not_asked_for_besides() -> None:
    with pytest.raises(UsageError, match="--slots 1: the plan says which ranks a host has"):
        wanted_hosts(0, "", "", job(), 1)


def test_a_plan_without_ranks_starts_nothing() -> None:
    nothing = msgspec.structs.replace(job(), ranks=(), hosts={})
    with pytest.raises(UsageError, match="the plan has no ranks"):
        starting_ranks(nothing, ["mpirun", "true"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--", "true"], "no machine given"),
        (["-m", "2x1", "--report", "reports", "--", "true"], "--report: without a plan nothing is applied"),
        (["-m", "2x1", "--", "no-such-launcher", "-n", "4"], "no-such-launcher: no such program"),
        (["-m", "2x1", "--max-between-hosts", "few", "--", "true"], "--max-between-hosts few: not a size"),
        (["--job", "none.json", "--", "true"], "none.json: No such file"),
        (["-m", "2x1", "--timeout", "inf", "--", "true"], "--timeout inf: not a number"),
        (["-m", "2x1", "--memory", "10M", "--", "true"], "10 MiB over 2 nodes"),
        (
            ["--job", "none.json", "--report", "/dev/null", "--", "true"],
            "/dev/null: File exists — name a folder",
        ),
        (["-m", "2x1", "--hosts", "0", "--memory", "10M", "--", "true"], "--hosts: 0 is not in the range"),
        (["-m", "2x1", "--slots", "0", "--memory", "10M", "--", "true"], "--slots: 0 is not in the range"),
    ],
)
def test_what_cannot_be_is_told_before_a_boot(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cluster", *words]) == 2
    assert said in capsys.readouterr().err.replace("\n", " ")


def test_launchers_are_told_of_the_hosts_and_of_where_ranks_are_planned(tmp_path: Path) -> None:
    hosts = [Host(name="h0", slots=2, machine=MACHINE), Host(name="h1", slots=1, machine=MACHINE)]
    assert host_files(hosts, None) == ("h0 slots=2\nh1 slots=1\n", "h0:2\nh1:1\n")
    assert host_files(hosts, job(placed=("h1", "h0", "h0"))) == ("h1\nh0\nh0\n", "h1:1\nh0:2\n")
    user = {"PATH": "/bin", "UCX_TLS": "tcp", "OMPI_MCA_plm_rsh_agent": "ssh", "HOME": "/home"}
    told = launcher_environment(user, tmp_path / "bin", tmp_path, hosts, None)
    assert (told["PATH"], told["HOME"], told["UCX_TLS"]) == (f"{tmp_path}/bin:/bin", "/home", "tcp")
    assert told["OMPI_MCA_plm_rsh_agent"] == "nlab-shell"  # ssh would reach nobody
    assert Path(told["OMPI_MCA_orte_default_hostfile"]).read_text() == "h0 slots=2\nh1 slots=1\n"
    assert "OMPI_MCA_rmaps_base_mapping_policy" not in told
    told = launcher_environment(user, tmp_path / "bin", tmp_path, hosts, job())
    assert Path(told["HYDRA_HOST_FILE"]).read_text() == "h0:1\nh1:1\nh0:1\n"
    assert told["OMPI_MCA_rmaps_base_mapping_policy"] == "seq"


def test_ranks_start_by_the_file_of_their_part() -> None:
    plan = job(app="./true")
    words, program = starting_ranks(plan, ["mpirun", "-n", "2", "/bin/true", "true", ":", "true", "x"])
    assert words == ["mpirun", "-n", "2", "nlab-rank", "/bin/true", "true", ":", "nlab-rank", "true", "x"]
    assert program == "/bin/true"
    with pytest.raises(UsageError, match="the plan is of true, which the command does not start"):
        starting_ranks(plan, ["mpirun", "-n", "2", "./other"])
    start = PlannedStart(("tracer", "exec"), {"A": "1", "B": "2"}, "static")
    data = rank_file("h1", start, [3], {"A": "1", "B": "0", "C": "3"})
    assert data == b"host\0h1\0set\0B=2\0unset\0C\0cpu\x003\0before\0tracer\0before\0exec\0"


def test_what_a_task_was_its_parents_say() -> None:
    mpirun = Task(10, 1, False, "mpirun", programs=["mpirun"])
    assert stage_programs(mpirun, ["nlab-agent"]) == ["nlab-agent", "mpirun"]
    rank = Task(11, 10, False, "app", parent_execs=1, programs=["nlab-rank", "app"])
    assert stage_programs(rank, ["nlab-agent", "mpirun"]) == ["mpirun", "nlab-rank", "app"]
    thread = Task(12, 11, True, "app", parent_execs=2)
    assert stage_programs(thread, ["mpirun", "nlab-rank", "app"]) == ["app"]
    session = Task(21, 20, False, "nlab-serve", parent_execs=1)
    assert stage_programs(session, ["nlab-agent", "nlab-serve"]) == ["nlab-serve"]
    shell = Task(22, 21, False, "orted", programs=["sh", "orted"])
    assert stage_programs(shell, ["nlab-serve"]) == ["nlab-serve", "nlab-sh", "orted"]


def test_of_a_task_the_stages_count_in_which_it_was_the_program(tmp_path: Path) -> None:
    lines = [
        (1, "task_newtask: pid=10 comm=init clone_flags=0 oom_score_adj=0"),
        (1, "new: (wake_up_new_task+0x0/0x1) task=0xa"),
        (10, "exec: (begin_new_exec+0x0/0x1)"),
        (10, "task_rename: pid=10 oldcomm=init newcomm=mpirun oom_score_adj=0"),
        (10, "task_newtask: pid=11 comm=mpirun clone_flags=0 oom_score_adj=0"),
        (10, "new: (wake_up_new_task+0x0/0x1) task=0xb"),
        (11, "exec: (begin_new_exec+0x0/0x1)"),
        (11, "task_rename: pid=11 oldcomm=mpirun newcomm=app oom_score_adj=0"),
        (11, "task_rename: pid=11 oldcomm=app newcomm=mpirun oom_score_adj=0"),  # by itself
    ]
    trace = tmp_path / "trace"
    trace.write_text(
        "".join(f" <...>-{tid} [000] ..... 1.{n:06}: {what}\n" for n, (tid, what) in enumerate(lines))
    )
    rows = "0 a 0 0:1\nstage a\n0 a 0 0:10\n0 b 0 1:100\nstage b\n0 b 0 1:1000\n1 b 0 0:10000\n"
    found = of_application(trace, counted(rows))
    assert found[:, :2].tolist() == [[0, 1000], [10000, 0]]


def test_the_document_sums_hosts_and_pairs() -> None:
    run = run_of(sent=1000)
    document = msgspec.to_builtins(run)
    assert document["schema"] == "numaplan/lab-cluster/1"
    assert (document["local"], document["remote"], document["local_share"]) == (140, 60, 0.7)
    assert (document["bytes"], document["launcher_bytes"]) == ([[0, 1000], [0, 0]], [[0, 0], [7, 0]])
    assert document["between_hosts"] == 1000
    assert document["hosts"]["h1"]["schema"] == "numaplan/lab/1"
    assert np.shape(document["hosts"]["h1"]["accesses"]) == (2, 2)


def test_gates_hold_or_say_what_was_counted() -> None:
    run = run_of(sent=1000)
    verdicts = Gates("70%", "1000").check(run)
    assert [verdict.ok for verdict in verdicts] == [True, True]
    assert [gate["gate"] for gate in run.gates] == ["local_share >= 0.7", "between_hosts <= 1000"]
    raise_for(verdicts)
    verdicts = Gates("0.71", "0.5K").check(run)
    assert [verdict.ok for verdict in verdicts] == [False, False]
    with pytest.raises(NotSoError, match=r"local_share >= 0\.71: does not hold"):
        raise_for(verdicts)
    assert [str(one).partition(": ")[2] for one in verdicts] == [
        "does not hold (70.0% and 71.0%)",
        "does not hold (1,000 and 512)",
    ]
    assert cluster_junit(run, verdicts).count(b"<failure") == 2
    assert b"exited with 3" in cluster_junit(run_of(1, exit_code=3), [])
    assert [verdict.ok for verdict in Gates("1%", "1G").check(run_of(1, exit_code=3))] == [False, False]
    assert not Gates("", "").check(run)


def test_sizes_and_shares() -> None:
    assert [read_size("-x", text) for text in ("12", "64K", "1.5MiB", "2GB")] == [12, 65536, 3 << 19, 2 << 30]
    assert [parse_share("-x", text) for text in ("90%", "0.9", "1", "0")] == [0.9, 0.9, 1, 0]
    for parse, text in ((read_size, "M"), (read_size, "-1"), (parse_share, "101%"), (parse_share, "2")):
        with pytest.raises(UsageError, match=f"-x {text}"):
            parse("-x", text)


def test_the_tables_say_what_was_predicted(capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(sent=123456)
    run.predicted = JobPredicted(between_hosts=123000.0, local_share={"h0": 0.95})
    run.applied = {"r0": {"ok": True}, "r1": {"ok": False, "summary": "1/2 threads"}}
    show_cluster(run, sys.stdout)
    said = capsys.readouterr().out
    assert said.startswith("user accesses of mpirun on 2 hosts\n")
    assert "123,456 bytes between hosts; 123,000 predicted; 7 more by the launcher" in said
    assert "1 of 2 ranks as planned\nr1: 1/2 threads" in said
    assert [line.split() for line in said.splitlines() if line.startswith("h0 ")] == [
        ["h0", "2x1", "100", "90", "10", "90.0%", "95.0%"],
        ["h0", "·", "123,456"],
    ]


def test_one_host_is_no_more_than_one(capsys: pytest.CaptureFixture[str]) -> None:
    show_cluster(cluster_run(["mpirun"], {"h0": host_run(9, 1)}, Traffic(1), 3.0), sys.stdout)
    assert capsys.readouterr().out.startswith("user accesses of mpirun on 1 host\n")
