"""The doctor's findings: whatever is missing names the command that fixes it."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from numaplan.common import MachineLacksError
from numaplan.machine import Machine, Node
from numaplan.profiler import doctor
from numaplan.profiler.backends.perf.command import probe
from numaplan.profiler.backends.perf.hardware_samplers import samplers

TWO = Machine(nodes=(Node(id=0, cpus=(0,)), Node(id=1, cpus=(1,))))
ONE = Machine(nodes=(Node(id=0, cpus=(0, 1)),))


def put(folder: Path, *paths: str) -> Path:
    for path in paths:
        place = folder / "sys/bus/event_source/devices" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("event=0xcd")
    return folder


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (("cpu/events/mem-loads", "cpu/events/mem-stores"), "pebs"),
        (("cpu_core/events/mem-loads", "cpu_core/events/mem-loads-aux"), "pebs"),
        (("cpu/events/cycles", "ibs_op/type", "ibs_fetch/type"), "ibs"),
        (("armv8_pmuv3_0/type", "arm_spe_0/type"), "spe"),
        (("software/type",), ""),
    ],
)
def test_samplers_of_recorded_trees(tmp_path: Path, paths: tuple[str, ...], found: str) -> None:
    kinds = samplers(put(tmp_path, *paths))
    assert [one.backend for one in kinds] == ["pebs", "ibs", "spe"]
    assert [one.backend for one in kinds if one.ok] == ([found] if found else [])
    assert all(one.reason for one in kinds)


def tree(folder: Path, capabilities: int = 0, **kernel: str) -> Path:
    """A recorded tree of one process's capabilities and the kernel's settings."""
    settings = folder / "proc/sys/kernel"
    settings.mkdir(parents=True, exist_ok=True)
    (folder / "proc/self").mkdir(exist_ok=True)
    (folder / "proc/self/status").write_text(f"Name:\tx\nCapEff:\t{capabilities:016x}\n")
    for name, text in kernel.items():
        (settings / name).write_text(text)
    return folder


def finding(name: str, recorded: Path, machine: Machine = TWO) -> doctor.Check:
    """One of the doctor's findings in a recorded tree."""
    return next(check for check in doctor.diagnose(machine, recorded) if check.name == name)


@pytest.mark.parametrize(("level", "ok"), [("-1", True), ("2", True), ("3", False), ("4", False)])
def test_paranoid_levels(tmp_path: Path, level: str, ok: bool) -> None:
    check = finding("perf_event_paranoid", tree(tmp_path, perf_event_paranoid=level))
    assert check.ok == ok
    assert ("kernel.perf_event_paranoid=1" in check.hint) == (not ok)


def test_a_capability_overrides_the_level(tmp_path: Path) -> None:
    check = finding("perf_event_paranoid", tree(tmp_path, 1 << 38, perf_event_paranoid="4"))
    assert check.ok and "CAP_PERFMON" in check.finding


def test_numa_balancing(tmp_path: Path) -> None:
    off = finding("numa_balancing", tree(tmp_path, numa_balancing="0\n"))
    assert not off.ok and off.hint == "sudo sysctl kernel.numa_balancing=1"
    alone = finding("numa_balancing", tmp_path, ONE)
    assert alone.ok and not alone.hint
    assert finding("numa_balancing", tree(tmp_path, numa_balancing="1\n")).ok


@pytest.mark.parametrize(
    ("lockdown", "watchdog", "rate", "ok"),
    [
        ("none integrity [confidentiality]\n", "1\n", "1000\n", False),
        ("[none] integrity confidentiality\n", "0\n", "100000\n", True),
    ],
)
def test_lockdown_watchdog_and_sample_rate(
    tmp_path: Path, lockdown: str, watchdog: str, rate: str, ok: bool
) -> None:
    tree(tmp_path, nmi_watchdog=watchdog, perf_event_max_sample_rate=rate)
    (tmp_path / "sys/kernel/security").mkdir(parents=True)
    (tmp_path / "sys/kernel/security/lockdown").write_text(lockdown)
    checks = [finding(name, tmp_path) for name in ("lockdown", "nmi_watchdog", "sample rate")]
    assert [check.ok for check in checks] == [ok] * 3
    assert [bool(check.hint) for check in checks] == [not ok] * 3


def test_containers(tmp_path: Path) -> None:
    assert finding("container", tree(tmp_path)).ok
    (tmp_path / ".dockerenv").write_text("")
    check = finding("container", tmp_path)
    assert not check.ok and check.hint.startswith("docker run --cap-add PERFMON")
    assert finding("container", tree(tmp_path, 1 << 21)).ok


@pytest.mark.parametrize(
    ("name", "works"),
    [
        ("skylake-sp-2s", "pebs"),
        ("sapphire-rapids-2s", "pebs"),
        ("alder-lake", "pebs"),
        ("epyc-zen3-2s", "ibs"),
        ("epyc-zen4-1s-nps4", "ibs"),
        ("graviton3", "spe"),
        ("cloud-vm", ""),
        ("opteron-4s", ""),
    ],
)
def test_recorded_machines(repository: Path, name: str, works: str) -> None:
    place = repository / "tests/replay/sysfs" / name
    checks = {check.name: check for check in doctor.diagnose(Machine.load(str(place)), place)}
    usable = [backend for backend in ("pebs", "ibs", "spe") if checks[f"backend {backend}"].ok]
    assert usable == ([works] if works else [])
    assert "perf" not in checks and "qemu-user" not in checks
    assert [check.name for check in checks.values() if not check.ok and not check.hint] == []
    assert ("virtual machine" in checks["hypervisor"].finding) == (name == "cloud-vm")


@pytest.mark.system
def test_this_machine() -> None:
    checks = doctor.diagnose(Machine.load("local"))
    names = [check.name for check in checks]
    assert len(set(names)) == len(names)
    assert {"backend faults", "backend emulate", "perf", "NUMA nodes"} <= set(names)
    assert all(check.finding and "\n" not in check.finding for check in checks)
    # Whatever is missing can be fixed somehow; what is fine needs nothing.
    assert [check.name for check in checks if not check.ok and not check.hint] == []


def test_a_full_disk_is_not_taken_for_a_container_without_perf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numaplan.profiler.backends.perf.command.recording_perf", lambda: "false")
    assert probe([]) == "it records nothing"
    monkeypatch.setattr("shutil.disk_usage", lambda _folder: SimpleNamespace(free=0))
    with pytest.raises(MachineLacksError, match=r"no space left in .* set TMPDIR to a disk with more"):
        probe([])


def test_a_stop_of_our_group_does_not_reach_the_perf_that_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took one for the program's end, and recording was refused: perf "records nothing"."""
    perf = tmp_path / "perf"
    perf.write_text("#!/bin/sh\necho perf version 6.1\ncut -d' ' -f5 /proc/$$/stat >>\"$0.groups\"\n")
    perf.chmod(0o755)
    monkeypatch.setattr("numaplan.profiler.backends.perf.command.find_perf", lambda: str(perf))
    probe([])
    groups = [int(line) for line in Path(f"{perf}.groups").read_text().split()]
    assert len(groups) == 2 and os.getpgrp() not in groups
