"""What this process may do with perf, and the command that would allow more."""

import os
import re
from pathlib import Path

from .kernel_files import ROOT, read_number, read_text

CAP_SYS_ADMIN, CAP_PERFMON = 21, 38


def perf_event_paranoid(root: Path = ROOT) -> int | None:
    """The kernel's level (-1 allows all, 4 nothing), or None where the kernel has no perf."""
    return read_number(root / "proc/sys/kernel/perf_event_paranoid")


def capabilities_of(root: Path = ROOT) -> int:
    """The effective capabilities of this process (of the one that recorded a tree), a bit each."""
    status = read_text(root / "proc/self/status")
    found = re.search(r"^CapEff:\s*([0-9a-f]{1,16})", status, re.MULTILINE)
    return int(found[1], 16) if found else 0


def has_capability(number: int, root: Path = ROOT) -> bool:
    """Whether a capability is held, by the number of linux/capability.h."""
    return bool(capabilities_of(root) >> number & 1)


def is_privileged(root: Path = ROOT) -> bool:
    """Whether perf's levels and memory limits do not bind us."""
    return has_capability(CAP_PERFMON, root) or has_capability(CAP_SYS_ADMIN, root)


def in_container(root: Path = ROOT) -> str:
    """What container we are in, as far as it leaves a mark; empty outside."""
    for mark, kind in ((".dockerenv", "docker"), ("run/.containerenv", "podman")):
        if (root / mark).exists():
            return kind
    # systemd-nspawn and LXC spell it so
    return os.environ.get("container", "") if root == ROOT else ""  # noqa: SIM112


def container_hint(kind: str) -> str:
    """The command that starts a container in which perf may record."""
    runner = kind if kind in ("docker", "podman") else "docker"
    return f"{runner} run --cap-add PERFMON --security-opt seccomp=unconfined …"


def perf_hint() -> str:
    """The command that would let perf record here."""
    if perf_event_paranoid() is None:
        return "boot a kernel with CONFIG_PERF_EVENTS"
    if container := in_container():
        return container_hint(container)
    return "sudo sysctl kernel.perf_event_paranoid=1"
