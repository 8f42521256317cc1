"""What this machine can record, and the command that fixes what is missing (`nprof doctor`)."""

import os
import re
import resource
from pathlib import Path

import msgspec

from numaplan.common import NumaplanError
from numaplan.machine import Machine

from .backends.choice import HARDWARE, backend_names, backend_of
from .backends.emulation.qemu import find_qemu, host_architecture
from .backends.perf.command import recording_perf
from .backends.perf.event_plan import BARE_METAL
from .backends.perf.hardware_samplers import samplers
from .backends.perf.kernel_files import ROOT, read_number, read_text
from .backends.perf.privileges import (
    CAP_PERFMON,
    CAP_SYS_ADMIN,
    container_hint,
    has_capability,
    in_container,
    is_privileged,
    perf_event_paranoid,
)

_ENOUGH_MLOCK_KIB = 4096
_ENOUGH_RATE = 50_000


class Check(msgspec.Struct, frozen=True):
    """One thing looked at; hint: the exact command that gets what is lacking, if any."""

    name: str
    ok: bool
    finding: str = msgspec.field(name="why")  # as the JSON answer calls it
    hint: str = msgspec.field(default="", name="mend")  # likewise


def diagnose(machine: Machine, tree: Path | None = None) -> list[Check]:
    """Every check, backends first. Takes about a second: it tries the backends out.

    tree: the sysfs and procfs recorded on another machine, to say what that one can record; what is
    installed there is not known then.
    """
    root = tree or ROOT
    return [
        *_backends(machine, root),
        _hardware(root),
        *(() if tree else (_perf(), _qemu(), _messages(), _mlock())),
        _privilege(root),
        _sample_rate(root),
        _nodes(machine),
        _balancing(machine, root),
        _kernel_addresses(root),
        _watchdog(root),
        _lockdown(root),
        _hypervisor(root),
        _container(root),
    ]


def _backends(machine: Machine, root: Path) -> list[Check]:
    checks = []
    for name in backend_names() if root == ROOT else HARDWARE:
        try:
            capability = backend_of(name, root).available(machine)
        except NumaplanError as error:
            checks.append(Check(f"backend {name}", False, error.what, error.hint))
        else:
            checks.append(Check(f"backend {name}", capability.ok, capability.reason, capability.hint))
    return checks


def _hardware(root: Path) -> Check:
    found = samplers(root)
    here = [one for one in found if one.ok]
    finding = "; ".join(f"{one.backend}: {one.reason}" for one in here or found)
    return Check("hardware sampler", bool(here), finding, "" if here else BARE_METAL)


def _perf() -> Check:
    try:
        return Check("perf", True, recording_perf())
    except NumaplanError as error:
        return Check("perf", False, error.what, error.hint)


def _qemu() -> Check:
    try:
        return Check("qemu-user", True, f"{find_qemu(host_architecture())[-1]} has loaded our plugin")
    except NumaplanError as error:
        return Check("qemu-user", False, f"{error.what}: no emulation", error.hint)


def _messages() -> Check:
    """What the ranks of each MPI here send each other: Open MPI can tell itself, MPICH takes a library."""
    from .messages.building import build
    from .messages.implementation import LAUNCHERS, OPEN_MPI, implementation_of

    name, ways = "messages of MPI", []
    for mpi in sorted({implementation_of([launcher], {}) for launcher in LAUNCHERS} - {""}):
        try:
            ways.append(f"{mpi}: by a library of its mpicc ({build(mpi)})")
        except NumaplanError as error:
            if mpi != OPEN_MPI:
                return Check(name, False, error.what, error.hint)
            ways.append(f"{mpi}: by its own monitoring")
    return Check(name, True, "; ".join(ways) or "no MPI seen")


def _privilege(root: Path) -> Check:
    level = perf_event_paranoid(root)
    if level is None:
        return Check("perf_event_paranoid", False, "this kernel has no perf events", "boot another kernel")
    known = {"CAP_PERFMON": CAP_PERFMON, "CAP_SYS_ADMIN": CAP_SYS_ADMIN}
    held = [name for name, number in known.items() if has_capability(number, root)]
    if held:
        return Check("perf_event_paranoid", True, f"level {level}, which {held[0]} overrides")
    # At 2 the kernel's own addresses are refused; 3 and 4 are distributions' and refuse everything.
    ok = level <= 2
    finding = f"level {level}: " + (
        "own programs can be recorded" if ok else "nothing can be recorded without root"
    )
    return Check("perf_event_paranoid", ok, finding, "" if ok else "sudo sysctl kernel.perf_event_paranoid=1")


