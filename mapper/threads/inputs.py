"""Matrices, loads and phases as they are given: checked, and in the form that methods take."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from numaplan.common import UsageError

from .sparse import SYMMETRY, SparseMatrix, sparse_matrix

MAX_THREADS = 16384  # a dense matrix of that size takes 2 GiB
LARGEST = 1e305  # sums times a distance (at most 255) must stay numbers
WHOLE_LIMIT = 2048  # threads; larger sparse matrices are never made whole

Floats = NDArray[np.float64]


def check_matrix(comm: ArrayLike | SparseMatrix) -> Floats | SparseMatrix:
    """As check_comm, but scipy's sparse matrices of more than WHOLE_LIMIT threads stay sparse."""
    if isinstance(comm, SparseMatrix):
        return comm
    shape = np.shape(comm) if hasattr(comm, "tocsr") else ()
    if len(shape) == 2 and WHOLE_LIMIT < shape[0] == shape[1] <= MAX_THREADS:
        return sparse_matrix(comm)
    return check_comm(comm)


def check_comm(comm: ArrayLike) -> Floats:
    """The matrix as (N, N) float64 with a zero diagonal; raises UsageError naming row and column."""
    if hasattr(comm, "toarray") and max(getattr(comm, "shape", (0,))) <= MAX_THREADS:
        comm = comm.toarray()
    try:
        matrix = np.array(comm, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise UsageError(f"communication matrix: {error}", "give N rows of N numbers") from error
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        shape = " x ".join(map(str, matrix.shape)) or "a single number"
        raise UsageError(f"communication matrix: {shape}, not square", "give N rows of N numbers")
    if not 1 <= len(matrix) <= MAX_THREADS:
        raise UsageError(f"communication matrix: {len(matrix)} threads", f"give 1 to {MAX_THREADS}")
    if not (matrix.min() >= 0 and matrix.max() < np.inf):
        row, column = np.argwhere(~((matrix >= 0) & (matrix < np.inf)))[0]
        raise UsageError(
            f"communication matrix: {matrix[row, column]:g} at row {row}, column {column}",
            "entries must be finite and not negative",
        )
    if not np.array_equal(matrix, matrix.T):
        _check_symmetric(matrix)
        matrix = matrix / 2 + matrix.T / 2
    np.fill_diagonal(matrix, 0.0)
    return matrix


def _check_symmetric(matrix: Floats) -> None:
    wrong = np.abs(matrix - matrix.T) > SYMMETRY * np.maximum(matrix, matrix.T)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise UsageError(
            f"communication matrix: not symmetric: {matrix[row, column]:g} at row {row}, column {column} but "
            f"{matrix[column, row]:g} at row {column}, column {row}",
            "add the matrix to its transpose",
        )


def check_loads(loads: ArrayLike | None, threads: int) -> Floats:
    """The loads as (N,) float64 (equal ones when None); raises UsageError naming the thread."""
    if loads is None:
        return np.ones(threads)
    try:
        vector = np.array(loads, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"loads: {error}", "give one number per thread") from error
    if vector.shape != (threads,):
        raise UsageError(
            f"{vector.size} loads for {threads} threads in the communication matrix",
            "give one number per thread",
        )
    good = (vector >= 0) & (vector < np.inf)
    if not good.all():
        thread = int(np.argmin(good))
        raise UsageError(
            f"loads: {vector[thread]:g} at row {thread}", "loads must be finite and not negative"
        )
    return vector


def check_phases(phases: ArrayLike, threads: int) -> Floats:
    """The loads by phase as (P, N) float64; raises UsageError naming phase and thread."""
    try:
        rows = np.atleast_2d(np.array(phases, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise UsageError(f"phases: {error}", "give one row of loads per phase") from error
    if rows.ndim != 2 or rows.shape[1] != threads:
        raise UsageError(
            f"phases: rows of {rows.shape[-1]} loads for {threads} threads", "give one per thread"
        )
    good = (rows >= 0) & (rows < np.inf)
    if not good.all():
        phase, thread = np.argwhere(~good)[0]
        raise UsageError(
            f"phases: {rows[phase, thread]:g} at row {phase}, column {thread}",
            "loads must be finite, not negative",
        )
    return rows


def check_sums(matrix: Floats | SparseMatrix, load: Floats) -> None:
    """Raise UsageError where entries are fine one by one, but not their sum times a distance."""
    with np.errstate(over="ignore"):
        entries = matrix.weight if isinstance(matrix, SparseMatrix) else matrix
        for name, total in (("communication matrix", entries.sum()), ("loads", load.sum())):
            if not total < LARGEST:
                raise UsageError(f"{name}: its entries add up to {total:g}", "scale them down")
