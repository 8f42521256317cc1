"""The operating system: where threads start, balancing in and between nodes, disturbance, AutoNUMA.

A thread starts on the idlest node. Every step a cpu with two threads gives one to an idle cpu of its node;
a node with two threads more than another gives one away (the first that may go); now and then daemons
displace a thread to another node. AutoNUMA scans memory, moves a block when two faults in a row come
from the same other node, and now and then takes a thread to the node it accesses most, in exchange where that
is full. As in the kernel the scan slows down while most accesses are private or local, else it speeds up.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulator.world import BLOCK, FREE, World

Ints = NDArray[np.int64]

_GOOD = 7  # tenths of faults, private or local, that let AutoNUMA slow down
_SHORTEST, _LONGEST = 1.0, 60.0  # seconds between two scans


@dataclass(frozen=True)
class Habits:
    """The system's rates: displacements a second and thread; bytes of a job that AutoNUMA
    scans a period, of a second at first (the kernel's 256 MB); how often a second AutoNUMA considers moving a
    thread; asleep: share of time that threads sleep, a second at a time.
    """

    displaced: float = 0.02
    scan: float = 256e6
    follow: float = 0.05
    autonuma: bool = True
    asleep: float = 0.0


def starting_cpus(world: World, count: int, node: int = FREE) -> Ints:
    """(count,) cpus for new threads: each on the idlest node (or the given one), there on the idlest cpu."""
    load = cpu_load(world)
    chosen = []
    for _ in range(count):
        by_node = np.bincount(world.cpu_node, load, minlength=world.nodes) / world.seats
        tie = by_node + world.rng.random(world.nodes) * 1e-3
        target = node if node != FREE else int(np.argmin(tie))
        chosen.append(idlest_cpu(world, load, target))
        load[chosen[-1]] += 1
    return np.array(chosen, dtype=np.int64)


def idlest_cpu(world: World, load: NDArray[np.float64], node: int) -> int:
    """The cpu of a node with fewest threads, the lowest on a tie."""
    cpus = world.cpus_of[node]
    return int(cpus[np.argmin(load[cpus])])


def cpu_load(world: World) -> NDArray[np.float64]:
    """(C,) threads with work on each cpu."""
    return np.bincount(world.cpu[world.active], minlength=len(world.cpu_node)).astype(np.float64)


def move_thread(world: World, thread: int, cpu: int, warm_up: float) -> None:
    """Run a thread elsewhere; on another node its caches are cold."""
    if world.cpu_node[world.cpu[thread]] != world.cpu_node[cpu]:
        world.lost_s[thread] += warm_up
    world.cpu[thread] = cpu


def sleep_and_wake(world: World, habits: Habits, seconds: float) -> None:
    """Threads that wait for others or for devices; queues then change length, and balancing has work."""
    if habits.asleep <= 0:
        return
    wake = min(1.0, seconds)
    sleep = wake * habits.asleep / (1.0 - habits.asleep)
    chance = np.where(world.asleep > 0, 1.0 - wake, sleep)
    world.asleep = (world.rng.random(len(world.asleep)) < chance).astype(np.int64)


def spread_in_nodes(world: World) -> None:
    """From cpus with several threads to idle ones of the same node; threads bound to a cpu stay."""
    load = cpu_load(world)
    least = np.full(world.nodes, np.inf)
    np.minimum.at(least, world.cpu_node, load)
    for cpu in np.flatnonzero(load >= least[world.cpu_node] + 2).tolist():
        here = np.flatnonzero((world.cpu == cpu) & world.active & (world.bound_cpu == FREE))
        for thread in here.tolist():
            target = idlest_cpu(world, load, int(world.cpu_node[cpu]))
            if load[target] + 1 >= load[cpu]:
                break
            world.cpu[thread] = target
            load[target] += 1
            load[cpu] -= 1


def balance_nodes(world: World, warm_up: float) -> None:
    """Threads from the node with most a cpu to the one with fewest, while one thread evens them out."""
    for _ in range(8):
        nodes = world.cpu_node[world.cpu]
        count = np.bincount(nodes[world.active], minlength=world.nodes)
        load = count / world.seats
        source, target = int(np.argmax(load)), int(np.argmin(load))
        if (count[target] + 1) / world.seats[target] > load[source] - 1e-9:
            break
        may = (nodes == source) & world.active & (world.bound_node == FREE) & (world.bound_cpu == FREE)
        free = np.flatnonzero(may)
        if not len(free):
            break
        move_thread(world, int(world.rng.choice(free)), idlest_cpu(world, cpu_load(world), target), warm_up)


def displace(world: World, habits: Habits, seconds: float, warm_up: float) -> None:
    """Threads that daemons push to another node: to an idle cpu, or changing places with a thread there."""
    free = np.flatnonzero(world.active & (world.bound_node == FREE) & (world.bound_cpu == FREE))
    hit = free[world.rng.random(len(free)) < habits.displaced * seconds]
    for thread in hit.tolist():
        others = np.flatnonzero(np.arange(world.nodes) != world.cpu_node[world.cpu[thread]])
        if len(others):
            change_node(world, thread, int(world.rng.choice(others)), free, warm_up)


def change_node(world: World, thread: int, node: int, swappable: Ints, warm_up: float) -> None:
    """To an idle cpu of the node, else in exchange with one of `swappable` threads there, if there is one."""
    if not take_idle_cpu(world, thread, node, warm_up):
        there = swappable[world.cpu_node[world.cpu[swappable]] == node]
        if len(there):
            exchange(world, thread, int(world.rng.choice(there)), warm_up)


def take_idle_cpu(world: World, thread: int, node: int, warm_up: float) -> bool:
    """Whether the node had one."""
    load = cpu_load(world)
    target = idlest_cpu(world, load, node)
    if load[target] == 0:
        move_thread(world, thread, target, warm_up)
    return bool(load[target] == 0)


def exchange(world: World, thread: int, other: int, warm_up: float) -> None:
    """Each on the other's cpu."""
    mine, theirs = int(world.cpu[thread]), int(world.cpu[other])
    move_thread(world, thread, theirs, warm_up)
    move_thread(world, other, mine, warm_up)


def scan_memory(world: World, habits: Habits, seconds: float) -> NDArray[np.int64]:
    """Rows of the blocks that AutoNUMA moves in this step; interleaved and bound memory stays."""
    if not len(world.block_node):
        return np.empty(0, dtype=np.int64)
    sizes = np.bincount(world.block_job_row, minlength=len(world.jobs)) * BLOCK
    rate = habits.scan / scan_periods(world, seconds)
    chance = np.minimum(1.0, rate * seconds / np.maximum(sizes, 1)) * ~world.fixed
    rows = np.flatnonzero(world.rng.random(len(world.block_node)) < chance[world.block_job_row])
    users = segment_users(world)[world.block_segment[rows]]
    first, second = _draw(world, users), _draw(world, users)
    agreed = (first == second) & (first != world.block_node[rows])
    world.block_node[rows[agreed]] = first[agreed]
    return rows[agreed]


def scan_periods(world: World, seconds: float) -> NDArray[np.float64]:
    """(J,) seconds between two scans of each job, after what this step changes of them.

    The kernel's rule (update_task_scan_period): of private and then of local faults, 7 tenths or more
    lengthen the period by a tenth for each beyond (at least one), fewer shorten it so for each that lacks.
    """
    local = world.places[np.arange(len(world.tid)), world.node]
    mean = np.bincount(world.job_row, local, minlength=len(world.jobs)) / world.threads_of
    for job, share in zip(world.jobs, mean.tolist(), strict=True):
        program = job.task.program
        private, near = int(10 * (1.0 - program.shared - program.halo) + 1e-9), int(10 * share + 1e-9)
        good = private if private >= _GOOD else near
        slots = max(good - _GOOD, 1) if good >= _GOOD else max(private, near) - _GOOD
        job.scan_period = min(max(job.scan_period + 0.1 * slots * seconds, _SHORTEST), _LONGEST)
    return np.array([job.scan_period for job in world.jobs])


def segment_users(world: World) -> NDArray[np.float64]:
    """(S, K) share of each segment's accesses by the node they come from."""
    here = np.zeros((len(world.cpu), world.nodes))
    here[np.arange(len(world.cpu)), world.node] = world.active
    users = world.sharing.T @ here
    total = users.sum(axis=1, keepdims=True)
    shares: NDArray[np.float64] = np.divide(users, total, out=np.zeros_like(users), where=total > 0)
    return shares


def _draw(world: World, shares: NDArray[np.float64]) -> Ints:
    """(n,) a node for each row of shares, at random by them."""
    steps = np.cumsum(shares, axis=1)
    return np.minimum((world.rng.random((len(shares), 1)) > steps).sum(axis=1), world.nodes - 1)


def follow_memory(world: World, habits: Habits, seconds: float, warm_up: float) -> None:
    """AutoNUMA's threads: to the node accessed most if that has an idle cpu, or by an exchange that gains."""
    may = world.active & (world.bound_node == FREE) & (world.bound_cpu == FREE)
    free = np.flatnonzero(may)
    asked = free[world.rng.random(len(free)) < habits.follow * seconds]
    for thread in asked.tolist():
        here, best = int(world.cpu_node[world.cpu[thread]]), int(np.argmax(world.places[thread]))
        gain = world.places[thread, best] - world.places[thread, here]
        if gain <= 0.1 or take_idle_cpu(world, thread, best, warm_up):
            continue
        there = free[world.cpu_node[world.cpu[free]] == best]
        together = gain + world.places[there, here] - world.places[there, best]
        if len(there) and together.max() > 0.1:
            exchange(world, thread, int(there[np.argmax(together)]), warm_up)
