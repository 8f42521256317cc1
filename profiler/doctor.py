"""What this machine can record, and the exact command that mends each lack (`nprof doctor`)."""

import os
import platform
import re
import resource
import shutil
from dataclasses import dataclass
from pathlib import Path

from numaplan.common import NumaplanError
from numaplan.profiler.backends import BACKENDS
from numaplan.profiler.backends.perf_command import INSTALL, find_perf
from numaplan.profiler.machine import Machine
from numaplan.profiler.privileges import (
    CAP_PERFMON,
    CAP_SYS_ADMIN,
    has_capability,
    in_container,
    is_privileged,
    perf_event_paranoid,
)
from numaplan.profiler.sampler_hardware import samplers

_BALANCING = Path("/proc/sys/kernel/numa_balancing")
_MLOCK_KIB = Path("/proc/sys/kernel/perf_event_mlock_kb")
_KPTR = Path("/proc/sys/kernel/kptr_restrict")
_WATCHDOG = Path("/proc/sys/kernel/nmi_watchdog")
_LOCKDOWN = Path("/sys/kernel/security/lockdown")
_PRODUCT = Path("/sys/class/dmi/id/product_name")
_BARE_METAL = "run on the machine itself, or have the virtual PMU switched on; 'emulate' works without"
_ENOUGH_MLOCK_KIB = 4096


@dataclass(frozen=True)
class Check:
    """One finding: `why` says what was found, `mend` the exact command that gets what is lacking (if any)."""

    name: str
    ok: bool
    why: str
    mend: str = ""


def diagnose(machine: Machine) -> list[Check]:
    """Every check, backends first. Takes about a second: it tries the backends out."""
    return [
        *_backends(machine),
        _hardware(),
        _perf(),
        _qemu(),
        _privilege(),
        _mlock(),
        _nodes(machine),
        _balancing(machine),
        _kernel_addresses(),
        _watchdog(),
        _lockdown(),
        _hypervisor(),
        _container(),
    ]


def _backends(machine: Machine) -> list[Check]:
    checks = []
    for name, make in BACKENDS.items():
        try:
            capability = make().available(machine)
        except NumaplanError as error:
            checks.append(Check(f"backend {name}", False, error.what, error.mend))
        else:
            checks.append(Check(f"backend {name}", capability.ok, capability.why, capability.mend))
    return checks


def _hardware() -> Check:
    found = samplers()
    here = [f"{one.backend}: {one.why}" for one in found if one.ok]
    if here:
        return Check("hardware sampler", True, "; ".join(here))
    return Check(
        "hardware sampler", False, "; ".join(f"{one.backend}: {one.why}" for one in found), _BARE_METAL
    )


def _perf() -> Check:
    try:
        return Check("perf", True, find_perf())
    except NumaplanError as error:
        return Check("perf", False, error.what, INSTALL)


def _qemu() -> Check:
    name = f"qemu-{platform.machine()}"
    found = shutil.which(name)
    why = found or f"{name} is not installed: no emulation"
    return Check("qemu-user", found is not None, why, "" if found else "apt-get install qemu-user")


def _privilege() -> Check:
    level = perf_event_paranoid()
    if level is None:
        return Check("perf_event_paranoid", False, "this kernel has no perf events", "boot another kernel")
    known = {"CAP_PERFMON": CAP_PERFMON, "CAP_SYS_ADMIN": CAP_SYS_ADMIN}
    held = [name for name, number in known.items() if has_capability(number)]
    if held:
        return Check("perf_event_paranoid", True, f"level {level}, which {held[0]} overrides")
    # At 2 the kernel's own addresses are refused; 3 and 4 are distributions' and refuse everything.
    ok = level <= 2
    why = f"level {level}: " + (
        "own programs can be recorded" if ok else "nothing can be recorded without root"
    )
    return Check("perf_event_paranoid", ok, why, "" if ok else "sudo sysctl kernel.perf_event_paranoid=1")


def _mlock() -> Check:
    limit, _hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if is_privileged() or limit == resource.RLIM_INFINITY:
        return Check("mlock limit", True, "no limit on perf's buffers")
    allowed = (_number(_MLOCK_KIB) or 0) * (os.cpu_count() or 1) + limit // 1024
    ok = allowed >= _ENOUGH_MLOCK_KIB
    why = f"perf may lock {allowed} KiB for its buffers" + ("" if ok else ": samples may get lost")
    mend = "" if ok else f"sudo sysctl kernel.perf_event_mlock_kb={_ENOUGH_MLOCK_KIB}"
    return Check("mlock limit", ok, why, mend)


def _nodes(machine: Machine) -> Check:
    count = len(machine.nodes)
    if count > 1:
        return Check("NUMA nodes", True, f"{count} nodes, {len(machine.cpus)} usable cpus")
    return Check(
        "NUMA nodes",
        False,
        "one node: plans can be made for other machines, not felt here",
        "nmap plan trace.db --machine 4x2; nlab run --machine 4x2 ./app",
    )


def _balancing(machine: Machine) -> Check:
    mode = _number(_BALANCING)
    if mode is None:
        return Check("numa_balancing", False, "this kernel has no NUMA balancing", "boot another kernel")
    if mode & 1:
        return Check("numa_balancing", True, "on: the kernel's hint faults can be recorded")
    mend = "sudo sysctl kernel.numa_balancing=1" if len(machine.nodes) > 1 else ""
    why = "off: no hint faults" if mend else "off: it does nothing on one node"
    return Check("numa_balancing", not mend, why, mend)


def _kernel_addresses() -> Check:
    hidden = (_number(_KPTR) or 0) > (1 if is_privileged() else 0)
    why = (
        "kernel symbols are hidden (only names inside the kernel are missing)"
        if hidden
        else "kernel symbols shown"
    )
    return Check("kptr_restrict", not hidden, why, "sudo sysctl kernel.kptr_restrict=0" if hidden else "")


def _watchdog() -> Check:
    takes_one = _number(_WATCHDOG) == 1
    why = "on: it takes one counter of each cpu" if takes_one else "off: all counters are free"
    return Check("nmi_watchdog", not takes_one, why, "sudo sysctl kernel.nmi_watchdog=0" if takes_one else "")


def _lockdown() -> Check:
    chosen = re.search(r"\[(\w+)\]", _text(_LOCKDOWN))
    if chosen is None or chosen[1] in ("none", "integrity"):
        return Check("lockdown", True, chosen[1] if chosen else "none")
    return Check(
        "lockdown",
        False,
        f"{chosen[1]}: the kernel refuses perf",
        "boot with 'lockdown=none' (Secure Boot off)",
    )


def _hypervisor() -> Check:
    if not re.search(r"^flags\s*:.*\bhypervisor\b", _text(Path("/proc/cpuinfo")), re.MULTILINE):
        return Check("hypervisor", True, "none seen")
    product = _text(_PRODUCT).strip()
    return Check(
        "hypervisor", True, f"a virtual machine{f' ({product})' if product else ''}: it may hide samplers"
    )


def _container() -> Check:
    kind = in_container()
    if not kind:
        return Check("container", True, "none seen")
    if is_privileged():
        return Check("container", True, f"{kind}, with the privilege to record")
    runner = kind if kind in ("docker", "podman") else "docker"
    mend = f"{runner} run --cap-add PERFMON --security-opt seccomp=unconfined …"
    return Check("container", False, f"{kind}, without the privilege to record", mend)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    try:
        return int(_text(path))
    except ValueError:
        return None
