"""`nlab doctor`: what the lab needs, whether it is here, and the command that fixes it if not."""

import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

import msgspec

from numaplan.common import NumaplanError, available_bytes
from numaplan.profiler import qemu_version

from ..guest.kernel import installed_kernel
from ..guest.qemu import CODE_MIB
from ..guest.shape import USUAL_MIB
from ..places import QEMU, cache_folder, lab_part
from .fetch import QEMU_PACKAGE

SCHEMA = "numaplan/lab-doctor/1"
# The checks without which the lab works, but for what they name.
SOCKETS = "unix sockets below /tmp and /run"
NETWORK = "a network between guests"
OLDEST_QEMU = (7, 2)
_INSTALL = f"as root: apt-get install {QEMU_PACKAGE}"


class Check(msgspec.Struct, frozen=True):
    """One thing needed: whether it is fine, what was found, and how to fix it."""

    name: str
    ok: bool
    found: str
    hint: str = msgspec.field(default="", name="mend")  # as the JSON answer calls it


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """All checks (`numaplan/lab-doctor/1`)."""

    schema: str = SCHEMA
    ok: bool
    checks: list[Check]


def diagnose() -> Diagnosis:
    """Check everything; never raises for what is lacking."""
    checks = [
        _host(),
        _qemu(),
        _devices(),
        _kernel(),
        _sockets(),
        _network(),
        _native(),
        _memory(),
        _temporary(),
    ]
    return Diagnosis(ok=all(check.ok for check in checks), checks=checks)


def show_diagnosis(diagnosis: Diagnosis) -> None:
    """One line a check, the fixing command under what is missing."""
    for check in diagnosis.checks:
        print(f"{'ok     ' if check.ok else 'LACKING'} {check.name}: {check.found}")
        if not check.ok:
            print(f"        → {check.hint}")


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout + done.stderr).decode(errors="replace")


def _host() -> Check:
    kind = platform.machine()
    return Check("host", kind == "x86_64", kind, "use an x86_64 machine: programs run in the lab as they are")


def _qemu() -> Check:
    if shutil.which(QEMU) is None:
        return Check("qemu", False, "not installed", _INSTALL)
    version = qemu_version([QEMU])
    if version is None:
        return Check("qemu", False, "does not report its version", _INSTALL)
    found = f"version {version[0]}.{version[1]}"
    if version < OLDEST_QEMU:
        return Check("qemu", False, found, f"use QEMU {OLDEST_QEMU[0]}.{OLDEST_QEMU[1]} or newer")
    return Check("qemu", True, found)


def _devices() -> Check:
    if "-plugin" not in _output(QEMU, "-help"):
        return Check("qemu plugins", False, "this QEMU is built without plugins", _INSTALL)
    listed = _output(QEMU, "-device", "help")
    lacking = [name for name in ("virtio-9p-pci", "virtio-serial-pci") if f'"{name}"' not in listed]
    if lacking:
        return Check("qemu devices", False, f"no {', '.join(lacking)}", _INSTALL)
    return Check("qemu plugins and devices", True, "all there")


def _kernel() -> Check:
    try:
        kernel = installed_kernel()
    except NumaplanError as error:
        return Check("kernel", False, str(error.what), error.hint)
    return Check("kernel", True, f"{kernel.version} in {cache_folder()}")


def _sockets() -> Check:
    return _kernel_has(SOCKETS, "overlays", "overlay file systems")


def _network() -> Check:
    return _kernel_has(NETWORK, "network", "virtio_net")


def _kernel_has(name: str, what: str, called: str) -> Check:
    """Whether the kernel was set up with it."""
    try:
        kernel = installed_kernel()
    except NumaplanError:
        return Check(name, False, "there is no kernel that can be used yet", "nlab setup")
    if getattr(kernel, what):
        return Check(name, True, f"the kernel has {called}")
    return Check(name, False, f"the kernel was set up without {called}", "nlab setup")


def _native() -> Check:
    try:
        parts = [lab_part(name).name for name in ("plugin.so", "guest.elf", "cluster.elf")]
    except NumaplanError as error:
        return Check("native parts", False, str(error.what), error.hint)
    return Check("native parts", True, ", ".join(parts))


def _memory() -> Check:
    available = available_bytes() >> 20
    usual = USUAL_MIB + CODE_MIB + 256
    found = f"{available} MiB available, {usual} MiB usual"
    return Check("memory", available > usual, found, "free memory, or give --memory 1G")


def _temporary() -> Check:
    folder = Path(tempfile.gettempdir())
    free = shutil.disk_usage(folder).free >> 20
    return Check(
        "temporary files", free > 64, f"{free} MiB free in {folder}", "set TMPDIR to a folder with space"
    )
