"""The clock and the machine of a recording, and its accesses put on those of a trace."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from numaplan.common import UsageError
from numaplan.machine import MAX_CPUS, MAX_NODES, Machine, Node, parse_list

from ...sample_block import SampleBlock
from ..decode import Decoded

NEVER = int(np.iinfo(np.int64).max)
_MOST_KIB = 1 << 50


def start_of(decoded: Decoded, first: int) -> int:
    """When a recording began whose first access is at `first` (0 or NEVER: it has no times)."""
    began = [one.start for one in decoded.threads if one.start > 0]
    return first if 0 < first < NEVER else min(began, default=0)


class Placer:
    """Puts blocks on a machine's nodes and a trace's clock. start: times before it are moved there."""

    def __init__(self, machine: Machine, start: int) -> None:
        self._start = start
        self._node_of = np.full(MAX_CPUS + 1, -1, dtype=np.int32)  # the last one is that of cpu -1
        for cpu, node in machine.node_of_cpu.items():
            self._node_of[cpu] = node

    def place(self, block: SampleBlock, shift: int = 0) -> SampleBlock:
        """The block with nodes and with `shift` ns added to its times."""
        time = block.time_ns + shift if shift else block.time_ns
        return replace(block, time_ns=np.maximum(time, self._start), node=self._node_of[block.cpu])


def machine_of(decoded: Decoded, last_cpu: int = 0) -> tuple[Machine, str]:
    """The machine the recording was made on: nodes and cpus as perf wrote them, else one node.

    last_cpu: the highest number among samples that are not in `decoded`. Also what is wrong where perf wrote
    what makes no machine.
    """
    problem = ""
    if topology := decoded.header.get("numa_topology"):
        try:
            return _machine(decoded, tuple(map(_node, sorted(topology, key=_number)))), problem
        except UsageError as error:
            problem = error.what
    cpus = decoded.samples["cpu"]
    seen = max(int(cpus[cpus < MAX_CPUS].max(initial=0)), last_cpu)
    listed = decoded.header.get("nrcpus", {}).get("available", 0)
    count = min(max(seen + 1, listed), MAX_CPUS)
    return _machine(decoded, (Node(id=0, cpus=tuple(range(count))),)), problem


def _machine(decoded: Decoded, nodes: tuple[Node, ...]) -> Machine:
    return Machine(name=str(decoded.header.get("hostname", "recorded")), nodes=nodes)


def _number(node: Mapping[str, Any]) -> int:
    return int(node["node"])


def _node(written: Mapping[str, Any]) -> Node:
    if written["node"] >= MAX_NODES:
        raise UsageError(f"numa_topology: no system has a node {written['node']}", "record again")
    return Node(
        id=written["node"],
        cpus=parse_list(written["cpus"], "numa_topology"),
        memory_bytes=min(written["memory_kib"], _MOST_KIB) * 1024,
    )
