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
