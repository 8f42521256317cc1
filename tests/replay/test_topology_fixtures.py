"""The recorded topologies of the development fixtures read to their manifest's truth."""

import csv
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from numaplan.machine import Machine
from numaplan.machine.cache_model import domains_of
from numaplan.machine.cpusets import parse_list
from numaplan.mapper.plan_file.parts import PlanMachine
from tests.conftest import REPOSITORY
from tests.support.machines import sysfs_machine

FOLDER = REPOSITORY.parent / "shared" / "fixtures" / "topology"


def truths(suffix: str) -> list[Any]:
    path = FOLDER / "manifest.csv"
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        rows = [(row["file"], json.loads(row["truth"])) for row in csv.DictReader(file)]
    return [pytest.param(name, truth, id=name) for name, truth in rows if name.endswith(suffix)]


@pytest.mark.parametrize(("name", "truth"), truths(".xml"))
def test_hwloc_xml(shared_fixtures: Path, name: str, truth: dict[str, Any]) -> None:
    machine = Machine.load(str(shared_fixtures / "topology" / name))
    allowed = set(parse_list(truth["allowed_cpus"], name))
    near = {node["os"]: allowed.intersection(parse_list(node["cpus"], name)) for node in truth["nodes"]}
    assert machine.node_ids == tuple(sorted(near))
    assert {node.id: node.memory_bytes for node in machine.nodes} == {
        n["os"]: n["mem"] for n in truth["nodes"]
    }
    # hwloc gives memory-only nodes the cpus near to them; here each cpu is in one node only.
    assert set(machine.cpus) == set().union(*near.values())
    assert all(near[node.id].issuperset(node.cpus) for node in machine.nodes)
    for node in machine.nodes:
        if not any(near[node.id] & near[other] for other in near if other != node.id):
            assert set(node.cpus) == near[node.id]
    between_nodes = [found for found in truth["distances"] if len(found["os"]) == len(near)]
    if between_nodes:
        assert tuple(between_nodes[0]["os"]) == machine.node_ids
        assert [list(row) for row in machine.distances] == between_nodes[0]["m"]
    else:
        assert machine.distances == ()


@pytest.mark.parametrize(("name", "truth"), truths(".tar.bz2"))
def test_sysfs_tree(shared_fixtures: Path, tmp_path: Path, name: str, truth: dict[str, Any]) -> None:
    with tarfile.open(shared_fixtures / "topology" / name) as archive:
        # Python 3.12 and 3.13 warn where none is named; that of Debian 12 has none.
        archive.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
        archive.extractall(tmp_path)
    machine = sysfs_machine(tmp_path / truth["fsroot_in_tar"])
    assert Machine.load(str(shared_fixtures / "topology" / name)) == machine
    assert [(node.id, list(node.cpus), node.memory_bytes) for node in machine.nodes] == [
        (node["os"], list(parse_list(node["cpus"], name)), node["mem_kB"] * 1024) for node in truth["nodes"]
    ]
    assert [list(row) for row in machine.distances] == [
        n["distance"] for n in truth["nodes"] if "distance" in n
    ]
    allowed = sysfs_machine(tmp_path / truth["fsroot_in_tar"], restrict=True)
    assert set(allowed.cpus) == set(parse_list(truth["hwloc"]["allowed_cpus"], name))
    with_memory = {node.id for node in allowed.nodes if node.memory_bytes}
    assert with_memory == set(parse_list(truth["hwloc"]["allowed_nodes"], name))


@pytest.mark.parametrize("name", [param.values[0] for param in truths("")])
def test_a_plan_s_machine_has_the_same_last_level_caches(shared_fixtures: Path, name: str) -> None:
    machine = Machine.load(str(shared_fixtures / "topology" / name))
    seats = [(cpu, node) for cpu, node in machine.node_of_cpu.items()]
    assert domains_of(PlanMachine.of(machine).machine(), seats) == domains_of(machine, seats)
