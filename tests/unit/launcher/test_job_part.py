"""Which part of a job's plan a rank has: by its host and its number, or by order with --remap."""

import json
import os
from pathlib import Path

import pytest

from numaplan.common import UsageError
from numaplan.launcher.commands.main import main
from numaplan.launcher.jobs.part import part_of_job
from numaplan.launcher.jobs.place import find_place, host_here
from numaplan.machine import Machine
from numaplan.mapper import JobPlan
from numaplan.profiler import job_facts
from tests.support import jobs
from tests.support.jobs import job_of

HERE = os.uname().nodename


def rank(number: int, local: int = 0, node: int | str | None = None) -> dict[str, str]:
    """The environment of a rank; node: the host's number by Slurm, in words that of Open MPI's daemon."""
    found = {"OMPI_COMM_WORLD_RANK": str(number), "OMPI_COMM_WORLD_LOCAL_RANK": str(local)}
    if isinstance(node, str):
        return {**found, "OMPI_MCA_orte_local_daemon_uri": f"3193438208.{node};tcp://10.0.0.1:46517"}
    return found if node is None else {**found, "SLURM_STEP_NUM_TASKS": "9", "SLURM_NODEID": str(node)}


def part(
    folder: Path, job: JobPlan, environment: dict[str, str], remap: bool = False
) -> tuple[set[str], str]:
    """(planned rank and path of each thread, by its seat; the note)"""
    job.save(folder / "job.json")
    found = part_of_job(str(folder / "job.json"), environment, Machine.load("local"), remap, "", None)
    return {f"{thread.process}/{thread.path}" for thread in found.plan.threads}, found.note


def test_a_rank_has_its_own_part_on_its_own_host(tmp_path: Path) -> None:
    job = job_of(order=("other", HERE, "other", HERE))
    for number in (1, 3):
        threads, note = part(tmp_path, job, rank(number))
        assert (threads, note) == ({f"r{number}/0", f"r{number}/0.1", f"r{number}/0.2"}, "")


def test_a_rank_that_is_not_planned_here_runs_unbound(tmp_path: Path) -> None:
    job = job_of(order=("other", HERE))
    assert part(tmp_path, job, rank(0))[0] == set()
    assert f"planned on host other, and runs on {HERE}" in part(tmp_path, job, rank(0))[1]
    assert "rank 2 is not in the plan (it has ranks 0-1)" in part(tmp_path, job, rank(2))[1]


def test_another_cluster_is_refused(tmp_path: Path) -> None:
    job = job_of(order=("n1", "n2", "n3", "n4", "n5", "n6"))
    with pytest.raises(UsageError, match=r"none of the plan's \(n1, n2, n3, n4 and 2 more\)") as refused:
        part(tmp_path, job, rank(0))
    assert "add --remap" in refused.value.hint
    other = job_of(order=(HERE,), machine=Machine.load("4x4"))
    with pytest.raises(UsageError, match=f"host {HERE}: made for another machine"):
        part(tmp_path, other, rank(0))
    assert part(tmp_path, other, rank(0), remap=True)[0] == {"r0/0", "r0/0.1", "r0/0.2"}


@pytest.mark.parametrize(
    "order,number,local,node,same",
    [
        ("n1 n2 n1 n2", 3, 1, "1", 3),  # as planned but for the hosts' names
        ("n1 n1 n2 n2", 1, 0, "0", 0),  # another pattern: the first rank of the host that it is planned on
        ("n1 n1 n2 n2", 1, 0, None, None),  # nobody says which host this is
        ("n1 n2 n1 n2", 3, 0, 0, 0),  # the first rank of the first node
        ("n1 n2 n1 n2", 0, 1, 1, 3),
        ("n1 n2 n1 n2", 9, 0, 1, 1),  # more than planned, on a node that stands for n2
        ("n1 n2 n1 n2", 9, 2, 1, None),
        ("n1 n2 n1 n2", 9, 0, 2, None),
    ],
)
def test_with_remap_hosts_stand_for_others(
    order: str, number: int, local: int, node: int | str | None, same: int | None, tmp_path: Path
) -> None:
    job = job_of(order=order.split())
    job.save(tmp_path / "job.json")
    here = Machine.load("local")
    found = part_of_job(str(tmp_path / "job.json"), rank(number, local, node), here, True, "", None)
    threads = [thread for plan in job.hosts.values() for thread in plan.threads]
    wanted = [(thread.path, thread.cpus) for thread in threads if thread.process == f"r{same}"]
    assert [(thread.path, thread.cpus) for thread in found.plan.threads] == wanted
    assert {thread.process for thread in found.plan.threads} <= {f"r{number}"}
    assert bool(found.note) == (same is None)


