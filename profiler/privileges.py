"""What this process may do with perf, and the command that would let it."""

import os
import re
from pathlib import Path

_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
_STATUS = Path("/proc/self/status")
CAP_SYS_ADMIN, CAP_PERFMON = 21, 38
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")


def perf_event_paranoid() -> int | None:
    """The kernel's level (-1 allows all, 4 nothing), or None where the kernel has no perf."""
    try:
        return int(_PARANOID.read_text())
    except (OSError, ValueError):
        return None


def has_capability(number: int) -> bool:
    """Whether this process holds a capability, by the number of linux/capability.h."""
    try:
        found = re.search(r"^CapEff:\s*([0-9a-f]+)", _STATUS.read_text(), re.MULTILINE)
    except OSError:
        return False
    return bool(found and int(found[1], 16) >> number & 1)


def is_privileged() -> bool:
    """Whether perf's levels and memory limits do not bind us."""
    return has_capability(CAP_PERFMON) or has_capability(CAP_SYS_ADMIN)


def in_container() -> str:
    """What container we are in, as far as it leaves a mark; empty outside."""
    for mark in _CONTAINER_MARKS:
        if Path(mark).exists():
            return "docker" if "docker" in mark else "podman"
    return os.environ.get("container", "")  # noqa: SIM112 (systemd-nspawn and LXC spell it so)


def perf_mend() -> str:
    """The command that would let perf record here."""
    if perf_event_paranoid() is None:
        return "boot a kernel with CONFIG_PERF_EVENTS"
    if container := in_container():
        runner = container if container in ("docker", "podman") else "docker"
        return f"{runner} run --cap-add PERFMON --security-opt seccomp=unconfined …"
    return "sudo sysctl kernel.perf_event_paranoid=1"
