"""Which reader takes what a user names as a machine."""

import re
from pathlib import Path

from numaplan.common import UsageError, read_document
from numaplan.profiler.machine.model import Core, Machine, Node

_GRID = re.compile(r"([1-9][0-9]{0,3})x([1-9][0-9]{0,3})")
MAX_GRID_CPUS = 1 << 14


def load_machine(source: str) -> Machine:
    """See Machine.load."""
    if source == "local":
        from numaplan.profiler.machine.sysfs import read_sysfs

        return read_sysfs()
    if grid := _GRID.fullmatch(source):
        return grid_machine(int(grid[1]), int(grid[2]))
    from numaplan.profiler.machine.builtin import BUILT_IN

    if source in BUILT_IN:
        return BUILT_IN[source]()
    path = Path(source)
    if not path.exists():
        known = ", ".join(["local", *BUILT_IN, "AxB"])
        raise UsageError(f"{source}: no such machine or file", f"give a file or one of {known}")
    if path.is_dir():
        from numaplan.profiler.machine.sysfs import read_sysfs

        return read_sysfs(path)
    data = read_document(path, "machine.json or hwloc XML file")
    if data[:1] not in (b"<", b"{"):
        from numaplan.profiler.machine.packed import is_tree, read_tree, unpacked

        data = unpacked(data, source)
        if is_tree(data):
            return read_tree(data, source)
    if data.lstrip()[:1] == b"<":
        from numaplan.profiler.machine.hwloc_xml import parse_hwloc_xml

        return parse_hwloc_xml(data, source)
    return Machine.from_json(data, source)


def grid_machine(nodes: int, cpus: int) -> Machine:
    """The machine `nodes`x`cpus`: consecutive cpus, one hwthread a core, one last-level cache a node."""
    if nodes * cpus > MAX_GRID_CPUS:
        raise UsageError(f"{nodes}x{cpus}: more than {MAX_GRID_CPUS} cpus", "give a smaller machine")
    return Machine(
        name=f"{nodes}x{cpus}",
        nodes=tuple(Node(id=k, cpus=tuple(range(k * cpus, (k + 1) * cpus))) for k in range(nodes)),
        distances=tuple(tuple(10.0 if a == b else 21.0 for b in range(nodes)) for a in range(nodes)),
        cores=tuple(Core(cpus=(c,), node=c // cpus, l3=c // cpus) for c in range(nodes * cpus)),
    )
