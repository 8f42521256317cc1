"""Memory that is in no region of its own, by pairs of threads: who uses it, and who touched it first."""

import numpy as np
from numpy.typing import NDArray

from .page_counts import Counts, Floats, Ints


def counted_by_pairs(thread: Ints, toucher: Ints, counted: Counts, threads: int) -> Floats:
    """(N, N) what rows count, by their thread and by the first to touch their page."""
    answer = np.zeros((threads, threads))
    np.add.at(answer, (thread, toucher), counted)
    return answer


def pages_by_pairs(
    page: Ints, thread: Ints, toucher: Ints, accesses: Counts, threads: int
) -> tuple[Floats, Floats]:
    """(N, N) pages by who uses them and who touched them first, and (N, N) by who makes two accesses to one.

    In both each page that is used counts once, divided as its accesses are. page: (rows,) any number of it.
    """
    from scipy.sparse import csr_array

    used = accesses > 0
    number = np.unique(page[used], return_inverse=True)[1]
    made, who = accesses[used].astype(np.float64), thread[used]
    share = made / np.bincount(number, made)[number]
    shape = (int(number.max(initial=-1)) + 1, threads)
    uses = csr_array((share, (number, who)), shape=shape)
    shared: NDArray[np.float64] = (uses.T @ uses).toarray()
    return counted_by_pairs(who, toucher[used], share, threads), shared
