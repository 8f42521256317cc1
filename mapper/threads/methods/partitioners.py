"""Graph partitioners of others, where their packages are installed; seats are made exact afterwards.

They balance numbers of threads, not loads, and know no distances. Weights become whole numbers up to 10^6, as
these programs want them.
"""

from contextlib import redirect_stderr
from functools import cache
from importlib import import_module
from io import StringIO
from typing import Any, NamedTuple

import numpy as np

from numaplan.common import MachineLacksError

from ..problem import Floats, Nodes, Problem

_SCALE = 1_000_000


def metis(problem: Problem) -> Nodes:
    """METIS, recursive bisection (Karypis and Kumar)."""
    pymetis = _package("pymetis")
    nodes = _used(problem)
    edges = _edges(problem)
    shares = (problem.sizes[nodes] / problem.threads).tolist()
    adjacency = pymetis.CSRAdjacency(edges.start, edges.ends)
    _, parts = pymetis.part_graph(
        len(nodes), adjacency, eweights=edges.weights, tpwgts=shares, recursive=True,
        options=pymetis.Options(seed=problem.seed % (1 << 31)),
    )  # fmt: skip
    return repair(problem, nodes[np.array(parts, dtype=np.int64)])


def kahip(problem: Problem) -> Nodes:
    """KaHIP's kaffpa, preset eco (Sanders and Schulz); with 3 % slack, as with none it may not end."""
    kaffpa = _package("kahip")
    nodes, edges = _used(problem), _edges(problem)
    ones = [1] * problem.threads
    _, parts = kaffpa.kaffpa(
        ones, edges.start.tolist(), edges.weights.tolist(), edges.ends.tolist(), len(nodes), 0.03, True,
        problem.seed % (1 << 31), 1,
    )  # fmt: skip
    return repair(problem, nodes[np.array(parts, dtype=np.int64)])


def mtkahypar(problem: Problem) -> Nodes:
    """Mt-KaHyPar, preset default (Gottesbüren et al.)."""
    library = _package("mtkahypar")
    nodes, edges = _used(problem), _edges(problem)
    initializer = _started(library)
    context = initializer.context_from_preset(library.PresetType.DEFAULT)
    context.set_partitioning_parameters(len(nodes), 0.0, library.Objective.CUT)
    context.set_individual_target_block_weights(problem.sizes[nodes].tolist())
    context.logging = False
    library.set_seed(problem.seed % (1 << 31))
    upper = edges.rows < edges.ends
    pairs = list(zip(edges.rows[upper].tolist(), edges.ends[upper].tolist(), strict=True))
    weights = edges.weights[upper].tolist()
    ones = [1] * problem.threads
    graph = initializer.create_graph(context, problem.threads, len(pairs), pairs, ones, weights)
    cut = graph.partition(context)
    blocks = np.array([cut.block_id(i) for i in range(problem.threads)], dtype=np.int64)
    return repair(problem, nodes[blocks])


def scotch(problem: Problem) -> Nodes:
    """SCOTCH, default strategy (Pellegrini); parts of equal size, made the nodes' sizes afterwards."""
    with redirect_stderr(StringIO()):  # it announces there that it was loaded, at the first use of Graph
        new_graph = _package("pyscotch").Graph
    nodes, edges = _used(problem), _edges(problem)
    if len(nodes) == 1:
        return repair(problem, np.repeat(nodes, problem.threads))
    with new_graph() as graph:
        graph.build(edges.start, edges.ends, edlotab=edges.weights)
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


class _Edges(NamedTuple):
    """Adjacency as these programs take it: where each thread's list starts, both ends, whole weights."""

    start: Nodes
    rows: Nodes
    ends: Nodes
    weights: Nodes


def _edges(problem: Problem) -> _Edges:
    if problem.sparse is not None:
        entries = problem.sparse
        return _Edges(entries.start, entries.rows, entries.to.astype(np.int64), _whole(entries.weight))
    rows, ends = np.nonzero(problem.comm)
    start = np.searchsorted(rows, np.arange(problem.threads + 1))
    return _Edges(start, rows, ends, _whole(problem.comm[rows, ends]))


def _whole(values: Floats) -> Nodes:
    whole: Nodes = np.maximum(1, np.rint(values / values.max(initial=1e-300) * _SCALE)).astype(np.int64)
    return whole


def repair(problem: Problem, places: Nodes) -> Nodes:
    """Move threads from nodes with too many to nodes with too few, each time the move that costs least."""
    counts = np.bincount(places, minlength=problem.nodes)
    talk = _talk(problem, places)
    while (counts > problem.sizes).any():
        over, under = counts[places] > problem.sizes[places], np.flatnonzero(counts < problem.sizes)
        loss = talk[np.arange(problem.threads), places][:, None] - talk[:, under]
        loss[~over] = np.inf
        thread, column = np.unravel_index(int(np.argmin(loss)), loss.shape)
        source, target = places[thread], under[column]
        _move(problem, talk, int(thread), source, target)
        counts[source] -= 1
        counts[target] += 1
        places[thread] = target
    return places


def _talk(problem: Problem, places: Nodes) -> Floats:
    """(N, K) what each thread says to each node."""
    talk = np.zeros((problem.threads, problem.nodes))
    if problem.sparse is not None:
        np.add.at(talk, (problem.sparse.rows, places[problem.sparse.to]), problem.sparse.weight)
    else:
        np.add.at(talk.T, places, problem.comm)
    return talk


def _move(problem: Problem, talk: Floats, thread: int, source: int, target: int) -> None:
    """Keep `talk` right when a thread moves."""
    partners: slice | Nodes = slice(None)
    if problem.sparse is not None:
        row = slice(problem.sparse.start[thread], problem.sparse.start[thread + 1])
        partners, said = problem.sparse.to[row].astype(np.int64), problem.sparse.weight[row]
    else:
        said = problem.comm[thread]
    talk[partners, source] -= said
    talk[partners, target] += said
