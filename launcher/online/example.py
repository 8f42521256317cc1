"""An observation made up of a few threads and pages: deciding on it loads what a policy needs.

A library loaded in the middle of the first real decision would make that decision late.
"""

import numpy as np

from numaplan.mapper import MachineView, Observation, Pages, Processes, Threads, Touches

_THREADS, _PAGES = 4, 8


def example_observation(machine: MachineView) -> Observation:
    """Four threads of one process on different nodes, all of whose pages are on the first node."""
    nodes = machine.cpu_nodes
    node = nodes[np.arange(_THREADS) % len(nodes)]
    cpu = np.array([int(np.flatnonzero(machine.cpu_node == row)[0]) for row in node.tolist()], dtype=np.int64)
    page = np.repeat(np.arange(_PAGES), 2)
    thread = np.stack([np.arange(_PAGES) % _THREADS, (np.arange(_PAGES) + 2) % _THREADS], axis=1).ravel()
    count = len(page)
    accesses = np.zeros((_THREADS, machine.nodes))
    accesses[:, nodes[0]] = np.bincount(thread, minlength=_THREADS) * 100.0
    return Observation(
        time_s=0.0,
        interval_s=1.0,
        machine=machine,
        processes=Processes(np.array([1]), np.ones((1, machine.nodes))),
        threads=Threads(
            tid=np.arange(1, _THREADS + 1),
            process=np.zeros(_THREADS, dtype=np.int64),
            leader=np.arange(_THREADS) == 0,
            cpu=cpu,
            node=node,
            movable=np.ones(_THREADS, dtype=np.bool_),
            busy=np.ones(_THREADS),
            instructions=np.full(_THREADS, 1e9),
            operations=np.zeros(_THREADS),
            llc_misses=np.linspace(0.0, 3e7, _THREADS),
            accesses=accesses,
            latency_ns=np.full(_THREADS, np.nan),
        ),
        pages=Pages(np.zeros(_PAGES, dtype=np.int64), np.arange(_PAGES) * 4, np.full(_PAGES, nodes[0])),
        touches=Touches(
            page=page,
            thread=thread,
            node=node[thread],
            accesses=np.full(count, 100.0),
            writes=np.full(count, 50.0),
            latency_ns=np.full(count, np.nan),
            last_s=np.zeros(count),
        ),
    )
