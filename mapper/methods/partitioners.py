"""Graph partitioners of others, where their packages are installed; seats are made exact afterwards.

They balance numbers of threads, not loads, and know no distances. Weights become whole numbers up to 10^6, as
these programs want them.
"""

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from numaplan.common import MachineLacksError
from numaplan.mapper.problem import Floats, Nodes, Problem

_SCALE = 1_000_000


def metis(problem: Problem) -> Nodes:
    """METIS, recursive bisection (Karypis and Kumar)."""
    pymetis = _package("pymetis")
    start, ends, weights = _edges(problem.comm)
    shares = (problem.sizes / problem.threads).tolist()
    _, parts = pymetis.part_graph(
        problem.nodes, xadj=start, adjncy=ends, eweights=weights, tpwgts=shares, recursive=True,
        options=pymetis.Options(seed=problem.seed % (1 << 31)),
    )  # fmt: skip
    return repair(problem, np.array(parts, dtype=np.int64))


def kahip(problem: Problem) -> Nodes:
    """KaHIP's kaffpa, preset eco (Sanders and Schulz); with 3 % slack, as with none it may not end."""
    kaffpa = _package("kahip")
    start, ends, weights = _edges(problem.comm)
    ones = [1] * problem.threads
    _, parts = kaffpa.kaffpa(
        ones, start, weights, ends, problem.nodes, 0.03, True, problem.seed % (1 << 31), 1
    )  # fmt: skip
    return repair(problem, np.array(parts, dtype=np.int64))


def mtkahypar(problem: Problem) -> Nodes:
    """Mt-KaHyPar, preset default (Gottesbüren et al.)."""
    library = _package("mtkahypar")
    initializer = _started(library)
    context = initializer.context_from_preset(library.PresetType.DEFAULT)
    context.set_partitioning_parameters(problem.nodes, 0.0, library.Objective.CUT)
    context.set_individual_target_block_weights(problem.sizes.tolist())
    context.logging = False
    library.set_seed(problem.seed % (1 << 31))
    rows, columns = np.nonzero(np.triu(problem.comm))
    edges = list(zip(rows.tolist(), columns.tolist(), strict=True))
    weights = _whole(problem.comm[rows, columns], problem.comm)
    graph = initializer.create_graph(
        context, problem.threads, len(edges), edges, [1] * problem.threads, weights
    )
    cut = graph.partition(context)
    return repair(problem, np.array([cut.block_id(i) for i in range(problem.threads)], dtype=np.int64))


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


def _whole(values: Floats, comm: Floats) -> list[int]:
    whole = np.maximum(1, np.rint(values / comm.max(initial=1e-300) * _SCALE)).astype(np.int64)
    return [int(value) for value in whole.tolist()]


def _edges(comm: Floats) -> tuple[list[int], list[int], list[int]]:
    """Adjacency as these programs take it: where each thread's list starts, the other ends, the weights."""
    rows, columns = np.nonzero(comm)
    start = np.searchsorted(rows, np.arange(len(comm) + 1))
    return start.tolist(), columns.tolist(), _whole(comm[rows, columns], comm)


def repair(problem: Problem, places: Nodes) -> Nodes:
    """Move threads from nodes with too many to nodes with too few, each time the move that costs least."""
    counts = np.bincount(places, minlength=problem.nodes)
    talk = np.zeros((problem.threads, problem.nodes))
    np.add.at(talk.T, places, problem.comm)
    while (counts > problem.sizes).any():
        over, under = counts[places] > problem.sizes[places], np.flatnonzero(counts < problem.sizes)
        loss = talk[np.arange(problem.threads), places][:, None] - talk[:, under]
        loss[~over] = np.inf
        thread, column = np.unravel_index(int(np.argmin(loss)), loss.shape)
        source, target = places[thread], under[column]
        talk[:, source] -= problem.comm[:, thread]
        talk[:, target] += problem.comm[:, thread]
        counts[source] -= 1
        counts[target] += 1
        places[thread] = target
    return places
