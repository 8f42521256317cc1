"""How much memory is to be had: what the machine has left, and what limits leave of it."""

import resource
from contextlib import suppress
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def available_bytes() -> int:
    """Memory that could be taken now: what the kernel calls available, within the cgroup's limit and that
    of this process's address space (`ulimit -v`); 0: none.
    """
    left = [_kilobytes(Path("/proc/meminfo"), "MemAvailable")]
    with suppress(OSError, ValueError):
        limit = int((_CGROUP / "memory.max").read_text())
        left.append(limit - int((_CGROUP / "memory.current").read_text()))
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        left.append(limit - _kilobytes(Path("/proc/self/status"), "VmSize"))
    return max(0, min(left))


def _kilobytes(file: Path, field: str) -> int:
    """Bytes of a field that the kernel gives in kB."""
    lines = dict(line.split(":", 1) for line in file.read_text().splitlines())
    return int(lines[field].split()[0]) << 10
