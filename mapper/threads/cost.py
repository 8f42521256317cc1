"""What a placement costs ([CMLB], Eq. 6-9)."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from numaplan.common import UsageError
from numaplan.machine import Machine

from ..plan_file.parts import Metrics
from .inputs import check_loads, check_matrix
from .problem import Floats, Nodes, Problem, cpu_distances
from .sparse import SparseMatrix


def evaluate(
    comm: ArrayLike, loads: ArrayLike | None, machine: Machine | str | dict[str, Any], nodes: ArrayLike
) -> Metrics:
    """Costs of placing thread i on the node with id nodes[i].

    comm: (N, N); loads: (N,); nodes: (N,) ids of nodes that have cpus. Raises UsageError for input that
    map_threads would refuse, or a node that is not there.
    """
    matrix = check_matrix(comm)
    load = check_loads(loads, len(matrix))
    target = as_machine(machine)
    places = node_indices(target, nodes, len(matrix))
    return costs_of(matrix, load, cpu_distances(target), places)


def as_machine(machine: Machine | str | dict[str, Any]) -> Machine:
    """The machine, however it was given: itself, its dict form, or what Machine.load takes."""
    if isinstance(machine, str):
        return Machine.load(machine)
    return Machine.from_dict(machine) if isinstance(machine, dict) else machine


def node_indices(machine: Machine, nodes: ArrayLike, threads: int) -> Nodes:
    """(N,) positions among the machine's nodes with cpus of node ids; raises UsageError for others."""
    ids = np.asarray(nodes)
    if ids.shape != (threads,):
        raise UsageError(f"{ids.size} nodes for {threads} threads", "give one node per thread")
    index = {node.id: position for position, node in enumerate(machine.cpu_nodes)}
    for thread, node in enumerate(ids.tolist()):
        if node not in index:
            raise UsageError(f"thread {thread}: no node {node} with cpus on this machine", "correct the node")
    return np.array([index[node] for node in ids.tolist()], dtype=np.int64)


def node_traffic(matrix: Floats | SparseMatrix, places: Nodes, count: int) -> Floats:
    """(K, K) communication between nodes, both directions summed; the diagonal holds local pairs twice."""
    if isinstance(matrix, SparseMatrix):
        cells = places[matrix.rows] * count + places[matrix.to]
        return _sums(cells, matrix.weight, count * count).reshape(count, count)
    seated = one_hot(places, count)
    return seated.T @ (matrix @ seated)


def thread_traffic(matrix: Floats | SparseMatrix, places: Nodes, count: int) -> Floats:
    """(N, K) communication of each thread with all those on each node."""
    if isinstance(matrix, SparseMatrix):
        cells = matrix.rows * count + places[matrix.to]
        return _sums(cells, matrix.weight, len(places) * count).reshape(-1, count)
    return matrix @ one_hot(places, count)


def _sums(cells: Nodes, weights: Floats, count: int) -> Floats:
    return np.bincount(cells, weights, count).astype(np.float64)


def one_hot(places: Nodes, count: int) -> Floats:
    """(N, K) 1 where each thread is, 0 elsewhere."""
    seated = np.zeros((len(places), count))
    seated[np.arange(len(places)), places] = 1.0
    return seated


def costs_of(matrix: Floats | SparseMatrix, load: Floats, distances: Floats, places: Nodes) -> Metrics:
    """Metrics of checked input; places: (N,) positions in 0..K-1, distances: (K, K)."""
    count = len(distances)
    traffic = node_traffic(matrix, places, count)
    # Off-diagonal entries are added up, not subtracted from the total: remote may be tiny beside local.
    between = traffic * (1.0 - np.eye(count))
    remote = float(between.sum()) / 2
    total = float(traffic.sum()) / 2
    sums = np.bincount(places, weights=load, minlength=count)
    threads = np.bincount(places, minlength=count)
    return Metrics(
        remote_comm=remote,
        remote_share=remote / total if total > 0 else 0.0,
        hop_cost=float((traffic * distances).sum()) / 2,
        load_std=_deviation(sums),
        load_std_mean=_deviation(sums / np.maximum(threads, 1)),
        node_loads=tuple(sums.tolist()),
    )


def _deviation(values: NDArray[Any]) -> float:
    """Population deviation; of values whose squares are no numbers any more, too."""
    unit = float(values.max(initial=0.0)) or 1.0
    return float((values / unit).std()) * unit


def objective_value(problem: Problem, places: Nodes) -> float:
    """What the problem's objective asks to be small: hop cost, or communication between nodes."""
    traffic = node_traffic(problem.matrix, places, problem.nodes)
    return float((traffic * problem.costs).sum()) / 2


def imbalance(problem: Problem, places: Nodes) -> float:
    """The largest relative deviation of a node's load from its target (0 when nothing is loaded)."""
    return load_deviation(problem.loads, problem.targets, places)


def load_deviation(loads: Floats, targets: Floats, places: Nodes) -> float:
    """The same of any loads (N,) and targets (K,)."""
    sums = np.bincount(places, weights=loads, minlength=len(targets))
    deviations = np.abs(sums - targets)[targets > 0] / targets[targets > 0]
    return float(deviations.max(initial=0.0))
