"""How local a placement's accesses are expected to be, and between which nodes they go."""

import numpy as np

from ..threads.cost import one_hot
from ..threads.problem import Floats
from .cost.placement import Placement
from .cost.timed_task import TimedTask
from .cost.unplanned import near_memory
from .predict import local_share, node_shares


def local_shares(task: TimedTask, chosen: Placement) -> tuple[float, float]:
    """Share of all accesses to memory of the thread's own node, and of those that count; -1: none."""
    on = on_nodes(task, chosen).T
    return local_share(on @ _all_traffic(task, chosen)), local_share(on @ chosen.traffic)


def shares_by_node(task: TimedTask, chosen: Placement) -> tuple[float, ...]:
    """(K,) share of all accesses of each node's threads to its own memory; -1 where there are none."""
    return node_shares(on_nodes(task, chosen).T @ _all_traffic(task, chosen))


def between_nodes(task: TimedTask, chosen: Placement) -> Floats:
    """(K, K) expected accesses that count, from each node to memory of each."""
    answer: Floats = on_nodes(task, chosen).T @ chosen.traffic
    return answer


def _all_traffic(task: TimedTask, chosen: Placement) -> Floats:
    """(N, K) accesses of any kind of each thread to memory of each node."""
    if chosen.moved:
        return task.pages.kernel_traffic(task.rows[chosen.places], len(task.machine.nodes), every=True)
    return task.traffic(chosen.places, chosen.pages, roams=chosen.roams, every=True)


def on_nodes(task: TimedTask, chosen: Placement) -> Floats:
    """(N, K) share of its time that each thread is on each node, its memory with it or not."""
    here = one_hot(task.rows[chosen.places], len(task.machine.nodes))
    if chosen.bound:
        return here
    sizes, near = np.array([len(node.cpus) for node in task.usable.nodes]), near_memory(task)
    answer: Floats = near * here + (1 - near) * sizes / sizes.sum()
    return answer
