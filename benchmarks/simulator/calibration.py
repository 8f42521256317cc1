"""What each simulated machine can do: one calibration a machine, used for every experiment on it.

Latencies and bandwidths of HPL and LPL are the published matrices. The other papers give none: the Opterons'
local latency and bandwidth are those usual for their memory (two channels of DDR2-667 a Barcelona node,
four of DDR3-1600 an Opteron 6320), remote ones follow the NUMA factor and one HyperTransport link's rate;
likewise the Xeon E7-4809's, with QPI. Clock and cache are the data sheets'. Everything else is the same on
all machines.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from numaplan.machine import Machine

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Calibration:
    """latency_ns, bandwidth: (K, K) ns and bytes/s, row accesses column; ghz; l3_bytes: cache of a node."""

    machine: Machine
    latency_ns: Floats
    bandwidth: Floats
    ghz: float
    l3_bytes: float


@dataclass(frozen=True)
class Physics:
    """What holds for every machine.

    line_bytes: traffic of a miss, with what is written back and what was fetched ahead in vain; queue: delay
    of a resource relative to its unloaded latency at utilisation rho is queue * rho^2 / (1 - rho); overflow,
    reuse: see cache.py;
    page_move_s: seconds to migrate one byte ([NEXT-TOUCH], 4.2: 1 GB/s and 2.5 us a page of 4 KiB);
    flush_s: each running thread of a process loses to a page of it that moves, for the page's address must
    be forgotten on all cpus; move_rate: bytes/s at which migrations go at most; warm_up_s: a thread loses on
    another node; noise: share of a core that the system's own work takes where it runs; sample_s: a sample
    takes of the thread that is interrupted, and again of whoever reads it.
    """

    line_bytes: float = 160.0
    queue: float = 0.35
    overflow: float = 0.2
    reuse: float = 0.3
    page_move_s: float = 1e-9 + 2.5e-6 / 4096
    flush_s: float = 1e-6
    move_rate: float = 600e6
    warm_up_s: float = 0.003
    noise: float = 0.02
    sample_s: float = 5e-6


PHYSICS = Physics()
_GB = 1e9
_MIB = float(1 << 20)


def _measured(name: str, ghz: float, l3: float) -> Calibration:
    machine = Machine.load(name)
    return Calibration(
        machine, np.array(machine.latency_ns), np.array(machine.bandwidth_mb_s) * 1e6, ghz, l3 * _MIB
    )


def _scaled(
    machine: Machine, local_ns: float, local: float, link: float, ghz: float, l3: float
) -> Calibration:
    """Latencies in proportion to the distances, one rate for local memory and one for every link."""
    same = np.eye(len(machine.nodes), dtype=bool)
    return Calibration(
        machine,
        local_ns * machine.distance_matrix / 10.0,
        np.where(same, local * _GB, link * _GB),
        ghz,
        l3 * _MIB,
    )


def calibration(name: str) -> Calibration:
    """The machine of a paper: hpl-4x10, lpl-4x20, opteron-4x8, barcelona-4x4, opteron-2x4."""
    if name == "hpl-4x10":
        return _measured(name, 2.3, 25)
    if name == "lpl-4x20":
        return _measured(name, 3.2, 27.5)
    if name == "opteron-4x8":
        return _scaled(Machine.load(name), 100.0, 25.0, 6.0, 2.8, 16)
    if name == "barcelona-4x4":  # [DINO], 2.1; one hop costs what the machine of [NEXT-TOUCH], 2, has
        content = Machine.load("4x4").to_dict()
        square = [[10, 14, 18, 14], [14, 10, 14, 18], [18, 14, 10, 14], [14, 18, 14, 10]]
        return _scaled(Machine.from_dict({**content, "distances": square}), 100.0, 7.0, 4.0, 2.3, 2)
    return _scaled(Machine.load(name), 100.0, 7.0, 4.0, 2.0, 2)
