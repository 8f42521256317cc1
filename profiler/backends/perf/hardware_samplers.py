"""What a kernel offers for sampling memory accesses, from its sysfs and procfs or a recorded tree of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .kernel_files import ROOT, read_text
from .privileges import CAP_PERFMON, CAP_SYS_ADMIN, capabilities_of, perf_event_paranoid

_DEVICES = "sys/bus/event_source/devices"
_CORE_PMUS = ("cpu", "cpu_core", "cpu_atom")
_SAMPLING_PMU = re.compile(r"cpu|cpu_core|cpu_atom|ibs_op|arm_spe_\d{1,3}")


@dataclass(frozen=True)
class Pmu:
    """One performance monitoring unit: names of its events and format terms, its capabilities."""

    events: frozenset[str] = frozenset()
    formats: frozenset[str] = frozenset()
    caps: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hardware:
    """The processor, kernel and privilege that decide which events can be recorded.

    kernel: (major, minor), (0, 0) when unknown; paranoid: perf_event_paranoid, None without perf; privileged:
    CAP_PERFMON or CAP_SYS_ADMIN; phys: may see physical addresses.
    """

    family: int = 0
    model: int = 0
    kernel: tuple[int, int] = (0, 0)
    pmus: Mapping[str, Pmu] = field(default_factory=dict)
    paranoid: int | None = None
    privileged: bool = False
    phys: bool = False


@dataclass(frozen=True)
class Sampler:
    """A hardware sampler: its backend, whether it is here, and what was (not) found."""

    backend: str
    ok: bool
    reason: str


def read_hardware(root: Path = ROOT) -> Hardware:
    """What the tree under `root` says; what it does not say stays empty."""
    facts = _processor(read_text(root / "proc/cpuinfo"))
    release = re.match(r"(\d{1,4})\.(\d{1,4})", read_text(root / "proc/sys/kernel/osrelease"))
    held = capabilities_of(root)
    return Hardware(
        family=_integer(facts.get("cpu family", "")),
        model=_integer(facts.get("model", "")),
        kernel=(int(release[1]), int(release[2])) if release else (0, 0),
        pmus=_pmus(root / _DEVICES),
        paranoid=perf_event_paranoid(root),
        privileged=bool(held >> CAP_PERFMON & 1 or held >> CAP_SYS_ADMIN & 1),
        phys=bool(held >> CAP_SYS_ADMIN & 1),
    )


def clock_khz(root: Path = ROOT) -> float:
    """The processor's clock: its base frequency, what its name says, or what it runs at; else 1 GHz."""
    base = _integer(read_text(root / "sys/devices/system/cpu/cpu0/cpufreq/base_frequency").strip())
    cpuinfo = read_text(root / "proc/cpuinfo")
    named = re.search(r"@ (\d{1,2}\.\d{1,3})GHz", cpuinfo)
    now = re.search(r"^cpu MHz\s*: (\d{1,5}(?:\.\d{1,6})?)$", cpuinfo, re.MULTILINE)
    khz = base or (float(named[1]) * 1e6 if named else 0.0) or (float(now[1]) * 1e3 if now else 0.0)
    return khz or 1e6


def samplers(root: Path = ROOT) -> tuple[Sampler, ...]:
    """The three kinds of hardware samplers, of this machine or of a recorded tree under `root`."""
    return samplers_of(_pmus(root / _DEVICES))


def samplers_of(pmus: Mapping[str, Pmu]) -> tuple[Sampler, ...]:
    """The three kinds of hardware samplers among these PMUs."""
    return (_pebs(pmus), _ibs(pmus), _spe(pmus))


def core_pmus(pmus: Mapping[str, Pmu]) -> list[str]:
    """The core PMUs that can sample loads with their addresses, in a fixed order."""
    return [
        name
        for name in _CORE_PMUS
        if name in pmus and "mem-loads" in pmus[name].events and pmus[name].caps.get("max_precise") != "0"
    ]


def spe_pmus(pmus: Mapping[str, Pmu]) -> list[str]:
    """The SPE units, one for each kind of core."""
    return sorted(name for name in pmus if name.startswith("arm_spe_"))


def _integer(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else 0


def _processor(cpuinfo: str) -> dict[str, str]:
    """The facts of the first processor in /proc/cpuinfo."""
    facts: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            facts.setdefault(key.strip(), value.strip())
    return facts


def _names(folder: Path) -> frozenset[str]:
    try:
        return frozenset(entry.name for entry in folder.iterdir())
    except OSError:
        return frozenset()


def _pmus(devices: Path) -> dict[str, Pmu]:
    found = {}
    for name in sorted(_names(devices)):
        if _SAMPLING_PMU.fullmatch(name):
            place = devices / name
            found[name] = Pmu(
                events=_names(place / "events"),
                formats=_names(place / "format"),
                caps={cap: read_text(place / "caps" / cap).strip() for cap in _names(place / "caps")},
            )
    return found


def _pebs(pmus: Mapping[str, Pmu]) -> Sampler:
    usable = core_pmus(pmus)
    if usable:
        parts = [f"{name}/mem-loads/" for name in usable]
        parts += [f"{name}/mem-stores/" for name in usable if "mem-stores" in pmus[name].events]
        return Sampler("pebs", True, ", ".join(parts))
    seen = [name for name in _CORE_PMUS if name in pmus]
    if any("mem-loads" in pmus[name].events for name in seen):
        return Sampler("pebs", False, "the PMU has no precise events (hidden by a hypervisor)")
    if seen:
        return Sampler("pebs", False, "the PMU has no event mem-loads (not Intel, or hidden by a hypervisor)")
    return Sampler("pebs", False, "the kernel shows no PMU")


def _ibs(pmus: Mapping[str, Pmu]) -> Sampler:
    found = "ibs_op" in pmus
    return Sampler("ibs", found, "ibs_op" if found else "no ibs_op (not AMD, or hidden by a hypervisor)")


def _spe(pmus: Mapping[str, Pmu]) -> Sampler:
    names = spe_pmus(pmus)
    return Sampler("spe", bool(names), ", ".join(names) or "no arm_spe (not ARM, or hidden by a hypervisor)")
