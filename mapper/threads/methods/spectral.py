"""Spectral bisection: split along the Laplacian's second eigenvector, halves again, at exact seats.

Source: [PSL]. O(N^3) for dense matrices.
"""

import numpy as np

from ..problem import Floats, Nodes, Problem


def spectral(problem: Problem) -> Nodes:
    """Nodes by recursive spectral bisection."""
    places = np.empty(problem.threads, dtype=np.int64)
    largest = float(problem.comm.max())
    weights = problem.comm / largest if largest > 0 else problem.comm
    _split(weights, np.arange(problem.threads), problem.sizes, 0, places)
    return places


def _split(weights: Floats, threads: Nodes, sizes: Nodes, first: int, places: Nodes) -> None:
    """Give threads to the nodes from `first` on, of these sizes."""
    if len(sizes) == 1:
        places[threads] = first
        return
    middle = len(sizes) // 2
    cut = int(sizes[:middle].sum())
    if 0 < cut < len(threads):
        threads = threads[np.argsort(_second_vector(weights[np.ix_(threads, threads)]), kind="stable")]
    _split(weights, threads[:cut], sizes[:middle], first, places)
    _split(weights, threads[cut:], sizes[middle:], first + middle, places)


def _second_vector(weights: Floats) -> Floats:
    laplacian = np.diag(weights.sum(axis=1)) - weights
    vector: Floats = np.linalg.eigh(laplacian)[1][:, 1]
    return vector * (1.0 if vector[np.argmax(np.abs(vector))] > 0 else -1.0)
