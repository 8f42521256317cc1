"""What the policies compute natively (`native/online/`), so that the loop needs no large library to start."""

import ctypes
from functools import cache

import numpy as np

from numaplan.common import load_native

from .observation import Floats, Ints


@cache
def _library() -> ctypes.CDLL:
    library = load_native("mapper", "online")
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    library.online_assign.argtypes = [number, number, pointer, pointer]
    library.online_pair.argtypes = [number, pointer, pointer, pointer, number, pointer]
    library.online_pair.restype = None
    library.online_group.argtypes = [number, pointer, pointer, pointer]
    library.online_group.restype = number
    return library


def assign(costs: Floats) -> Ints:
    """(N,) a column of its own for each row of the (N, M) costs, N at most M, so that they add up to least.

    Raises ValueError when there are more rows than columns or a cost is not finite.
    """
    rows, columns = costs.shape
    if rows > columns or not np.isfinite(costs).all():
        raise ValueError(f"{rows} rows and {columns} columns, or a cost that is no number")
    costs = np.ascontiguousarray(costs, dtype=np.float64)
    chosen = np.empty(rows, dtype=np.int64)
    if _library().online_assign(rows, columns, costs.ctypes.data, chosen.ctypes.data):
        raise MemoryError
    return chosen


def pair_products(page: Ints, thread: Ints, weight: Floats, threads: int) -> Floats:
    """(T, T) for each pair of threads the sum over all pages of the product of their weights there.

    page: (Z,) ascending; thread: (Z,) rows below `threads`; weight: (Z,).
    """
    matrix = np.zeros((threads, threads))
    page, thread = (np.ascontiguousarray(column, dtype=np.int64) for column in (page, thread))
    weight = np.ascontiguousarray(weight, dtype=np.float64)
    addresses = (column.ctypes.data for column in (page, thread, weight))
    _library().online_pair(len(page), *addresses, threads, matrix.ctypes.data)
    return matrix


def groups_of(keys: Ints) -> tuple[Ints, Ints]:
    """np.unique(keys, return_inverse=True) of (n,) keys, none negative: sorted once, by their digits."""
    keys = np.ascontiguousarray(keys, dtype=np.int64)
    group, distinct = np.empty_like(keys), np.empty_like(keys)
    count = _library().online_group(len(keys), *(column.ctypes.data for column in (keys, group, distinct)))
    if count < 0:
        raise MemoryError
    return distinct[:count], group
