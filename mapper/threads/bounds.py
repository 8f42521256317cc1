"""How good a placement can be at all: lower bounds, so that a plan can say how far from optimal it may be."""

import numpy as np

from .problem import PRICED, Floats, Problem
from .sparse import SparseMatrix

SPECTRAL_LIMIT = 512  # threads; the eigenvalues of a dense matrix take O(N^3)


def lower_bound(problem: Problem) -> float:
    """No placement with the problem's seats costs less in its objective.

    The greater of two bounds on the communication between nodes, priced at the least distance for `hop`:
    what each thread must leave outside when it keeps its strongest partners, and for equal nodes the sum of
    the smallest eigenvalues of the Laplacian ([DH]). Balance is not used.
    """
    remote = max(_degree_bound(problem), _spectral_bound(problem))
    if problem.objective not in PRICED:
        return remote
    local = float(np.diag(problem.costs).min())
    apart = problem.costs[~np.eye(problem.nodes, dtype=bool)]
    total = float(problem.matrix.sum()) / 2
    if not apart.size:
        return total * local
    return local * total + max(0.0, float(apart.min()) - local) * remote if apart.min() >= local else 0.0


def _degree_bound(problem: Problem) -> float:
    """Each thread keeps at most its size-1 strongest partners on its node."""
    partners = int(problem.sizes.max()) - 1
    if partners >= problem.threads - 1:
        return 0.0
    if problem.sparse is not None:
        return _weakest_entries(problem.sparse, partners)
    cut = problem.threads - partners
    # The weakest N - partners entries of each row stay outside (one of them is the diagonal's zero).
    return float(np.partition(problem.comm, cut - 1, axis=1)[:, :cut].sum()) / 2


def _weakest_entries(entries: SparseMatrix, partners: int) -> float:
    """The same where most pairs do not talk: what is left of each row without its strongest entries."""
    order = np.lexsort((-entries.weight, entries.rows))
    rank = np.arange(len(order)) - np.repeat(entries.start[:-1], np.diff(entries.start))
    return float(entries.weight[order][rank >= partners].sum()) / 2


def _spectral_bound(problem: Problem) -> float:
    sizes = problem.sizes
    if sizes.min() != sizes.max() or problem.threads > SPECTRAL_LIMIT or problem.nodes < 2 or problem.sparse:
        return 0.0
    largest = float(problem.comm.max())
    if not largest > 0:
        return 0.0
    scaled: Floats = problem.comm / largest
    laplacian = np.diag(scaled.sum(axis=1)) - scaled
    values = np.sort(np.linalg.eigvalsh(laplacian))[: problem.nodes]
    # Eigenvalues are wrong by rounding in proportion to the largest: a bound must err downwards.
    rounding = 1e-12 * problem.nodes * float(np.diag(laplacian).max())
    return max(0.0, (float(values.sum()) - rounding) * int(sizes[0]) / 2 * largest)
