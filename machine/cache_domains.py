"""A machine divided by its last-level caches, where a node has several (EPYC, Ryzen)."""

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from .cache_model import domains_of
from .model import Machine
from .topology import Node

if TYPE_CHECKING:  # nlaunch reads machines and must not wait for numpy
    import numpy as np
    from numpy.typing import NDArray


class CacheDomains(NamedTuple):
    """machine: its nodes are the caches, numbered from 0; rows: (D,) row of the real node of each."""

    machine: Machine
    rows: "NDArray[np.int64]"


def divided_by_caches(machine: Machine, whole: Machine) -> CacheDomains:
    """The cpus of `machine` by cache domain, in the order of nodes; each node is one where it has one cache.

    whole: the machine that `machine` is a part of, which knows the caches and gives the rows.
    """
    import numpy as np

    seats = [(cpu, node.id) for node in machine.cpu_nodes for cpu in node.cpus]
    numbers = dict(zip((cpu for cpu, _ in seats), domains_of(whole, seats), strict=True))
    members: dict[tuple[int, int], list[int]] = {}
    for cpu, node in seats:
        members.setdefault((node, numbers[cpu]), []).append(cpu)
    number = {key: place for place, key in enumerate(members)}
    return CacheDomains(
        msgspec.structs.replace(
            machine,
            nodes=tuple(Node(id=place, cpus=tuple(cpus)) for place, cpus in enumerate(members.values())),
            cores=tuple(
                msgspec.structs.replace(core, node=number[core.node, numbers[core.cpus[0]]])
                for core in machine.cores
                if core.cpus and core.cpus[0] in numbers
            ),
            caches=(),
            distances=(),
            latency_ns=(),
            bandwidth_mb_s=(),
        ),
        np.array([whole.index_of_node(node) for node, _ in members], np.int64),
    )
