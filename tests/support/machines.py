"""Machines as their readers see them, for tests of one reader."""

from pathlib import Path

from numaplan.machine import Machine
from numaplan.machine.hwloc_xml import parse_hwloc_xml
from numaplan.machine.sysfs import read_sysfs


def sysfs_machine(root: Path, restrict: bool | None = None) -> Machine:
    """The machine of a tree; restrict: to what this process may use."""
    return Machine.of(read_sysfs(root, restrict))


def hwloc_machine(data: bytes, where: str) -> Machine:
    """The machine of an hwloc XML file's content."""
    return Machine.of(parse_hwloc_xml(data, where))


class Tree:
    """A sysfs tree under construction."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, path: str, text: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def cpu(self, cpu: int, siblings: str, shared: str) -> None:
        base = f"sys/devices/system/cpu/cpu{cpu}"
        self.put(f"{base}/topology/thread_siblings_list", siblings)
        for index, (level, kind, cpus) in enumerate(
            ((1, "Data", str(cpu)), (1, "Instruction", str(cpu)), (3, "Unified", shared))
        ):
            self.put(f"{base}/cache/index{index}/level", f"{level}\n")
            self.put(f"{base}/cache/index{index}/type", f"{kind}\n")
            self.put(f"{base}/cache/index{index}/shared_cpu_list", cpus)

    def node(self, node: int, cpus: str, kib: int, distance: str) -> None:
        base = f"sys/devices/system/node/node{node}"
        self.put(f"{base}/cpulist", cpus)
        self.put(f"{base}/meminfo", f"Node {node} MemTotal:  {kib} kB\nNode {node} MemFree: 1 kB\n")
        self.put(f"{base}/distance", distance)
