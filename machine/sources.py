"""Chooses the reader for what a user names as a machine."""

import re
from pathlib import Path

import msgspec

from numaplan.common import UsageError, read_document

from .topology import Topology

_GRID = re.compile(r"([1-9][0-9]{0,3})x([1-9][0-9]{0,3})")


def read_topology(source: str) -> Topology:
    """What `source` names (see Machine.load); raises UsageError when it cannot be read."""
    if source == "local":
        from .sysfs import read_sysfs

        return read_sysfs()
    from .builtin import BUILT_IN, grid_machine

    if grid := _GRID.fullmatch(source):
        return grid_machine(int(grid[1]), int(grid[2]))

    if source in BUILT_IN:
        return BUILT_IN[source]()
    path = Path(source)
    if not path.exists():
        known = ", ".join(["local", *BUILT_IN, "AxB"])
        raise UsageError(f"{source}: no such machine or file", f"give a file or one of {known}")
    if path.is_dir():
        from .sysfs import read_sysfs

        return read_sysfs(path)
    data = read_document(path, "machine.json or hwloc XML file")
    if data[:1] not in (b"<", b"{"):
        from .archives import is_tree, read_tree, unpacked

        data = unpacked(data, source)
        if is_tree(data):
            return read_tree(data, source)
    if data.lstrip()[:1] == b"<":
        from .hwloc_xml import parse_hwloc_xml

        return parse_hwloc_xml(data, source)
    return read_machine_json(data, source)


def read_machine_json(data: bytes | str, where: str) -> Topology:
    """The content of a machine.json; raises UsageError naming `where` and the wrong field."""
    try:
        return msgspec.json.decode(data, type=Topology)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(f"{where}: {error}", "see 'nmap machine 2x2 --json' for the format") from error
