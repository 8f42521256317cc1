"""A machine with fewer cpus: some nodes, some reserved, one hwthread a core. Ids, memory, distances stay."""

from collections.abc import Sequence

import msgspec

from numaplan.common import UsageError
from numaplan.profiler import Machine

SMT_CHOICES = ("share", "avoid")


def restrict(
    machine: Machine, nodes: Sequence[int] = (), smt: str = "share", without: Sequence[int] = ()
) -> Machine:
    """The machine with cpus only on `nodes` (empty: all), none of `without`, one a core where smt is `avoid`.

    Raises UsageError for a node that is not there or has no cpus, a cpu that is not there, another word for
    smt, or when no cpu is left.
    """
    if smt not in SMT_CHOICES:
        raise UsageError(f"--smt {smt}", f"take one of {', '.join(SMT_CHOICES)}")
    for node in nodes:
        if not machine.nodes[machine.index_of_node(node)].cpus:
            raise UsageError(f"node {node} has no cpus", "name nodes that threads can run on")
    for cpu in without:
        if cpu not in machine.node_of_cpu:
            raise UsageError(f"--without-cpus: no cpu {cpu} on this machine", "name cpus that it has")
    if not nodes and not without and smt == "share":
        return machine
    keep = {cpu for node in machine.nodes if not nodes or node.id in nodes for cpu in node.cpus}
    keep -= set(without)
    if smt == "avoid":
        keep -= {cpu for core in machine.cores for cpu in [c for c in sorted(core.cpus) if c in keep][1:]}
    if not keep:
        raise UsageError("no cpu is left to place threads on", "reserve fewer cpus, or name more nodes")
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
        caches=(),  # sizes of caches of cpus that are gone; places need only what `cores` says
    )
