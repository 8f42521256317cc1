"""Ranks on hosts: by the solver, and never worse than as launchers place them."""

from collections.abc import Mapping

import msgspec
import numpy as np

from numaplan.common import UsageError
from numaplan.machine import Cluster

from ..threads.problem import Floats, Nodes, Problem
from ..threads.solver import solve
from ..threads.sparse import SparseMatrix
from .rank_graph import RankGraph

RANK_ORDER, ROUND_ROBIN, SOLVED = "rank order", "round robin", "solved"
MOST_RANKS = 1 << 16


class RankPlacement(msgspec.Struct, frozen=True):
    """places: (R,) position of each rank's host; name: what it is; between: bytes from host to host by name
    of what was tried, hops: the same times the hops; crowded: hosts that have more threads than cpus."""

    name: str
    places: Nodes
    between: dict[str, float]
    hops: dict[str, float]
    crowded: int = 0


def place_ranks(
    graph: RankGraph, cluster: Cluster, *, seed: int = 0, effort: str = "normal"
) -> RankPlacement:
    """The placement with the fewest bytes times hops, of those with no more bytes between hosts than in rank
    order; raises UsageError where ranks outnumber slots."""
    count = len(graph.ranks)
    if count > cluster.slots:
        hosts = f"{len(cluster.hosts)} hosts" if len(cluster.hosts) > 1 else "one host"
        raise UsageError(
            f"{count} ranks for {cluster.slots} slot{'s' * (cluster.slots != 1)} on {hosts}",
            "add hosts, or give them more slots",
        )
    slots = _seats(graph, cluster)
    tried = {RANK_ORDER: np.repeat(np.arange(len(slots)), slots)[:count], ROUND_ROBIN: _dealt(count, slots)}
    distances = cluster.distance_matrix
    if graph.bytes.any() and len(slots) > 1:
        for name, start in list(tried.items()):
            tried[SOLVED if name == RANK_ORDER else f"{SOLVED} from {name}"] = _solved(
                graph.bytes, start, distances, seed, effort
            )
    apart = 1.0 - np.eye(len(slots))
    between = {name: cost(graph.bytes, places, apart) for name, places in tried.items()}
    hops = {name: cost(graph.bytes, places, distances) for name, places in tried.items()}
    allowed = [name for name in tried if between[name] <= between[RANK_ORDER]]
    best = min(allowed, key=lambda name: (hops[name], between[name]))
    return RankPlacement(best, tried[best], between, hops, _crowded(graph, cluster, tried[best]))


def _seats(graph: RankGraph, cluster: Cluster) -> Nodes:
    """(H,) ranks that each host takes: its slots, and no more than have cpus where there are enough hosts."""
    slots = np.array([host.slots for host in cluster.hosts])
    each = int(np.ceil(graph.threads.mean()))
    cpus = np.array([len(host.machine.cpus) for host in cluster.hosts])
    roomy = np.minimum(slots, np.maximum(1, cpus // each))
    return roomy if roomy.sum() >= len(graph.ranks) else slots


def _dealt(count: int, slots: Nodes) -> Nodes:
    """One rank on each host in turn, as long as it has slots."""
    turn = np.concatenate([np.arange(size) for size in slots.tolist()])
    host = np.repeat(np.arange(len(slots)), slots)
    return host[np.lexsort((host, turn))][:count]


def _solved(matrix: SparseMatrix, start: Nodes, distances: Floats, seed: int, effort: str) -> Nodes:
    """From a placement on: ranks change places, each host keeps as many."""
    used = np.flatnonzero(np.bincount(start, minlength=len(distances)))
    position = np.full(len(distances), -1)
    position[used] = np.arange(len(used))
    places = position[start]
    if len(used) < 2:
        return start
    sizes = np.bincount(places)
    whole = len(matrix) <= _WHOLE
    problem = Problem(
        comm=matrix.part(np.arange(len(matrix))) if whole else np.zeros((0, 0)),
        sparse=None if whole else matrix,
        loads=np.ones(len(matrix)),
        sizes=sizes,
        distances=distances[np.ix_(used, used)],
        targets=sizes.astype(np.float64),
        objective="hop",
        seed=seed,
        effort=effort,
        starts=(places,),
    )
    found: Nodes = used[solve(problem, places[None, :]).places]
    return found


_WHOLE = 256  # ranks up to which the matrix is given as a whole


def cost(matrix: SparseMatrix, places: Nodes, distances: Floats) -> float:
    """Bytes of a symmetric matrix times the distance of the hosts that they go between, each pair once."""
    return float((matrix.weight * distances[places[matrix.rows], places[matrix.to]]).sum()) / 2


def _crowded(graph: RankGraph, cluster: Cluster, places: Nodes) -> int:
    threads = np.bincount(places, graph.threads, len(cluster.hosts))
    return int(
        sum(found > len(host.machine.cpus) for found, host in zip(threads, cluster.hosts, strict=True))
    )


def by_host(graph: RankGraph, cluster: Cluster, placement: RankPlacement) -> Mapping[str, tuple[int, ...]]:
    """The ranks of each host that has any, in the cluster's order."""
    lists: dict[str, list[int]] = {}
    for host, place in enumerate(cluster.hosts):
        found = np.flatnonzero(placement.places == host)
        if len(found):
            lists[place.name] = [graph.ranks[one] for one in found.tolist()]
    return {name: tuple(ranks) for name, ranks in lists.items()}
