"""What a placement should cost, beside the baselines and today's placement."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from numaplan.analyzer import PageCounts
from numaplan.machine import Machine, divided_by_caches, latencies

from ..memory.pages import PagePlan
from ..memory.traffic import first_touch_traffic, first_touches, touching_pairs
from ..plan_file.parts import CurrentPlacement, PlanThread, Predicted
from ..plan_file.touched import Touched
from ..threads.bounds import lower_bound
from ..threads.cost import costs_of, one_hot
from ..threads.methods import find_method
from ..threads.phases import phase_imbalance
from ..threads.problem import Floats, Nodes, Problem, cpu_distances, new_problem
from ..threads.sparse import SparseMatrix
from ..workload.workload import Workload
from .task import made_on

BASELINES = ("compact", "scatter")
LINE = 64  # bytes
SHARE_DIGITS = 5


def predict(problem: Problem, places: Nodes, usable: Machine, machine: Machine) -> Predicted:
    """Costs of a placement and of the baselines; loads are given for every node with cpus of `machine`."""
    distances = cpu_distances(machine)
    ids = [node.id for node in machine.cpu_nodes]
    column = np.array([ids.index(node.id) for node in usable.cpu_nodes])

    def costs(chosen: Nodes) -> Any:
        return costs_of(problem.matrix, problem.loads, distances, column[chosen])

    return Predicted(
        **msgspec.structs.asdict(costs(places)),
        lower_bound=lower_bound(problem),
        phase_imbalance=phase_imbalance(problem, places) if problem.objective == "phased" else -1.0,
        baselines={name: costs(find_method(name)(problem)) for name in BASELINES},
    )


def with_memory(
    predicted: Predicted,
    stats: PageCounts,
    pages: PagePlan,
    problem: Problem,
    usable: Machine,
    machine: Machine,
    seen_on: tuple[int, ...] = (),
) -> Predicted:
    """The same with what memory accesses will wait, and how local they are: planned, baselines, and today.

    seen_on: node of each thread in the recording, where that was on this machine; empty: not known.
    """
    ids = np.array([node.id for node in usable.cpu_nodes])
    first_touch, known = {}, first_touches(stats)
    for name in BASELINES:
        nodes = ids[find_method(name)(problem)].tolist()
        wait = mean_latency(first_touch_traffic(known, nodes, machine), machine)
        if wait >= 0:
            first_touch[name] = wait
    today = None
    usual = seen_on or tuple(ids[find_method("compact")(problem)].tolist())
    traffic = first_touch_traffic(known, usual, machine)
    if traffic is not None and traffic.any():
        today = CurrentPlacement(
            threads="recorded" if seen_on else "compact",
            local_share=local_share(traffic),
            latency_ns=mean_latency(traffic, machine),
            node_shares=node_shares(traffic),
            serving_ns=serving_time(traffic, machine),
        )
    return msgspec.structs.replace(
        predicted,
        local_share=pages.local_share,
        latency_ns=mean_latency(pages.traffic, machine),
        node_shares=node_shares(pages.traffic),
        first_touch_ns=first_touch,
        today=today,
        serving_ns=serving_time(pages.traffic, machine),
    )


def with_counted(predicted: Predicted, workload: Workload, machine: Machine) -> Predicted:
    """The same with what was local as the program was recorded, where that was counted on this machine."""
    found, today = workload.counted, predicted.today
    if found is None or today is None or not made_on(workload, machine):
        return predicted
    memory = found.memory if found.memory >= 0 else today.memory_share
    counted = msgspec.structs.replace(
        today, local_share=found.accesses, memory_share=memory, node_shares=(), counted=True
    )
    return msgspec.structs.replace(predicted, today=counted)


def with_small_blocks(predicted: Predicted, stats: PageCounts, nodes: Sequence[int]) -> Predicted:
    """The same with how much small blocks of the heap matter; nodes: (N,) of each thread."""
    if stats.small is None or stats.elsewhere is None or not stats.small.any():
        return predicted
    every = float(stats.all_accesses.sum()) + float(stats.elsewhere.sum())
    own = np.equal.outer(nodes, nodes)
    return msgspec.structs.replace(
        predicted,
        small_share=float(stats.small.sum()) / every,
        small_local=float(stats.small[own].sum() / stats.small.sum()),
    )


def with_touched(predicted: Predicted, stats: PageCounts, threads: Sequence[PlanThread]) -> Predicted:
    """The same with who uses memory that whom touched first, by process and node of the threads."""
    known = first_touches(stats)
    if known.toucher is None or not threads:
        return predicted
    pairs = touching_pairs(known, known.all_accesses, {}, len(threads))
    if known.elsewhere is not None:
        pairs += known.elsewhere
    total = float(pairs.sum())
    if total <= 0:
        return predicted
    groups = sorted({(thread.process, thread.node) for thread in threads})
    at = {group: place for place, group in enumerate(groups)}
    within = one_hot(np.array([at[thread.process, thread.node] for thread in threads]), len(groups))
    own = np.round(np.diag(pairs) @ within / total, SHARE_DIGITS)
    np.fill_diagonal(pairs, 0.0)
    others = np.round(within.T @ pairs @ within / total, SHARE_DIGITS)
    return msgspec.structs.replace(
        predicted,
        touched=tuple(
            Touched(
                process=process,
                node=node,
                own=float(own[place]),
                others=tuple((int(to), float(others[place, to])) for to in np.flatnonzero(others[place])),
            )
            for place, (process, node) in enumerate(groups)
        ),
    )


def with_caches(
    predicted: Predicted,
    comm: Floats | SparseMatrix,
    cpus: Sequence[tuple[int, ...]],
    usable: Machine,
    machine: Machine,
) -> Predicted:
    """The same with what share of the communication is between last-level caches, where nodes have several.

    cpus: (N,) that each thread may run on; on several it is taken to be on each for as long.
    """
    caches = divided_by_caches(usable, machine).machine
    count = len(caches.nodes)
    if count <= len(usable.cpu_nodes):
        return predicted
    of_cpu = caches.node_of_cpu
    on = np.zeros((len(cpus), count))
    for thread, own in enumerate(cpus):
        np.add.at(on[thread], [of_cpu[cpu] for cpu in own], 1 / len(own))
    problem = new_problem(comm, None, caches, objective="remote")
    others = {name: one_hot(find_method(name)(problem), count) for name in BASELINES}
    return msgspec.structs.replace(
        predicted,
        cache_share=_crossing(problem.matrix, on),
        cache_baselines={name: _crossing(problem.matrix, places) for name, places in others.items()},
    )


def _crossing(comm: Floats | SparseMatrix, on: Floats) -> float:
    """Share of the communication of threads that are in different places; on: (N, places) share of time."""
    if isinstance(comm, SparseMatrix):
        same = float((comm.weight * (on[comm.rows] * on[comm.to]).sum(axis=1)).sum())
    else:
        same = float(((comm @ on) * on).sum())
    total = float(comm.sum())
    return 1 - same / total if total > 0 else 0.0


def node_shares(traffic: "np.ndarray[Any, Any] | None") -> tuple[float, ...]:
    """(K,) local share of the accesses of each node's threads; -1 for a node without accesses."""
    if traffic is None:
        return ()
    made = traffic.sum(axis=1)
    return tuple((np.where(made > 0, np.diag(traffic) / np.maximum(made, 1e-300), -1.0)).tolist())


