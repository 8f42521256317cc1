"""Exports that a booted machine of several nodes takes: a unit started by systemd, and control groups."""

import shutil
import subprocess
from pathlib import Path

import pytest

from numaplan.machine import Machine
from numaplan.mapper import Plan, PlanApp, PlanMachine, PlanThread, Predicted
from numaplan.mapper.plan_file.export import export_plan
from tests.support.guests import SharedGuest

pytestmark = pytest.mark.lab
MANAGER = Path("/lib/systemd/systemd")
SHOW = "grep -h allowed_list /proc/self/status; head -n 1 /proc/self/numa_maps"
UNIT = """[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=/bin/sh -c '( {show} ) >{said}'
ExecStopPost=/bin/kill -KILL $MANAGERPID
"""
START = """
place=/run/numaplan-test; mkdir -p /run/systemd/system $place
XDG_RUNTIME_DIR=$place XDG_CONFIG_HOME={units} timeout 300 {manager} --user --unit=app.service
rm -r $place; rmdir /run/systemd/system
"""


def plan_of_two_nodes(*argv: str) -> Plan:
    """Four threads on nodes 1 and 2 of four, whose memory the planner would interleave."""
    return Plan(
        app=PlanApp(argv=argv, threads=4),
        machine=PlanMachine.of(Machine.load("4x2")),
        method="best",
        objective="time",
        threads=tuple(
            PlanThread(path=f"0.{n}" if n else "0", thread=n, node=1 + n // 2, cpus=(2 + n,), load=1)
            for n in range(4)
        ),
        predicted=Predicted(
            remote_comm=0,
            remote_share=0,
            hop_cost=0,
            load_std=0,
            costs={"alone": 2.0, "alone, interleaved": 1.0},
        ),
    )


@pytest.mark.slow
def test_systemd_starts_a_unit_with_the_drop_in(four_nodes: SharedGuest, tmp_path: Path) -> None:
    if not MANAGER.exists():
        pytest.skip("systemd is not here")
    folder, said = tmp_path / "systemd/user", tmp_path / "said"
    (folder / "app.service.d").mkdir(parents=True)
    (folder / "app.service").write_text(UNIT.format(show=SHOW, said=said))
    (folder / "app.service.d/numaplan.conf").write_text(export_plan(plan_of_two_nodes(), "systemd"))
    told, _ = four_nodes.said("sh", "-c", START.format(units=tmp_path, manager=MANAGER))
    assert said.exists(), told
    cpus, nodes, policy = said.read_text().splitlines()
    assert (cpus, nodes) == ("Cpus_allowed_list:\t2-5", "Mems_allowed_list:\t1-2")
    assert policy.split()[1] == "interleave:1-2"


def test_control_groups_hold_the_program(four_nodes: SharedGuest, tmp_path: Path) -> None:
    script = tmp_path / "start"
    script.write_text(export_plan(plan_of_two_nodes("sh", "-c", SHOW), "cgroup"))
    assert subprocess.run([shutil.which("sh") or "sh", "-n", script], check=False).returncode == 0
    told, _ = four_nodes.said("sh", script)
    cpus, nodes, _ = told.splitlines()
    assert (cpus, nodes) == ("Cpus_allowed_list:\t2-5", "Mems_allowed_list:\t1-2")
