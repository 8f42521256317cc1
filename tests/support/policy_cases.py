"""Small observations to judge policies on."""

from collections.abc import Mapping, Sequence

import numpy as np

from numaplan.mapper.online.observation import MachineView, Observation, Pages, Processes, Threads, Touches
from numaplan.profiler import Machine


def machine_of(nodes: int, cores: int) -> MachineView:
    """Equal nodes, all at distance 21."""
    return MachineView.of(Machine.load(f"{nodes}x{cores}"))


def ints(values: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """An int64 array."""
    return np.array(values, dtype=np.int64)


def observation(
    machine: MachineView,
    cpus: Sequence[int],
    *,
    process: Sequence[int] | None = None,
    leaders: Sequence[int] = (),
    time_s: float = 1.0,
    accesses: Sequence[Sequence[float]] | None = None,
    latency: Sequence[float] | None = None,
    operations: Sequence[float] | None = None,
    mpki: Sequence[float] | None = None,
    pages: Sequence[tuple[int, int, int]] = (),
    touches: Sequence[tuple[int, int, float, float]] = (),
    resident: Sequence[Sequence[float]] | None = None,
    tids: Sequence[int] | None = None,
    busy: Sequence[float] | None = None,
) -> Observation:
    """Threads on cpu rows; pages: (process, number, node), sorted; touches: (page row, thread, count,
    latency).
    """
    count = len(cpus)
    owner = ints(process if process is not None else [0] * count)
    processes = int(owner.max(initial=0)) + 1
    place = ints(cpus)
    node = machine.cpu_node[place]
    instructions = np.full(count, 1e9)
    touched = [(page, thread, weight, wait) for page, thread, weight, wait in touches]
    page, thread = ints([row[0] for row in touched]), ints([row[1] for row in touched])
    weights, waits = np.array([row[2] for row in touched]), np.array([row[3] for row in touched])
    return Observation(
        time_s=time_s,
        interval_s=1.0,
        machine=machine,
        processes=Processes(
            100 + np.arange(processes),
            np.array(resident, dtype=float) if resident is not None else np.zeros((processes, machine.nodes)),
        ),
        threads=Threads(
            tid=ints(tids) if tids is not None else np.arange(count),
            process=owner,
            leader=np.isin(np.arange(count), list(leaders)),
            cpu=place,
            node=node,
            movable=np.ones(count, dtype=bool),
            busy=np.array(busy, dtype=float) if busy is not None else np.ones(count),
            instructions=instructions,
            operations=np.array(operations, dtype=float) if operations is not None else instructions,
            llc_misses=instructions * (np.array(mpki, dtype=float) if mpki is not None else 0.0) / 1e3,
            accesses=np.array(accesses, dtype=float)
            if accesses is not None
            else np.zeros((count, machine.nodes)),
            latency_ns=np.array(latency, dtype=float) if latency is not None else np.full(count, np.nan),
        ),
        pages=Pages(*(ints([row[column] for row in pages]) for column in range(3))),
        touches=Touches(page, thread, node[thread], weights, weights * 0.0, waits, np.ones(len(page))),
    )


def by_tid(moves: Sequence[object]) -> Mapping[int, object]:
    """Thread moves by tid."""
    from numaplan.mapper.online.actions import MoveThread

    return {move.tid: move for move in moves if isinstance(move, MoveThread)}
