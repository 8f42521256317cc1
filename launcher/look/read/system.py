"""The machine around the processes: its cpus, nodes, counters and settings, and what else runs."""

import re
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from .files import counters, number, numbered, raw, text
from .model import NodeState, Other, System
from .processes import after_name, ran_ns, read_thread

_MEMORY = re.compile(r"Mem(Total|Free):\s*(\d+) kB")
_KEPT = re.compile(r"numa_|pgmigrate_|pswp")
_POOL = re.compile(r"hugepages-(\d+)kB")
_FLAGS, _KERNEL_THREAD = 6, 0x00200000  # of stat: PF_KTHREAD
BUSY_NS = 200_000_000  # of cpu time between two looks, from which another process is looked at closer


def read_system(root: Path, ours: Container[int], before: Mapping[int, int] | None = None) -> System:
    """The machine now; ours: who is looked at; before: what others had run at the first look."""
    found = counters(text(root / "proc/vmstat"))
    return System(
        cpus=_cpus(root),
        counters={name: value for name, value in found.items() if _KEPT.match(name)},
        nodes={node: _node(root, node) for node in numbered(root / "sys/devices/system/node", "node")},
        balancing=number(root / "proc/sys/kernel/numa_balancing"),
        others=tuple(_others(root, ours, before or {})),
    )


def _cpus(root: Path) -> dict[int, tuple[int, int]]:
    found = {}
    for line in text(root / "proc/stat").splitlines():
        name, *words = line.split()
        if name.startswith("cpu") and name[3:].isdecimal():
            ticks = [int(word) for word in words]
            idle = ticks[3] + ticks[4]  # nothing to do, or waiting for a disk
            found[int(name[3:])] = (sum(ticks[:8]) - idle, idle)
    return found


def _node(root: Path, node: int) -> NodeState:
    folder = root / f"sys/devices/system/node/node{node}"
    memory = {name: int(value) << 10 for name, value in _MEMORY.findall(text(folder / "meminfo"))}
    pools = {}
    for pool in (folder / "hugepages").glob("hugepages-*kB"):
        if size := _POOL.fullmatch(pool.name):
            counts = (number(pool / "nr_hugepages") or 0, number(pool / "free_hugepages") or 0)
            pools[int(size[1]) << 10] = counts
    return NodeState(memory.get("Total", 0), memory.get("Free", 0), pools)


def _others(root: Path, ours: Container[int], before: Mapping[int, int]) -> Iterator[Other]:
    for pid in numbered(root / "proc"):
        if pid in ours:
            continue
        with suppress(OSError, ValueError, IndexError):
            stat = raw(root / f"proc/{pid}/stat")
            behind = after_name(stat)
            if int(behind[_FLAGS]) & _KERNEL_THREAD:
                continue
            ran = ran_ns(behind)
            busy = pid in before and ran - before[pid] >= BUSY_NS
            running = _running(root / f"proc/{pid}") if busy else ()
            yield Other(pid, stat[stat.find("(") + 1 : stat.rfind(")")], ran, running)


def _running(folder: Path) -> tuple[tuple[int, ...], ...]:
    """The cpus that each running thread may use."""
    found = []
    for tid in numbered(folder / "task"):
        stat = text(folder / f"task/{tid}/stat")
        thread = read_thread(folder, tid, whole=True) if after_name(stat)[:1] == ["R"] else None
        if thread:
            found.append(thread.cpus)
    return tuple(found)
