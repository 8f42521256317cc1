"""Threads that do what comes next, wherever the memory of that is: a pool, work stealing, servers."""

import re
from collections.abc import Collection, Sequence

import numpy as np

from numaplan.analyzer import Advice
from numaplan.machine import OVERLAP, format_list, latencies, mean_transfers

from ..planning.cost.placement import Placement
from ..planning.cost.unplanned import alone
from ..planning.search.candidates import nearest
from ..planning.shares import on_nodes
from ..threads.problem import Floats, Nodes
from .replicas import read_by_all, without
from .situation import WORTH, Situation

MOST_NAMES = 4
# What gives tasks an affinity, by the library that the program uses.
AFFINITY = {
    r"libtbb\b": "a tbb::task_arena for each node (constraints::numa_id), with a tbb::affinity_partitioner",
    r"libgomp\b": "schedule(static) where tasks are as long as each other, else a team for each node",
    r"libi?omp[0-9]*\b": "the clause affinity(…) on each task, with OMP_PROC_BIND=close",
}
GO = "one process for each node: numactl --cpunodebind=N --membind=N, and GOMAXPROCS as its cpus"
ANY = "a team of threads and a queue for each node, and each task into the queue of its memory's node"


def pooled(situation: Situation) -> list[Advice]:
    """For each pool that waits for what is on other nodes: nodes fewer, or tasks with an affinity."""
    pools = situation.task.pools
    if not pools:
        return []
    # What all read alike has no place that a task could go to.
    task = situation.task
    own = alone(task.with_misses(without(task.pages.recorded, read_by_all(situation)))).traffic
    found = [_few_nodes(situation)]
    found += [_affinity(situation, pool, own) for pool in pools]
    return [one for one in found if one is not None]


def _few_nodes(situation: Situation) -> Advice | None:
    """The whole program on as few nodes as hold what runs at a time."""
    task, places = situation.task, situation.task.domains.machine
    seats = np.array([len(node.cpus) for node in places.nodes])
    for size in range(1, len(seats)):
        near = nearest(task.problem.distances, seats, size)
        if seats[near].sum() < task.running:
            continue
        nodes = sorted(set(task.ids[near].tolist()))
        if len(nodes) == len(task.machine.cpu_nodes):
            return None
        near = np.flatnonzero(np.isin(task.ids, nodes))
        instead = _held(situation, near)
        if not situation.gain(instead):
            return None
        count = sum(len(pool) for pool in task.pools)
        hold = "these nodes have" if len(nodes) > 1 else "this node has"
        return situation.advice(
            "pool",
            instead,
            task,
            action=f"keep its pool of threads on {len(nodes)} node{'s' * (len(nodes) > 1)}",
            evidence=f"{count} threads do whatever comes next, and {task.running:.0f} run at a time: "
            f"{hold} cpus for them",
            change=f"numactl --cpunodebind={format_list(nodes)} {situation.command}",
        )
    return None


def _held(situation: Situation, near: Nodes) -> Placement:
    """Threads free within these places, and memory where it is touched first."""
    task = situation.task
    seats = [len(task.domains.machine.nodes[place].cpus) for place in near.tolist()]
    turns = np.repeat(near, seats)
    places = turns[np.arange(task.problem.threads) % len(turns)]
    return task.first_touched("few nodes", task.cpus.spread(places))


def _affinity(situation: Situation, pool: Nodes, own: Floats) -> Advice | None:
    """Tasks that come back to where their memory is; what that gains depends on the program's tasks.

    own: (N, K) accesses to memory that a task may have for itself."""
    most, remote = _waiting(situation, pool, own[pool])
    if most <= WORTH * situation.task.busy_ns(situation.usual):
        return None
    bound = min(most / situation.usual.cost.total_ns, 1.0)
    names = _names(situation, pool)
    return Advice(
        kind="pool",
        action=f"let tasks of the pool of {len(pool)} threads go to where their memory is",
        evidence=f"threads {names} each use what another of them used before; {remote:.0%} of what they take "
        f"from memory is on other nodes. At most {bound:.0%} of the waiting is due to that",
        change=_change(situation),
        gain_ns=None,
        gain=None,
    )


def _waiting(situation: Situation, pool: Nodes, traffic: Floats) -> tuple[float, float]:
    """ns that a pool waits for other nodes' memory and caches longer than for its own; and the share of its
    accesses to memory (threads of the pool, K), that is remote."""
    task, usual = situation.task, situation.usual
    on, machine = on_nodes(task, usual)[pool], task.machine
    every = latencies(machine)
    longer = every - np.diag(every)[:, None]
    local, total = float((on * traffic).sum()), float(traffic.sum())
    waited = float((on[:, :, None] * longer[None] * traffic[:, None, :]).sum()) / OVERLAP
    between = mean_transfers(machine, [node.cpus for node in machine.cpu_nodes])
    within, count = float(np.diag(between).mean()), len(between)
    apart = float(between.sum() - np.trace(between)) / max(count * (count - 1), 1)
    lines, near = (float(matrix[np.ix_(pool, pool)].sum()) for matrix in (task.use.lines, task.use.near))
    waited += max(lines * apart - near * within, 0.0) * (1 - 1 / count)
    return waited, 1 - local / total if total > 0 else 0.0


def _names(situation: Situation, pool: Nodes) -> str:
    rows = np.flatnonzero(np.isin(situation.lane, pool))
    names: Sequence[str] = [situation.names[row] for row in rows.tolist()]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _change(situation: Situation) -> str:
    if situation.trace.meta.get("runtime") == "go":
        return GO
    return affinity({row.name for row in situation.trace.region_rows})


def affinity(regions: Collection[str]) -> str:
    """What gives tasks an affinity in a program with such regions: those of its libraries among them."""
    return next((what for name, what in AFFINITY.items() if any(map(re.compile(name).match, regions))), ANY)
