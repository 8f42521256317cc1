"""The doctor's findings: each lack names the command that mends it."""

from pathlib import Path

import pytest

from numaplan.profiler import doctor, privileges
from numaplan.profiler.machine import Machine, Node
from numaplan.profiler.sampler_hardware import samplers

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
    assert all(one.why for one in kinds)


def unprivileged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **facts: str) -> None:
    monkeypatch.setattr(privileges, "_STATUS", _file(tmp_path, "status", "CapEff:\t0000000000000000\n"))
    for name, text in facts.items():
        for module in (privileges, doctor):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, _file(tmp_path, name, text))


def _file(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize(("level", "ok"), [("-1", True), ("2", True), ("3", False), ("4", False)])
def test_paranoid_levels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, level: str, ok: bool) -> None:
    unprivileged(monkeypatch, tmp_path, _PARANOID=level)
    check = doctor._privilege()
    assert check.ok == ok
    assert ("kernel.perf_event_paranoid=1" in check.mend) == (not ok)


def test_a_capability_overrides_the_level(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    unprivileged(monkeypatch, tmp_path, _PARANOID="4")
    (tmp_path / "status").write_text("Name:\tx\nCapEff:\t0000004000000000\n")
    assert doctor._privilege().ok and "CAP_PERFMON" in doctor._privilege().why


def test_numa_balancing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    unprivileged(monkeypatch, tmp_path, _BALANCING="0\n")
    assert not doctor._balancing(TWO).ok
    assert doctor._balancing(TWO).mend == "sudo sysctl kernel.numa_balancing=1"
    assert doctor._balancing(ONE).ok and not doctor._balancing(ONE).mend
    (tmp_path / "_BALANCING").write_text("1\n")
    assert doctor._balancing(TWO).ok


def test_lockdown_and_watchdog(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    unprivileged(monkeypatch, tmp_path, _LOCKDOWN="none integrity [confidentiality]\n", _WATCHDOG="1\n")
    assert not doctor._lockdown().ok and not doctor._watchdog().ok
    unprivileged(monkeypatch, tmp_path, _LOCKDOWN="[none] integrity confidentiality\n", _WATCHDOG="0\n")
    assert doctor._lockdown().ok and doctor._watchdog().ok


@pytest.mark.system
def test_this_machine() -> None:
    checks = doctor.diagnose(Machine.load("local"))
    names = [check.name for check in checks]
    assert len(set(names)) == len(names)
    assert {"backend faults", "backend emulate", "perf", "NUMA nodes"} <= set(names)
    assert all(check.why and "\n" not in check.why for check in checks)
    # Every lack can be mended by something; what is fine needs nothing.
    assert [check.name for check in checks if not check.ok and not check.mend] == []
