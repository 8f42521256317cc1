"""Clusters: words, files, and every way a file can be wrong."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from numaplan.common import UsageError
from numaplan.machine import Cluster, Host, Machine


def test_words() -> None:
    cluster = Cluster.load("2*2x8:4+1*4x4")
    assert [(host.name, host.slots, len(host.machine.cpus)) for host in cluster.hosts] == [
        ("h0", 4, 16),
        ("h1", 4, 16),
        ("h2", 16, 16),
    ]
    assert cluster.slots == 24
    assert cluster.distance_matrix.tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize("words", ["4*", "*2x8", "0*2x8", "2*nothing", "2*2x8+", "2*2x8:0", "99999*1x1"])
def test_words_that_are_none(words: str) -> None:
    with pytest.raises(UsageError):
        Cluster.load(words)


def test_round_trip_with_one_description_of_equal_machines(tmp_path: Path) -> None:
    own = msgspec.structs.replace(Machine.load("2x2"), name="big one")
    hosts = tuple(
        Host(name=f"n{i:02}", slots=2 + i, machine=own if i else Machine.load("4x4")) for i in range(3)
    )
    cluster = Cluster(hosts=hosts, distances=((0, 1, 3), (1, 0, 3), (3, 3, 0)))
    cluster.save(tmp_path / "cluster.json")
    assert Cluster.load(tmp_path / "cluster.json") == cluster
    text = cluster.to_json().decode()
    assert text.count('"nodes"') == 1
    assert sum('"slots"' in line for line in text.splitlines()) == 3  # one host a line
    assert Cluster.from_dict(cluster.to_dict()).to_json().decode() == text


def test_machines_of_one_name_that_differ() -> None:
    changed = msgspec.structs.replace(Machine.load("4x2"), name="2x2")
    other = msgspec.structs.replace(Machine.load("4x4"), name="2x2")
    machines = [Machine.load("2x2"), changed, other]
    cluster = Cluster(hosts=tuple(Host(name=f"n{i}", slots=1, machine=m) for i, m in enumerate(machines)))
    assert [host.machine for host in Cluster.from_json(cluster.to_json()).hosts] == machines


def test_a_machine_inside_a_host() -> None:
    document = {"name": "n", "slots": 2, "machine": Machine.load("4x2").to_dict()}
    found = Cluster.from_dict({"schema": "numaplan/cluster/1", "hosts": [document]})
    assert found.hosts[0].machine == Machine.load("4x2")


HOST = {"name": "h0", "slots": 2, "machine": "2x2"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"schema": "numaplan/cluster/2"}, "schema"),
        ({"schema": 3}, "schema"),
        ({"hosts": []}, "0 hosts"),
        ({"hosts": [HOST, HOST]}, "twice"),
        ({"hosts": [HOST | {"slots": 0}]}, "0 slots"),
        ({"hosts": [HOST | {"name": "a b"}]}, "name"),
        ({"hosts": [HOST | {"name": "-x"}]}, "name"),
        ({"hosts": [HOST | {"name": "a\nb"}]}, "name"),
        ({"hosts": [HOST | {"machine": "local"}]}, "no machine 'local'"),
        ({"hosts": [HOST | {"machine": "/etc/passwd"}]}, "no machine"),
        ({"hosts": [HOST | {"machine": {"nodes": [{"id": 0}]}}]}, "no cpus"),
        ({"hosts": [HOST | {"machine": {"nodes": []}}]}, "nodes"),
        ({"distances": [[0, 1]]}, "1 x 1"),
        ({"distances": [[3]]}, "row 0"),
    ],
)
def test_hostile_files_get_one_line(change: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        Cluster.from_dict({"schema": "numaplan/cluster/1", "hosts": [HOST]} | change, "c.json")
    assert caught.value.what.startswith("c.json: ")


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff", b"[" * 5000, b'{"schema": "numaplan/plan/1"}'])
def test_what_is_no_cluster(text: bytes) -> None:
    with pytest.raises(UsageError, match=r"c\.json: "):
        Cluster.from_json(text, "c.json")


def test_another_commands_file_is_named() -> None:
    """A plan was told that it lacks `hosts`, a job's plan that they are no list."""
    with pytest.raises(
        UsageError, match=r"c\.json: schema 'numaplan/job/1' — .* as 'nmap cluster' writes it"
    ):
        Cluster.from_json('{"schema": "numaplan/job/1", "hosts": {}}', "c.json")


def test_distances_one_way_only() -> None:
    hosts = tuple(Host(name=f"n{i}", slots=1, machine=Machine.load("1x1")) for i in range(2))
    with pytest.raises(UsageError, match="row 1: not symmetric"):
        Cluster(hosts=hosts, distances=((0.0, 1.0), (2.0, 0.0)))