def mean_latency(traffic: Floats | None, machine: Machine) -> float:
    """Mean ns of an access; -1 where there are none or the machine has no latencies.

    traffic: (K, K) accesses from each node (row) to the memory of each (column), in the machine's order.
    """
    if traffic is None or not machine.latency_ns or not traffic.any():
        return -1.0
    return float((traffic * latencies(machine)).sum() / traffic.sum())


def serving_time(traffic: Floats | None, machine: Machine) -> float:
    """Mean ns an access in which the busiest memory hands out its cache lines; -1 as `mean_latency`.

    Threads that wait for nothing else can be no faster than that: each memory takes, for each node, the
    node's accesses times a line over the bandwidth between the two.
    """
    if traffic is None or not machine.bandwidth_mb_s or not traffic.any():
        return -1.0
    bandwidth = np.asarray(machine.bandwidth_mb_s, np.float64)
    if (bandwidth[traffic > 0] <= 0).any():
        return -1.0
    each = np.divide(traffic * LINE * 1e3, bandwidth, out=np.zeros_like(bandwidth), where=traffic > 0)
    return float(each.sum(axis=0).max() / traffic.sum())


def local_share(traffic: Floats | None) -> float:
    """Share of accesses to memory of their own node; -1 where there are none."""
    if traffic is None or not traffic.any():
        return -1.0
    return float(np.trace(traffic) / traffic.sum())
