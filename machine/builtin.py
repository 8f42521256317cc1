"""The machines of the papers, by name, and machines of so many equal nodes.

Latencies and bandwidths are the published measurements; where a paper gives none, distances stand for what
it says of the interconnect (HyperTransport square: neighbours one hop, opposite corners two).
"""

import re
from collections.abc import Callable, Sequence

from numaplan.common import UsageError

from .topology import MAX_NODES, Core, Node, Topology

MAX_GRID_CPUS = 1 << 14
GRID = re.compile(r"([1-9][0-9]{0,3})x([1-9][0-9]{0,3})")  # A nodes of B cpus
_GIB = 1 << 30

# [IMAR], Table 2: latency in ns, bandwidth in MB/s.
_HPL_LATENCY = (
    (85.8, 254.7, 271.4, 256.2),
    (254.9, 86.0, 253.2, 271.5),
    (271.4, 252.7, 86.0, 254.7),
    (255.1, 271.9, 254.3, 85.7),
)
_HPL_BANDWIDTH = (
    (59497.0, 12709.0, 12002.0, 12368.0),
    (12153.0, 59528.0, 12210.0, 12007.0),
    (12028.0, 12395.0, 59506.0, 12689.0),
    (12371.0, 11992.0, 12704.0, 59487.0),
)
# The same paper, Table 3.
_LPL_LATENCY = (
    (88.3, 145.1, 141.3, 144.4),
    (143.3, 82.9, 142.1, 140.4),
    (139.0, 141.2, 83.1, 144.8),
    (144.8, 138.4, 143.3, 83.4),
)
_LPL_BANDWIDTH = (
    (76251.0, 17148.0, 17141.0, 17127.0),
    (17141.0, 76286.0, 17141.0, 17100.0),
    (17153.0, 17157.0, 76306.0, 17152.0),
    (17141.0, 17146.0, 17140.0, 76210.0),
)
_SQUARE_HOPS = ((0, 1, 2, 1), (1, 0, 1, 2), (2, 1, 0, 1), (1, 2, 1, 0))


def _machine(
    name: str,
    nodes: int,
    cores: int,
    memory: int,
    distances: Sequence[Sequence[float]],
    *,
    l3_cores: int = 0,
    latency: Sequence[Sequence[float]] = (),
    bandwidth: Sequence[Sequence[float]] = (),
) -> Topology:
    """A machine of equal nodes with consecutive cpus, one hwthread a core.

    l3_cores: cores that share one last-level cache (0: those of a node).
    """
    per_cache = l3_cores or cores
    return Topology(
        name=name,
        nodes=tuple(
            Node(id=k, cpus=tuple(range(k * cores, (k + 1) * cores)), memory_bytes=memory)
            for k in range(nodes)
        ),
        distances=_rows(distances),
        cores=tuple(Core(cpus=(c,), node=c // cores, l3=c // per_cache) for c in range(nodes * cores)),
        latency_ns=_rows(latency),
        bandwidth_mb_s=_rows(bandwidth),
    )


def _rows(matrix: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(value) for value in row) for row in matrix)


def _flat(nodes: int, remote: float) -> list[list[float]]:
    return [[10.0 if a == b else remote for b in range(nodes)] for a in range(nodes)]


def _square(one_hop: float, two_hops: float) -> list[list[float]]:
    return [[(10.0, one_hop, two_hops)[hops] for hops in row] for row in _SQUARE_HOPS]


def _hpl() -> Topology:
    """Server HPL: four Xeon E5-4620 v4, a ring; 0 and 2, 1 and 3 are two hops apart."""
    return _machine(
        "hpl-4x10", 4, 10, 64 * _GIB, _square(21, 31), latency=_HPL_LATENCY, bandwidth=_HPL_BANDWIDTH
    )


def _lpl() -> Topology:
    """Server LPL: four Xeon Gold 6248, all connected to each other."""
    return _machine(
        "lpl-4x20", 4, 20, 256 * _GIB, _flat(4, 21), latency=_LPL_LATENCY, bandwidth=_LPL_BANDWIDTH
    )


def _cmlb() -> Topology:
    """The platform of [CMLB], Table 4: two Xeon E7-4809, placed one thread a core as in its experiments."""
    return _machine("cmlb-2x8", 2, 8, 16 * _GIB, _flat(2, 21))


def _opteron_4x8() -> Topology:
    """The platform of [EXCL], Table 4: four Opteron 6320, a constant NUMA factor of 1.6.

    An L3 belongs to one of the two memory controllers of a processor, so four cores share it.
    """
    return _machine("opteron-4x8", 4, 8, 16 * _GIB, _flat(4, 16), l3_cores=4)


def _opteron_2x4() -> Topology:
    """The second platform of [DINO], 5: two four-core Barcelona processors, 4 GB each."""
    return _machine("opteron-2x4", 2, 4, 4 * _GIB, _flat(2, 20))


def grid_machine(nodes: int, cpus: int) -> Topology:
    """The machine `nodes`x`cpus`; raises UsageError when it is too large."""
    if nodes * cpus > MAX_GRID_CPUS:
        raise UsageError(f"{nodes}x{cpus}: more than {MAX_GRID_CPUS} cpus", "give a smaller machine")
    if nodes > MAX_NODES:
        raise UsageError(f"{nodes}x{cpus}: more than {MAX_NODES} nodes", "give a smaller machine")
    return _machine(f"{nodes}x{cpus}", nodes, cpus, 0, _flat(nodes, 21))


BUILT_IN: dict[str, Callable[[], Topology]] = {
    "hpl-4x10": _hpl,
    "lpl-4x20": _lpl,
    "cmlb-2x8": _cmlb,
    "opteron-4x8": _opteron_4x8,
    "opteron-2x4": _opteron_2x4,
}
