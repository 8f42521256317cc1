"""What a policy sees of the simulated machine: counters with noise, and samples of accesses.

Each thread's accesses are sampled SAMPLES times a second of running (a Poisson count); a sample hits a
block of the segment that its share of accesses says, with the latency between its node and the block's,
under load.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulator.contention import Speeds
from benchmarks.simulator.world import BLOCK, World
from numaplan.mapper.online.observation import (
    MachineView,
    Observation,
    Pages,
    Processes,
    Threads,
    Touches,
    no_pages,
)

Floats = NDArray[np.float64]

SAMPLES = 64.0  # a second and thread
COUNTER_NOISE = 0.01
LATENCY_NOISE = 0.1  # of a block's mean
_MEMORY_OPERATIONS = 0.3  # of instructions; what is no memory operation computes


@dataclass
class Counters:
    """What threads did since the last observation, by tid: instructions, misses, accesses by node,
    waiting.
    """

    seconds: float = 0.0
    rows: dict[int, int] = field(default_factory=dict)
    table: Floats = field(default_factory=lambda: np.empty((0, 0)))

    def add(self, world: World, speeds: Speeds, misses: Floats, seconds: float) -> None:
        """Count one step at these speeds; misses: (T,) an instruction."""
        self.follow(world)
        done = speeds.rate * seconds
        missed = done * misses
        self.table[:, 0] += done
        self.table[:, 1] += missed
        self.table[:, 2] += missed * speeds.latency_s * 1e9
        self.table[:, 3:] += missed[:, None] * world.places
        self.seconds += seconds

    def follow(self, world: World) -> None:
        """Rows as the world's threads are now; what threads that stay did is kept."""
        if len(self.table) and list(self.rows) == world.tid.tolist():
            return
        table = np.zeros((len(world.tid), 3 + world.nodes))
        for row, tid in enumerate(world.tid.tolist()):
            if tid in self.rows:
                table[row] = self.table[self.rows[tid]]
        self.table = table
        self.rows = {tid: row for row, tid in enumerate(world.tid.tolist())}


def observe(world: World, counters: Counters, speeds: Speeds, now: float, sampled: bool) -> Observation:
    """The interval since the counters were made; `sampled`: with pages and touches."""
    counters.follow(world)
    view = MachineView.of(world.calibration.machine)
    pids, process = np.unique(world.pid, return_inverse=True)
    noise = 1.0 + COUNTER_NOISE * world.rng.standard_normal(counters.table.shape)
    table = counters.table * np.maximum(noise, 0.5)
    seconds = max(counters.seconds, 1e-9)
    misses = table[:, 1]
    threads = Threads(
        tid=world.tid.copy(),
        process=process.astype(np.int64),
        leader=world.tid == world.pid,
        cpu=world.cpu.copy(),
        node=world.node,
        movable=world.unfinished,
        busy=world.active.astype(np.float64),
        instructions=table[:, 0],
        operations=table[:, 0] * (1 - _MEMORY_OPERATIONS),
        llc_misses=misses,
        accesses=table[:, 3:],
        latency_ns=np.divide(table[:, 2], misses, out=np.full(len(misses), np.nan), where=misses > 0),
    )
    resident = np.zeros((len(pids), world.nodes))
    np.add.at(resident, (np.searchsorted(pids, world.block_pid), world.block_node), BLOCK / 4096)
    processes = Processes(pids, resident)
    pages, touches = _samples(world, pids, speeds, misses, seconds, now) if sampled else no_pages(BLOCK)
    return Observation(now, seconds, view, processes, threads, pages, touches)


def _samples(
    world: World, pids: NDArray[np.int64], speeds: Speeds, misses: Floats, seconds: float, now: float
) -> tuple[Pages, Touches]:
    order, page_of_block = world.by_address
    process = np.searchsorted(pids, world.block_pid[order])
    pages = Pages(process, world.block_number[order], world.block_node[order], BLOCK)

    running = world.active & (speeds.rate > 0)
    thread, segment, share = world.used
    repeats = world.rng.poisson(share * (SAMPLES * seconds * running)[thread])
    thread, segment = np.repeat(thread, repeats), np.repeat(segment, repeats)
    starts, by_segment = world.blocks_of
    sizes = np.diff(starts)
    real = sizes[segment] > 0
    thread, segment = thread[real], segment[real]
    within = (world.rng.random(len(segment)) * sizes[segment]).astype(np.int64)
    block = by_segment[starts[segment] + within]

    count = len(world.block_node)
    keys, number = np.unique(thread * count + block, return_counts=True)
    thread, block = keys // max(count, 1), keys % max(count, 1)
    nodes = world.node[thread]
    latency = speeds.access_s[nodes, world.block_node[block]] * 1e9
    latency *= np.exp(LATENCY_NOISE * world.rng.standard_normal(len(latency)))
    accesses = number * misses[thread] / (SAMPLES * seconds)  # what so many samples stand for
    return pages, Touches(
        page=page_of_block[block],
        thread=thread,
        node=nodes,
        accesses=accesses,
        writes=accesses * 0.3,
        latency_ns=latency,
        last_s=now - seconds * world.rng.random(len(latency)) ** number,
    )