def test_with_remap_a_rank_beyond_those_of_its_host_is_not_as_planned(tmp_path: Path) -> None:
    """Though it is planned there: an earlier one has its part."""
    job = job_of(order=("other", HERE, HERE))
    job.save(tmp_path / "job.json")
    here, path = Machine.load("local"), str(tmp_path / "job.json")
    parts = [part_of_job(path, rank(number, number), here, True, "", None) for number in range(3)]
    assert [one.rank.as_planned for one in parts if one.rank] == [True, True, False]
    assert not parts[2].plan.threads
    assert parts[2].note.startswith(f"more ranks run on {HERE} than the plan has on a host: it is not bound")


def places(job: JobPlan, hosts: list[list[dict[str, str]]], here: str = "") -> list[set[tuple[str, int]]]:
    """Of each host, which planned ranks its ranks stand for; no two for the same."""
    found = []
    for environments in hosts:
        numbers = [int(one.get("OMPI_COMM_WORLD_RANK") or one["PMI_RANK"]) for one in environments]
        known = [
            place
            for number, one in zip(numbers, environments, strict=True)
            if (place := find_place(job, number, here, job_facts(one), one, True))
        ]
        assert len(set(known)) == len(known)
        found.append({(place.host, place.rank) for place in known})
    return found


@pytest.mark.parametrize("order", ["n1 n1 n2 n2", "n1 n2 n2 n1", "n1 n2 n1 n2"])
@pytest.mark.parametrize("launched", [[[0, 1], [2, 3]], [[0, 2], [1, 3]], [[0, 3], [1, 2]], [[1, 3], [0, 2]]])
def test_the_ranks_of_a_host_stand_for_those_of_one_host(order: str, launched: list[list[int]]) -> None:
    job = job_of(order=order.split())
    for name in (str, int):  # of Open MPI's daemon, or Slurm's node
        hosts = [
            [rank(number, local, name(node)) for local, number in enumerate(own)]
            for node, own in enumerate(launched)
        ]
        for host, found in zip(("n1", "n2"), places(job, hosts), strict=True):
            assert found == {(host, one) for one in job.ranks_on(host)}
        for host in ("n1", "n2"):  # one that the plan knows stands for itself
            assert places(job, hosts[:1], host) == [{(host, one) for one in job.ranks_on(host)}]


def test_ranks_that_are_listed_by_host_have_their_own_parts_or_none() -> None:
    job = job_of(order=("n2", "n1", "n2"))
    listed = ({"OMPI_MCA_rmaps_base_mapping_policy": "seq"}, {"OMPI_MCA_orte_rankfile": "job.ranks"})
    arbitrary = {"SLURM_DISTRIBUTION": "arbitrary", "SLURM_STEP_TASKS_PER_NODE": "2,1"}
    told = [(rank, "0", {"OMPI_COMM_WORLD_LOCAL_SIZE": "2"} | one) for one in listed] + [(rank, 0, arbitrary)]
    for of, node, more in told:
        hosts = [[of(0, 0, node) | more, of(2, 1, node) | more]]
        assert places(job, hosts) == [{("n2", 0), ("n2", 2)}]
        assert places(job, hosts, "n1") == [set()]
        assert places(job, [[of(0, 0, node) | more, of(1, 1, node) | more]]) == [{("n2", 0)}]


def mpich(number: int, local: int, size: int) -> dict[str, str]:
    return {"PMI_RANK": str(number), "MPI_LOCALRANKID": str(local), "MPI_LOCALNRANKS": str(size)}


def test_mpich_counts_as_if_each_line_of_its_list_were_a_host() -> None:
    job = job_of(order=("n1", "n1", "n2", "n1"))
    assert places(job, [[mpich(0, 0, 2), mpich(1, 1, 2), mpich(3, 0, 1)], [mpich(2, 0, 1)]]) == [
        {("n1", 0), ("n1", 1), ("n1", 3)},
        {("n2", 2)},
    ]
    assert places(job, [[mpich(0, 0, 1), mpich(2, 0, 1)], [mpich(1, 0, 1)]]) == [{("n2", 2)}, set()]
    assert places(job, [[mpich(number, number, 4) for number in range(4)]]) == [set()]


