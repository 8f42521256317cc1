"""Which hardware samplers of memory accesses the kernel offers, read from sysfs."""

from dataclasses import dataclass
from pathlib import Path

_DEVICES = "sys/bus/event_source/devices"
_CORE_PMUS = ("cpu", "cpu_core")


@dataclass(frozen=True)
class Sampler:
    """A hardware sampler: its backend, whether it is here, and what was (not) found."""

    backend: str
    ok: bool
    why: str


def samplers(root: Path = Path("/")) -> tuple[Sampler, ...]:
    """The three kinds of hardware samplers, of this machine or of a recorded tree under `root`."""
    devices = root / _DEVICES
    return (_pebs(devices), _ibs(devices), _spe(devices))


def _pebs(devices: Path) -> Sampler:
    for name in _CORE_PMUS:
        if (devices / name / "events" / "mem-loads").exists():
            stores = (devices / name / "events" / "mem-stores").exists()
            return Sampler("pebs", True, f"{name}/mem-loads/{' and mem-stores' if stores else ''}")
    if any((devices / name).exists() for name in _CORE_PMUS):
        return Sampler("pebs", False, "the PMU has no event mem-loads (not Intel, or hidden by a hypervisor)")
    return Sampler("pebs", False, "the kernel shows no PMU")


def _ibs(devices: Path) -> Sampler:
    found = (devices / "ibs_op").exists()
    return Sampler("ibs", found, "ibs_op" if found else "no ibs_op (not AMD, or hidden by a hypervisor)")


def _spe(devices: Path) -> Sampler:
    names = sorted(entry.name for entry in devices.glob("arm_spe_*"))
    return Sampler("spe", bool(names), ", ".join(names) or "no arm_spe (not ARM, or hidden by a hypervisor)")
