"""Other projects' graph partitioners, where their packages are installed; seats are made exact afterwards.

They balance numbers of threads, not loads, and ignore distances. Weights become whole numbers up to 10^6, as
these programs want them.
"""

from contextlib import redirect_stderr
from functools import cache
from importlib import import_module
from io import StringIO
from typing import Any

import numpy as np

from numaplan.common import MachineLacksError

from ..cost import thread_traffic
from ..problem import Floats, Nodes, Problem
from ..sparse import by_entries

_SCALE = 1_000_000


def metis(problem: Problem) -> Nodes:
    """METIS, recursive bisection (Karypis and Kumar)."""
    pymetis = _package("pymetis")
    nodes = _used(problem)
    edges = by_entries(problem.matrix)
    shares = (problem.sizes[nodes] / problem.threads).tolist()
    adjacency = pymetis.CSRAdjacency(edges.start, edges.to.astype(np.int64))
    _, parts = pymetis.part_graph(
        len(nodes), adjacency, eweights=_whole(edges.weight), tpwgts=shares, recursive=True,
        options=pymetis.Options(seed=problem.seed % (1 << 31)),
    )  # fmt: skip
    return repair(problem, nodes[np.array(parts, dtype=np.int64)])


def kahip(problem: Problem) -> Nodes:
    """KaHIP's kaffpa, preset eco (Sanders and Schulz); with 3 % slack, as with none it may not end."""
    kaffpa = _package("kahip")
    nodes, edges = _used(problem), by_entries(problem.matrix)
    ones = [1] * problem.threads
    _, parts = kaffpa.kaffpa(
        ones, edges.start.tolist(), _whole(edges.weight).tolist(), edges.to.tolist(), len(nodes), 0.03, True,
        problem.seed % (1 << 31), 1,
    )  # fmt: skip
    return repair(problem, nodes[np.array(parts, dtype=np.int64)])


def mtkahypar(problem: Problem) -> Nodes:
    """Mt-KaHyPar, preset default (Gottesbüren et al.)."""
    library = _package("mtkahypar")
    nodes, edges = _used(problem), by_entries(problem.matrix)
    initializer = _started(library)
    context = initializer.context_from_preset(library.PresetType.DEFAULT)
    context.set_partitioning_parameters(len(nodes), 0.0, library.Objective.CUT)
    context.set_individual_target_block_weights(problem.sizes[nodes].tolist())
    context.logging = False
    library.set_seed(problem.seed % (1 << 31))
    upper = edges.rows < edges.to
    pairs = list(zip(edges.rows[upper].tolist(), edges.to[upper].tolist(), strict=True))
    weights = _whole(edges.weight)[upper].tolist()
    ones = [1] * problem.threads
    graph = initializer.create_graph(context, problem.threads, len(pairs), pairs, ones, weights)
    cut = graph.partition(context)
    blocks = np.array([cut.block_id(i) for i in range(problem.threads)], dtype=np.int64)
    return repair(problem, nodes[blocks])


def scotch(problem: Problem) -> Nodes:
    """SCOTCH, default strategy (Pellegrini); parts of equal size, made the nodes' sizes afterwards."""
    with redirect_stderr(StringIO()):  # it announces there that it was loaded, at the first use of Graph
        new_graph = _package("pyscotch").Graph
    nodes, edges = _used(problem), by_entries(problem.matrix)
    if len(nodes) == 1:
        return repair(problem, np.repeat(nodes, problem.threads))
    with new_graph() as graph:
        graph.build(edges.start, edges.to.astype(np.int64), edlotab=_whole(edges.weight))
        parts = graph.partition(len(nodes))
    return repair(problem, nodes[np.asarray(parts, dtype=np.int64)])


def _used(problem: Problem) -> Nodes:
    """Nodes that get threads: these programs take no empty parts."""
    return np.flatnonzero(problem.sizes > 0)


@cache
def _started(library: Any) -> Any:
    """The library's one initializer: it may be made only once in a process."""
    return library.initialize(1)  # a thread, as all other methods have


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MachineLacksError(
            f"the package {name} cannot be imported: {error}", f"install it: pip install {name}"
        ) from error


def _whole(values: Floats) -> Nodes:
    whole: Nodes = np.maximum(1, np.rint(values / values.max(initial=1e-300) * _SCALE)).astype(np.int64)
    return whole


def repair(problem: Problem, places: Nodes) -> Nodes:
    """Move threads from nodes with too many to nodes with too few, each time the move that costs least."""
    counts, entries = np.bincount(places, minlength=problem.nodes), by_entries(problem.matrix)
    talk = thread_traffic(entries, places, problem.nodes)
    while (counts > problem.sizes).any():
        over, under = counts[places] > problem.sizes[places], np.flatnonzero(counts < problem.sizes)
        loss = talk[np.arange(problem.threads), places][:, None] - talk[:, under]
        loss[~over] = np.inf
        thread, column = np.unravel_index(int(np.argmin(loss)), loss.shape)
        source, target = places[thread], under[column]
        row = slice(*entries.start[thread : thread + 2])
        talk[entries.to[row], source] -= entries.weight[row]
        talk[entries.to[row], target] += entries.weight[row]
        counts[source] -= 1
        counts[target] += 1
        places[thread] = target
    return places
