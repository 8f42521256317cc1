"""Where a plan's pools of threads are, in words: on nodes, or on some of their last-level caches."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec import UNSET

from numaplan.machine import divided_by_caches

from .parts import PlanThread
from .plan import Plan

Cpus = frozenset[int]


def pool_lines(plan: Plan) -> list[str]:
    """A line for each pool, in order."""
    pools: dict[int, list[PlanThread]] = defaultdict(list)
    for thread in plan.threads:
        if thread.pool is not UNSET:
            pools[thread.pool].append(thread)
    if not pools:
        return []
    machine = plan.machine.machine()
    divided, rows = divided_by_caches(machine, machine)
    caches: dict[int, list[Cpus]] = defaultdict(list)  # by node
    for cache, row in zip(divided.nodes, rows.tolist(), strict=True):
        caches[machine.node_ids[row]].append(frozenset(cache.cpus))
    return [
        f"  pool {number} of {len(own)} threads: {_where([frozenset(one.cpus) for one in own], caches)}"
        for number, own in sorted(pools.items())
    ]


def _where(threads: Sequence[Cpus], caches: Mapping[int, Sequence[Cpus]]) -> str:
    """threads: cpus of each; caches: of each node."""
    every = frozenset[int]().union(*threads)
    nodes = [node for node, own in caches.items() if any(every & cache for cache in own)]
    used = [cache for node in nodes for cache in caches[node] if every & cache]
    where = f"nodes {', '.join(map(str, nodes))}" if len(nodes) > 1 else f"node {nodes[0]}"
    of_nodes = all(_of_nodes(cpus, caches) for cpus in set(threads))
    if not of_nodes:
        where = f"{len(used)} L3 cache{'s' * (len(used) > 1)} of {where}"
    return f"each all cpus of one of {where}" if len(set(threads)) > 1 else f"all cpus of {where}"


def _of_nodes(cpus: Cpus, caches: Mapping[int, Sequence[Cpus]]) -> bool:
    """Whether they are of all caches of the nodes that they are of."""
    return all(
        all(cpus & cache for cache in own) for own in caches.values() if any(cpus & cache for cache in own)
    )
