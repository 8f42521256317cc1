"""A plan for the whole machine in a container that has a part of it: fitted there, and only there."""

from pathlib import Path

import pytest

from numaplan.launcher.enforce.container import fit_to_container, in_container
from numaplan.machine import Machine, Node, own_cpuset
from numaplan.mapper import Plan, PlanApp, PlanMachine, PlanThread, Predicted

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
WHOLE = Machine.load("4x4")
PART = Machine.from_dict(
    {"schema": "numaplan/machine/1", "nodes": [{"id": 1, "cpus": [4, 5]}, {"id": 2, "cpus": [8, 9]}]}
)


def plan(machine: Machine = WHOLE) -> Plan:
    """A thread on each of the first two cpus of each node."""
    seats = [(node.id, cpu) for node in machine.nodes for cpu in node.cpus[:2]]
    return Plan(
        app=PlanApp(threads=len(seats)),
        machine=PlanMachine.of(machine),
        method="best",
        objective="remote",
        threads=tuple(
            PlanThread(path=f"0.{n}" if n else "0", thread=n, node=node, cpus=(cpu,), load=1)
            for n, (node, cpu) in enumerate(seats)
        ),
        predicted=Predicted(remote_comm=0, remote_share=0, hop_cost=0, load_std=0),
    )


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """The files of a machine of 16 cpus, nothing of which tells of a container."""
    for name, text in (
        ("sys/devices/system/cpu/online", "0-15\n"),
        ("proc/self/cgroup", "0::/user.slice/user-0.slice/session-1.scope\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_groups_stay_together_on_the_cpus_of_a_pod(host: Path) -> None:
    fitted, line = fit_to_container(plan(), PART, POD, host, PART.cpus)
    assert fitted.machine.machine() == PART
    nodes = [thread.node for thread in fitted.threads]
    assert all(nodes[n] == nodes[n + 1] for n in range(0, 8, 2)) and set(nodes) == {1, 2}
    assert "\n" not in line and "4 of 16 cpus (4-5,8-9)" in line and "--no-remap" in line


def test_it_is_fitted_nowhere_else(host: Path) -> None:
    ours = plan()
    assert fit_to_container(ours, PART, {}, host, PART.cpus) == (ours, "")  # a job's cpuset on a host
    assert fit_to_container(ours, PART, POD, host, WHOLE.cpus) == (ours, "")  # bound by somebody within
    assert fit_to_container(ours, WHOLE, POD, host, WHOLE.cpus) == (ours, "")  # it has all
    small = plan(Machine.load("1x2"))
    assert fit_to_container(small, PART, POD, host, PART.cpus) == (small, "")  # of another, smaller machine
    (host / "sys/devices/system/cpu/online").unlink()
    assert fit_to_container(ours, PART, POD, host, PART.cpus) == (ours, "")  # nobody knows


def test_a_plan_that_the_cpus_suffice_for_is_not_touched(host: Path) -> None:
    few = plan(Machine(nodes=(Node(id=0, cpus=(0, 1, 2)),)))
    assert fit_to_container(few, Machine(nodes=(Node(id=0, cpus=(0, 1)),)), POD, host, (0, 1)) == (few, "")


@pytest.mark.parametrize(
    "name,text",
    [
        (".dockerenv", ""),
        ("run/.containerenv", ""),
        ("run/systemd/container", "systemd-nspawn"),
        ("proc/self/cgroup", "0::/kubepods.slice/kubepods-burstable.slice/x.scope\n"),
        ("proc/self/cgroup", "12:cpuset:/docker/0123\n0::/\n"),
        ("proc/self/cgroup", "0::/machine.slice/libpod-0123.scope/container\n"),
    ],
)
def test_what_tells_of_a_container(host: Path, name: str, text: str) -> None:
    assert not in_container({}, host)
    (host / name).parent.mkdir(parents=True, exist_ok=True)
    (host / name).write_text(text)
    assert in_container({}, host)


def test_a_daemon_of_containers_is_in_none(host: Path) -> None:
    (host / "proc/self/cgroup").write_text("0::/system.slice/docker.service\n")
    assert not in_container({"container": ""}, host)
    assert in_container({"container": "podman"}, host)


def test_asking_for_the_cpuset_leaves_the_binding() -> None:
    import os

    bound = os.sched_getaffinity(0)
    assert set(own_cpuset()) >= bound
    assert os.sched_getaffinity(0) == bound
