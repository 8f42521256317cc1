"""From machines to guests: numbering, memory, QEMU's arguments, jobs."""

import math
import re
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from numaplan.common import MachineLacksError, UsageError
from numaplan.lab.commands.main import main
from numaplan.lab.guest.job import Job, job_frame
from numaplan.lab.guest.qemu import command_line
from numaplan.lab.guest.shape import (
    MIN_NODE_MIB,
    dense,
    machine_option,
    parse_memory,
    renumbering,
    scaled,
    shape_arguments,
    shape_guest,
    with_cpus_per_node,
)
from numaplan.lab.runs import configs, session as sessions
from numaplan.lab.runs.configs import CONFIGS, Options, PlannedLaunch, parse_configs
from numaplan.lab.runs.session import Request, open_session
from numaplan.launcher.verify.logged_run import LoggedRun, LoggedThread
from numaplan.machine import Machine, Node
from tests.support.outside import plan_of_threads


def test_what_is_known_of_a_machine_is_known_of_the_guest_in_its_numbering() -> None:
    origin = Machine.from_dict(
        {
            "nodes": [{"id": 3, "cpus": [4, 6]}, {"id": 5, "cpus": [0, 2]}],
            "distances": [[10, 30], [20, 10]],
            "latency_ns": [[80, 150], [140, 90]],
            "caches": [{"level": 3, "bytes": 1 << 20, "cpus": [[4, 6], [0, 2]]}],
        }
    )
    guest = dense(origin)
    assert [node.cpus for node in guest.nodes] == [(0, 1), (2, 3)]
    assert guest.distances == ((10.0, 20.0), (30.0, 10.0))
    assert guest.latency_ns == ((90.0, 140.0), (150.0, 80.0))
    assert [sorted(cache.cpus) for cache in guest.caches] == [[(0, 1), (2, 3)]]
    assert [cache.cpus for cache in scaled(guest, "1x1").caches] == [((0,),)]
    assert with_cpus_per_node(guest, 1).latency_ns == guest.latency_ns


def test_a_grid_stays_as_it_is() -> None:
    machine = dense(Machine.load("4x2"))
    assert machine.fingerprint == Machine.load("4x2").fingerprint
    assert not renumbering(Machine.load("4x2"))


def test_odd_machines_are_numbered_as_the_guests_kernel_does() -> None:
    machine = Machine(
        nodes=(Node(id=3), Node(id=5, cpus=(7, 9)), Node(id=8, cpus=(1,))),
        distances=((10, 11, 12), (13, 10, 15), (16, 17, 10)),
    )
    guest = dense(machine)
    assert [node.cpus for node in guest.nodes] == [(0,), (1, 2), ()]
    assert guest.distances == ((10, 17, 16), (15, 10, 13), (12, 11, 10))
    assert renumbering(machine) == "in the lab node 8 is 0, 5 is 1, 3 is 2"


def test_a_machine_without_a_name_is_called_so() -> None:
    """Headings said `./app on , default`."""
    unnamed = Machine(nodes=(Node(id=0, cpus=(0,)),), distances=((10.0,),))
    assert dense(unnamed).name == "machine"


def test_scaling_keeps_distances() -> None:
    machine = Machine.load("opteron-4x8")
    small = scaled(machine, "3x2")
    assert [node.cpus for node in small.nodes] == [(0, 1), (2, 3), (4, 5)]
    assert np.array_equal(small.distance_matrix, machine.distance_matrix[:3, :3])
    assert len(with_cpus_per_node(machine, 3).cpus) == 12
    for scale in ("5x1", "2", "0x2", "2x-1", "x"):
        with pytest.raises(UsageError):
            scaled(machine, scale)


@pytest.mark.parametrize("grid", ["65x1", "2x128", "16x16"])
def test_too_large_machines_are_refused(grid: str) -> None:
    with pytest.raises(UsageError, match="do not fit"):
        dense(Machine.load(grid))


def test_memory_is_divided_and_limited() -> None:
    machine = dense(Machine.load("4x2"))
    assert shape_guest(machine, 2048, 10_000).node_mib == (512,) * 4
    with pytest.raises(UsageError, match="MiB per node") as refused:
        shape_guest(machine, 4 * MIN_NODE_MIB - 8, 10_000)
    [named] = re.findall(r"--memory (\S+)", str(refused.value))
    assert shape_guest(machine, parse_memory(named), 10_000).node_mib == (MIN_NODE_MIB,) * 4
    with pytest.raises(MachineLacksError, match="does not fit"):
        shape_guest(machine, 2048, 2047)
    bare = Machine(nodes=(Node(id=0, cpus=(0,), memory_bytes=1), Node(id=1, cpus=(1,))))
    assert shape_guest(bare, 512, 10_000).node_mib == (512, 0)


def test_sizes() -> None:
    assert [parse_memory(text) for text in ("2G", "1500m", "2.5G", "2T")] == [2048, 1500, 2560, 2 << 20]
    for text in ("", "G", "2", "-1G", "1e3M", "9999999G", "²G"):
        with pytest.raises(UsageError):
            parse_memory(text)


@given(st.integers(1, 8), st.integers(1, 4), st.integers(1024, 16_384))
def test_arguments_name_every_cpu_once_and_every_byte(nodes: int, cpus: int, memory: int) -> None:
    shape = shape_guest(dense(Machine.load(f"{nodes}x{cpus}")), memory, 20_000)
    arguments = shape_arguments(shape)
    assert arguments[arguments.index("-m") + 1] == f"{shape.total_mib}M"
    assert memory - 2 * nodes < shape.total_mib <= memory
    listed = [part for argument in arguments for part in argument.split(",") if part.startswith("cpus=")]
    owned = sorted(int(part[5:]) for part in listed if part[5:].isdecimal())
    assert owned == list(range(nodes * cpus))
    assert sum(argument.startswith("dist,") for argument in arguments) == nodes * (nodes - 1)


