"""In which order threads of a team take the places of a pattern, by the order in which they were made."""

from collections.abc import Callable, Mapping

import numpy as np

from ..threads.problem import Nodes

IN_ORDER = "in order"
REVERSED = "reversed"  # the same neighbours, grids and groups as in order, but other parts of memory


def _evens_first(n: int) -> Nodes:
    """Every second thread takes the first half of the places."""
    index = np.arange(n)
    return np.where(index % 2 == 0, index // 2, (n + 1) // 2 + index // 2)


def _mirrored(n: int) -> Nodes:
    """By the bits of the number read backwards: 0, 4, 2, 6, 1, 5, 3, 7 for eight."""
    bits = max(n - 1, 0).bit_length()
    index = np.arange(1 << bits)
    mirrored = sum(((index >> bit) & 1) << (bits - 1 - bit) for bit in range(bits)) + 0 * index
    return mirrored[mirrored < n]


def _from_both_ends(n: int) -> Nodes:
    """The first, the last, the second, the last but one."""
    index = np.arange(n)
    return np.where(index % 2 == 0, index // 2, n - 1 - index // 2)


# The place (0..n-1) of each thread.
ORDERS: Mapping[str, Callable[[int], Nodes]] = {
    IN_ORDER: np.arange,
    "every second first": _evens_first,
    "halves in turn": lambda n: np.argsort(_evens_first(n)),
    "bits mirrored": _mirrored,
    "from both ends": _from_both_ends,
    REVERSED: lambda n: np.arange(n)[::-1],
}


def places(order: str, n: int) -> Nodes:
    """(n,) the place of each of n threads."""
    return ORDERS[order](n)
