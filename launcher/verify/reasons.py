"""Why something could not be applied: what the system says about the planned cpus and nodes."""

import errno
import os
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from numaplan.common import UsageError
from numaplan.machine import format_list, own_cpuset, parse_list

FULL = 0.02  # a node with less of its memory free than this is full
_KILOBYTES = re.compile(r"(MemTotal|MemFree):\s+(\d+) kB")


def binding_failure(cpus: Sequence[int], error: int, root: Path = Path("/")) -> str:
    """Why a thread could not be bound to `cpus`, after sched_setaffinity failed with errno `error`."""
    if gone := _unavailable(cpus, root):
        return gone
    if error == errno.EINVAL:
        which = f"cpu {cpus[0]} was not" if len(cpus) == 1 else "none of them was"
        return f"{which} in the thread's cpuset then (cgroup, container, batch job)"
    return f"{os.strerror(error)} (not permitted in this container?)"


def affinity_change(cpus: Sequence[int], actual: Sequence[int], root: Path = Path("/")) -> str:
    """Why a thread that was bound to `cpus` may run on `actual` now."""
    if gone := _unavailable([cpu for cpu in cpus if cpu not in actual], root):
        return gone
    if set(actual) < set(cpus):
        return f"only {format_list(actual)} of them was allowed (cpuset), or the program set its own affinity"
    return "the program set its own affinity"


def placement_failure(node: int, root: Path = Path("/")) -> str:
    """Why memory is not on `node`; empty when the system does not tell."""
    place = root / f"sys/devices/system/node/node{node}"
    nodes = _field(root, "Mems_allowed_list")
    if (root / "sys/devices/system/node").is_dir() and not place.is_dir():
        return f"there is no node {node}"
    if nodes and node not in nodes:
        return f"node {node} is outside this process's cpuset (cgroup, container, batch job)"
    with suppress(OSError):
        sizes = {name: int(value) for name, value in _KILOBYTES.findall((place / "meminfo").read_text())}
        if sizes.get("MemFree", 1) < FULL * sizes.get("MemTotal", 0):
            return f"node {node} was full"
    return ""


def _unavailable(cpus: Sequence[int], root: Path) -> str:
    """Which of them is not there, or not for this process; empty when all are."""
    online, allowed = _list_in(root / "sys/devices/system/cpu/online"), _field(root, "Cpus_allowed_list")
    for cpu in cpus:
        if online and cpu not in online:
            return f"cpu {cpu} is offline"
    for cpu in cpus:
        if allowed and cpu not in allowed and cpu not in _cpuset(root):
            return f"cpu {cpu} is outside this process's cpuset (cgroup, container, batch job)"
    return ""


def _cpuset(root: Path) -> Collection[int]:
    """The cpus that we could have, whatever we are bound to (by taskset, or another nlaunch)."""
    return own_cpuset() if root == Path("/") else ()


def _field(root: Path, name: str) -> frozenset[int]:
    """A list of /proc/self/status, empty where there is none."""
    with suppress(OSError):
        for line in (root / "proc/self/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return _numbers(line.partition(":")[2])
    return frozenset()


def _list_in(path: Path) -> frozenset[int]:
    with suppress(OSError):
        return _numbers(path.read_text())
    return frozenset()


def _numbers(text: str) -> frozenset[int]:
    """0-3,8 as a set; empty when it is something else."""
    with suppress(UsageError):
        return frozenset(parse_list(text, "list"))
    return frozenset()
