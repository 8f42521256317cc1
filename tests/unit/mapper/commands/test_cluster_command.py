"""`nmap cluster`: the hosts of words, of hostfiles and of a Slurm job."""

import os
import shutil
from pathlib import Path

import pytest

from numaplan.machine import Cluster, Machine
from numaplan.mapper.commands.main import main

SCONTROL = """#!/bin/sh
case "$2" in
  hostnames) for word in $(echo "$3" | tr , ' '); do echo "$word"; done;;
  topology) echo "$TOPOLOGY";;
esac
"""
TOPOLOGY = """SwitchName=s0 Level=0 LinkSpeed=1 Nodes=a,b
SwitchName=s1 Level=0 LinkSpeed=1 Nodes=c,x
SwitchName=top Level=1 LinkSpeed=1 Nodes=a,b,c,x Switches=s[0-1]"""


def called(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """stdout, or the error line, of a call."""
    assert main(["cluster", *words]) == code
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return err if code else out


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Within a Slurm job of three hosts, by what stands in for its scontrol."""
    program = tmp_path / "bin/scontrol"
    program.parent.mkdir()
    program.write_text(SCONTROL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "a,b,c")
    for name in ("SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE", "SLURM_CPUS_PER_TASK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TOPOLOGY", "")
    return monkeypatch


def test_words_become_a_file_and_a_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = called(capsys, "2*2x8:4+1*4x4", "-o", str(tmp_path / "c.json"))
    assert "3 hosts, 24 slots" in out and "h0 … h1 (2)" in out
    assert Cluster.load(tmp_path / "c.json") == Cluster.load("2*2x8:4+1*4x4")
    text = called(capsys, str(tmp_path / "c.json"), "--json")
    assert text.encode() == (tmp_path / "c.json").read_bytes()


def test_hostfiles_of_both_forms(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    hostfile = tmp_path / "hosts"
    hostfile.write_text(
        "# ours\nn1 slots=8 max_slots=9\nn2:4\n\nn3  # as many as cpus\nn4\nn4\nn5 slots = 2\n"
    )
    found = Cluster.from_json(called(capsys, "--hostfile", str(hostfile), "--machine", "2x3", "--json"))
    assert [(host.name, host.slots) for host in found.hosts] == [
        *(("n1", 8), ("n2", 4), ("n3", 6), ("n4", 2), ("n5", 2)),
    ]


@pytest.mark.parametrize("most", ["max_slots", "max-slots"])
def test_the_most_slots_are_not_the_slots(
    most: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    hostfile = tmp_path / "hosts"
    hostfile.write_text(
        f"n1 {most}=16 slots=4\nn2 slots=4 {most}=16\nn3 {most} = 16 slots = 4\nn4 {most}=16\n"
    )
    found = Cluster.from_json(called(capsys, "--hostfile", str(hostfile), "--machine", "2x3", "--json"))
    assert [host.slots for host in found.hosts] == [4, 4, 4, 6]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no hosts"),
        ("n1 slots=many", "line 1: many slots"),
        ("n1\nn2:0", "line 2: no slots"),
        ("a:b:c", "line 1"),
        ("-x:4", "not a host's name"),
    ],
)
def test_hostfiles_that_are_none(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, says: str
) -> None:
    (tmp_path / "hosts").write_text(text)
    assert says in called(capsys, "--hostfile", str(tmp_path / "hosts"), "--machine", "2x2", code=2)


def test_saved_machines_by_host(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("n1:2\nn2\n")
    (tmp_path / "n1.json").write_bytes(Machine.load("4x4").to_json())
    words = ("--hostfile", str(tmp_path / "hosts"), "--machines", str(tmp_path))
    assert "no n2.json" in called(capsys, *words, code=2)
    (tmp_path / "n2.json").write_bytes(Machine.load("2x4").to_json())
    found = Cluster.from_json(called(capsys, *words, "--json"))
    assert [(host.slots, host.machine.name) for host in found.hosts] == [(2, "4x4"), (8, "2x4")]


def test_a_slurm_job(capsys: pytest.CaptureFixture[str], slurm: pytest.MonkeyPatch) -> None:
    words = ("--slurm", "--machine", "2x4", "--json")
    slurm.setenv("SLURM_TASKS_PER_NODE", "2(x2),1")
    found = Cluster.from_json(called(capsys, *words))
    assert [(host.name, host.slots) for host in found.hosts] == [("a", 2), ("b", 2), ("c", 1)]
    assert not found.distances
    slurm.setenv("SLURM_TASKS_PER_NODE", "2(x9)")
    assert "9 counts for 3 hosts" in called(capsys, *words, code=2)
    slurm.delenv("SLURM_TASKS_PER_NODE")
    slurm.setenv("SLURM_JOB_CPUS_PER_NODE", "8(x3)")
    slurm.setenv("SLURM_CPUS_PER_TASK", "4")
    assert [host.slots for host in Cluster.from_json(called(capsys, *words)).hosts] == [2, 2, 2]


def test_switches_of_slurm(capsys: pytest.CaptureFixture[str], slurm: pytest.MonkeyPatch) -> None:
    slurm.setenv("TOPOLOGY", TOPOLOGY)
    found = Cluster.from_json(called(capsys, "--slurm", "--machine", "2x4", "--json"))
    assert found.distances == ((0, 1, 3), (1, 0, 3), (3, 3, 0))
    slurm.setenv("TOPOLOGY", "SwitchName=s0 Level=0 Nodes=a,b")
    assert not Cluster.from_json(called(capsys, "--slurm", "--machine", "2x4", "--json")).distances


def test_outside_of_slurm(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    assert "not within a Slurm job" in called(capsys, "--slurm", code=2)


def test_real_scontrol_names_the_hosts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("scontrol") is None:
        pytest.skip("scontrol is not installed")
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=c\nSlurmctldHost=localhost\nNodeName=n[01-20]\nPartitionName=p Nodes=ALL\n"
    )
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[01-03,10]")
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", "4(x4)")
    # No controller runs here: the one line says what that means.
    assert main(["cluster", "--slurm", "--machine", "2x4", "--json"]) == 0
    out, err = capsys.readouterr()
    found = Cluster.from_json(out)
    assert [host.name for host in found.hosts] == ["n01", "n02", "n03", "n10"] and not found.distances
    line = "Slurm's controller does not answer: all hosts are taken to be equally far (give --distances)"
    assert line in " ".join(err.split())
    # With distances given nobody asks for it.
    (tmp_path / "d.csv").write_text("0,1,1,1\n1,0,1,1\n1,1,0,1\n1,1,1,0\n")
    assert main(["cluster", "--slurm", "--machine", "2x4", "--distances", str(tmp_path / "d.csv")]) == 0
    assert "controller" not in capsys.readouterr().err


def test_distances_of_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("0,2\n2,0\n")
    words = ("2*1x2", "--distances", str(tmp_path / "d.csv"))
    assert "switch hops between hosts: 2" in called(capsys, *words)
    (tmp_path / "d.csv").write_text("0,x\n")
    assert "d.csv" in called(capsys, *words, code=2)


@pytest.mark.parametrize("words", [(), ("2*1x2", "--slurm"), ("2*1x2", "--machine", "2x2"), ("nothing",)])
def test_calls_that_cannot_be(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    assert called(capsys, *words, code=2).count("\n") == 1
