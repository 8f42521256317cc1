"""A machine with fewer cpus: only some nodes, or one hwthread a core. Ids, memory and distances stay."""

from collections.abc import Sequence

import msgspec

from numaplan.common import UsageError
from numaplan.profiler import Machine

SMT_CHOICES = ("share", "avoid")


def restrict(machine: Machine, nodes: Sequence[int] = (), smt: str = "share") -> Machine:
    """The machine with cpus only on `nodes` (empty: all), and one a core where smt is `avoid`.

    Raises UsageError for a node that is not there or has no cpus, or another word for smt.
    """
    if smt not in SMT_CHOICES:
        raise UsageError(f"--smt {smt}", f"take one of {', '.join(SMT_CHOICES)}")
    for node in nodes:
        if not machine.nodes[machine.index_of_node(node)].cpus:
            raise UsageError(f"node {node} has no cpus", "name nodes that threads can run on")
    if not nodes and smt == "share":
        return machine
    keep = {cpu for node in machine.nodes if not nodes or node.id in nodes for cpu in node.cpus}
    if smt == "avoid":
        keep -= {cpu for core in machine.cores for cpu in sorted(core.cpus)[1:]}
    return msgspec.structs.replace(
        machine,
        nodes=tuple(
            msgspec.structs.replace(node, cpus=tuple(cpu for cpu in node.cpus if cpu in keep))
            for node in machine.nodes
        ),
        cores=tuple(
            msgspec.structs.replace(core, cpus=cpus)
            for core in machine.cores
            if (cpus := tuple(cpu for cpu in core.cpus if cpu in keep))
        ),
    )