def _mlock() -> Check:
    limit, _hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if is_privileged() or limit == resource.RLIM_INFINITY:
        return Check("mlock limit", True, "no limit on perf's buffers")
    allowed = (_setting(ROOT, "perf_event_mlock_kb") or 0) * (os.cpu_count() or 1) + limit // 1024
    ok = allowed >= _ENOUGH_MLOCK_KIB
    finding = f"perf may lock {allowed} KiB for its buffers" + ("" if ok else ": samples may get lost")
    hint = "" if ok else f"sudo sysctl kernel.perf_event_mlock_kb={_ENOUGH_MLOCK_KIB}"
    return Check("mlock limit", ok, finding, hint)


def _nodes(machine: Machine) -> Check:
    count = len(machine.nodes)
    if count > 1:
        return Check("NUMA nodes", True, f"{count} nodes, {len(machine.cpus)} usable cpus")
    return Check(
        "NUMA nodes",
        False,
        "one node: plans can be made for other machines, but change nothing here",
        "nmap plan trace.db --machine 4x2; nlab run --machine 4x2 ./app",
    )


def _balancing(machine: Machine, root: Path) -> Check:
    mode = _setting(root, "numa_balancing")
    if mode is None:
        return Check("numa_balancing", False, "this kernel has no NUMA balancing", "boot another kernel")
    if mode & 1:
        return Check("numa_balancing", True, "on: the kernel's hint faults can be recorded")
    hint = "sudo sysctl kernel.numa_balancing=1" if len(machine.nodes) > 1 else ""
    finding = "off: no hint faults" if hint else "off: it does nothing on one node"
    return Check("numa_balancing", not hint, finding, hint)


def _sample_rate(root: Path) -> Check:
    """The kernel slows samplers down that exceed its limits: samples are then lost, and said to be."""
    most, share = (
        _setting(root, name) for name in ("perf_event_max_sample_rate", "perf_cpu_time_max_percent")
    )
    if most is None:
        return Check("sample rate", True, "no limit seen")
    ok = most >= _ENOUGH_RATE
    limit = f" or {share} % of a cpu" if share else ""
    finding = f"the kernel allows {most:,} samples per second and cpu{limit}"
    return Check(
        "sample rate",
        ok,
        finding,
        "" if ok else f"sudo sysctl kernel.perf_event_max_sample_rate={_ENOUGH_RATE}",
    )


def _kernel_addresses(root: Path) -> Check:
    hidden = (_setting(root, "kptr_restrict") or 0) > (1 if is_privileged(root) else 0)
    finding = (
        "kernel symbols are hidden (only names inside the kernel are missing)"
        if hidden
        else "kernel symbols shown"
    )
    return Check("kptr_restrict", not hidden, finding, "sudo sysctl kernel.kptr_restrict=0" if hidden else "")


def _watchdog(root: Path) -> Check:
    takes_one = _setting(root, "nmi_watchdog") == 1
    finding = "on: it takes one counter of each cpu" if takes_one else "off: all counters are free"
    return Check(
        "nmi_watchdog", not takes_one, finding, "sudo sysctl kernel.nmi_watchdog=0" if takes_one else ""
    )


def _lockdown(root: Path) -> Check:
    chosen = re.search(r"\[(\w+)\]", read_text(root / "sys/kernel/security/lockdown"))
    if chosen is None or chosen[1] in ("none", "integrity"):
        return Check("lockdown", True, chosen[1] if chosen else "none")
    return Check(
        "lockdown",
        False,
        f"{chosen[1]}: the kernel refuses perf",
        "boot with 'lockdown=none' (Secure Boot off)",
    )


def _hypervisor(root: Path) -> Check:
    if not re.search(r"^flags\s*:.*\bhypervisor\b", read_text(root / "proc/cpuinfo"), re.MULTILINE):
        return Check("hypervisor", True, "none seen")
    product = read_text(root / "sys/class/dmi/id/product_name").strip()
    return Check(
        "hypervisor", True, f"a virtual machine{f' ({product})' if product else ''}: it may hide samplers"
    )


def _container(root: Path) -> Check:
    kind = in_container(root)
    if not kind:
        return Check("container", True, "none seen")
    if is_privileged(root):
        return Check("container", True, f"{kind}, with the privilege to record")
    return Check("container", False, f"{kind}, without the privilege to record", container_hint(kind))


def _setting(root: Path, name: str) -> int | None:
    """A number among the kernel's settings."""
    return read_number(root / "proc/sys/kernel" / name)