def test_the_hole_below_4g_ends_a_node() -> None:
    machine = dense(Machine.load("3x1"))
    assert "max-ram-below" not in machine_option(shape_guest(machine, 3000, 20_000))
    assert machine_option(shape_guest(machine, 4500, 20_000)).endswith("max-ram-below-4g=3000M")


def test_distances_fit_firmware_tables() -> None:
    machine = Machine(nodes=(Node(id=0, cpus=(0,)), Node(id=1, cpus=(1,))), distances=((10, 10.4), (900, 10)))
    arguments = shape_arguments(shape_guest(dense(machine), 1024, 20_000))
    assert {"dist,src=0,dst=1,val=11", "dist,src=1,dst=0,val=254"} < set(arguments)


def test_jobs_are_told_to_the_agent_in_pairs() -> None:
    machine = dense(Machine.load("2x2"))
    environment = {"A": "1\n2", "EMPTY": ""}
    job = CONFIGS["scatter"](Job("/bin/app", ["app", "", "ü"], environment, "/a b", 1.5), machine, Options())
    fields = job_frame(job, True, Path("/t")).split(b"\0")
    assert fields.pop() == b""
    pairs = list(zip(fields[::2], fields[1::2], strict=True))
    assert [value for key, value in pairs if key == b"arg"] == [b"app", b"", "ü".encode()]
    assert [value for key, value in pairs if key == b"env"] == [b"A=1\n2", b"EMPTY="]
    assert [value for key, value in pairs if key == b"cpu"] == [b"0", b"2", b"1", b"3"]
    assert {(b"program", b"/bin/app"), (b"cwd", b"/a b"), (b"timeout_ms", b"1500"), (b"trace", b"/t")} < set(
        pairs
    )


def test_guests_are_emulated_even_where_kvm_is() -> None:
    """Plugins see nothing under KVM, and counts must not depend on it."""
    shape = shape_guest(dense(Machine.load("2x2")), 1024, 20_000)
    command = command_line(
        shape, Path("/k"), Path("/i"), Path("/d"), [("control", 5)], Path("/p,q"), version=None
    )
    assert [command[at + 1].split(",")[0] for at, word in enumerate(command) if word == "-accel"] == ["tcg"]
    assert not any("kvm" in word for word in command)
    assert command[command.index("-plugin") + 1] == "file=/p,,q,directory=/d,samples=/d/samples"


def test_what_cannot_run_is_told_before_the_boot(tmp_path: Path) -> None:
    def silent(_text: str) -> None:
        pass

    for request in (
        Request(["true"], "2x2", online="no such policy"),
        Request(["true"], "2x2", timeout=math.nan),
        Request(["true"], "2x2", timeout=math.inf),
        Request(["true"], "2x2", plan=str(tmp_path)),
        Request([str(tmp_path / "none")], "2x2"),
    ):
        with pytest.raises(UsageError), open_session(request, silent):
            pass


def test_a_plan_for_another_machine_is_said_to_be_fitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class NotBootedError(Exception):
        """Instead of a guest."""

    def session(*_: object) -> None:
        raise NotBootedError

    monkeypatch.setattr(sessions, "Session", session)
    plan_of_threads([("p0", "0")], machine=Machine.load("4x2")).save(tmp_path / "plan.json")
    for machine, said in (("4x2", 0), ("2x2", 1)):
        with (
            pytest.raises(NotBootedError),
            open_session(Request(["true"], machine, plan=str(tmp_path / "plan.json")), print),
        ):
            pass
        assert capsys.readouterr().err.count("made for another machine") == said


def test_what_a_plan_became_in_a_guest_is_not_explained_by_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine.load("64x64")
    plan = plan_of_threads([("p0", "0")], machine=machine)
    last = machine.cpus[-1]  # more than the host has
    plan = replace(plan, threads=(replace(plan.threads[0], node=63, cpus=(last,)),))
    launch = PlannedLaunch(plan, "/bin/true", machine, {}, tmp_path)
    logged = LoggedRun(processes=["p0"], threads={("p0", "0"): LoggedThread("p0", "0", 1, (0,), True, 0)})
    monkeypatch.setattr(configs, "read_logged_run", lambda *_: logged)
    assert launch.report(0)["reasons"] == (
        f"thread 0 is not on cpus {last}: the program set its own affinity",
    )


def test_configurations() -> None:
    assert parse_configs("", "", "") == ["default", "no-autonuma", "interleave", "compact"]
    assert parse_configs("", "plan.json", "nimar")[-2:] == ["plan", "online"]
    assert parse_configs("plan, default,plan", "plan.json", "") == ["plan", "default"]
    for names in ("nothing", ",", "plan", "online"):
        with pytest.raises(UsageError):
            parse_configs(names, "", "")
    assert parse_configs("default,online-alone", "", "nimar") == ["default", "online-alone"]
    for plan, online, option in (("plan.json", "", "--plan"), ("", "nimar", "--online")):
        with pytest.raises(UsageError, match=f"{option} without configuration"):
            parse_configs("default", plan, online)


def test_a_run_has_one_configuration(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    class Booted:
        def run(self, config: str, *_streams: int) -> None:
            ran.append(config)
            raise UsageError("enough")

    monkeypatch.setattr(sessions, "open_session", lambda *_: nullcontext(Booted()))
    assert main(["run", "-m", "2x1", "--config", "default,interleave", "--", "true"]) == 2
    assert "--config default,interleave: more than one" in capsys.readouterr().err
    assert main(["run", "-m", "2x1", "--config", " compact", "--", "true"]) == 2
    assert ran == ["compact"]