def test_what_mpich_counts_anew_does_not_move_a_rank(tmp_path: Path) -> None:
    """A host that comes twice in its list: both ranks are the first of one."""
    job = job_of(order=("n1", "n2", "n1"))
    environment = {"PMI_RANK": "2", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "1"}
    assert part(tmp_path, job, environment, remap=True)[0] == {"r2/0", "r2/0.1", "r2/0.2"}


@pytest.mark.parametrize(
    "name,known,found",
    [
        ("n1", ("n1", "n2"), "n1"),
        ("n1.example.org", ("n1", "n2"), "n1"),
        ("n1", ("n1.example.org", "n2.example.org"), "n1.example.org"),
        ("n1", ("n1.a.org", "n1.b.org"), ""),
        ("n1.a.org", ("n1.b.org",), ""),
        ("10.0.0.1", ("10.0.0.2",), ""),
        ("n3", ("n1", "n2"), ""),
    ],
)
def test_hosts_by_their_short_and_full_names(
    name: str, known: tuple[str, ...], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_of(order=known)
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", name, "", "", "")))
    assert host_here(job, {}) == found


def test_slurm_s_name_of_a_host_goes_first() -> None:
    job = job_of(order=(HERE, "n1"))
    assert host_here(job, {"SLURM_STEP_NUM_TASKS": "1", "SLURMD_NODENAME": "n1"}) == "n1"
    assert host_here(job, {"SLURMD_NODENAME": "n1"}) == HERE


def outcome(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(words)
    return code, capfd.readouterr().err


def test_the_command_says_what_is_not_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "job.json")
    job_of(order=(HERE, HERE, "other")).save(path)
    code, said = outcome(capfd, "--job", path, "true")
    assert (code, said.count("\n")) == (2, 1) and "no rank of a job" in said
    for number, name in ((2, "other"), (7, "ranks 0-2")):
        monkeypatch.setenv("PMI_RANK", str(number))
        folder = tmp_path / "reports"
        code, said = outcome(capfd, "--job", path, "--report", str(folder), "true")
        assert code == 0 and name in said
        report = json.loads((folder / f"r{number}.json").read_bytes())
        assert not report["ok"] and name in report["reasons"][0] and report["rank"]["rank"] == number
        assert outcome(capfd, "--job", path, "--strict", "-q", "true") == (1, "")
        assert outcome(capfd, "--job", path, "--report", f"{folder}/x.%r.json", "true")[0] == 0
        assert (folder / f"x.r{number}.json").exists()


def test_only_the_first_of_many_ranks_says_that_all_is_well(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "PATHS", ("0",))
    path = str(tmp_path / "job.json")
    job_of(order=(HERE, HERE)).save(path)
    monkeypatch.setenv("PMI_RANK", "1")
    assert outcome(capfd, "--job", path, "true") == (0, "")
    monkeypatch.setenv("PMI_RANK", "0")
    assert outcome(capfd, "--job", path, "true") == (0, "nlaunch: r0: 1/1 threads as planned\n")


def test_a_report_that_cannot_be_written_keeps_no_job_from_running(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "job.json")
    job_of(order=(HERE,)).save(path)
    (tmp_path / "file").touch()
    monkeypatch.setenv("PMI_RANK", "0")
    for place in (tmp_path / "file", "/proc/reports"):
        code, said = outcome(capfd, "--job", path, "--report", str(place), "true")
        assert code == 0 and f"no report: {place}" in said


def test_what_does_nothing_with_a_job_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "job.json")
    job_of(order=(HERE,)).save(path)
    for words in (
        ("--plan", path),
        ("--attach", "1", "--online", "nimar"),
        ("--online", "nimar", "--save", "x"),
    ):
        code, said = outcome(capfd, "--job", path, *words, *(() if "--attach" in words else ("true",)))
        assert code == 2 and "does nothing with --" in said


def test_explain_shows_a_host_s_part_outside_a_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "job.json")
    job_of(order=(HERE, "other", HERE)).save(path)
    assert main(("--job", path, "--explain", "true")) == 0
    said = capsys.readouterr().out
    assert "r0/0.2" in said and "r2/0.1" in said and "r1/" not in said
