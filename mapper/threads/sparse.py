"""Large sparse communication matrices, stored by their entries and never expanded."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numaplan.common import UsageError

SYMMETRY = 1e-9  # relative; sums of the same numbers in another order differ by less


@dataclass(frozen=True)
class SparseMatrix:
    """A symmetric (N, N) matrix without its diagonal, row after row.

    Row i has the columns to[start[i]:start[i+1]], ascending, with these weights (all above 0). start: (N+1,)
    int64; to: int32; weight: float64.
    """

    start: NDArray[np.int64]
    to: NDArray[np.int32]
    weight: NDArray[np.float64]

    def __len__(self) -> int:
        """N."""
        return len(self.start) - 1

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """The row of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    def any(self) -> bool:
        """Whether anyone talks at all."""
        return bool(len(self.weight))

    def sum(self) -> float:
        """All entries added up (each pair counts twice)."""
        return float(self.weight.sum())

    def max(self) -> float:
        """The largest entry, 0 when there is none."""
        return float(self.weight.max(initial=0.0))

    def part(self, members: NDArray[np.int64]) -> NDArray[np.float64]:
        """(M, M) the whole matrix of some members, in their order."""
        place = np.full(len(self), -1)
        place[members] = np.arange(len(members))
        entries = np.concatenate([np.arange(*self.start[i : i + 2]) for i in members.tolist()] or [members])
        row, column = place[self.rows[entries]], place[self.to[entries]]
        inside = column >= 0
        whole = np.zeros((len(members), len(members)))
        whole[row[inside], column[inside]] = self.weight[entries[inside]]
        return whole

    def row(self, member: int) -> NDArray[np.float64]:
        """(N,) one row as a whole."""
        whole = np.zeros(len(self))
        entries = slice(*self.start[member : member + 2])
        whole[self.to[entries]] = self.weight[entries]
        return whole

    def without(self, members: NDArray[np.int64]) -> "SparseMatrix":
        """The same without some rows and columns."""
        kept = np.ones(len(self), dtype=bool)
        kept[members] = False
        inside = kept[self.rows] & kept[self.to]
        number = np.cumsum(kept) - 1
        counts = np.bincount(number[self.rows[inside]], minlength=int(kept.sum()))
        start = np.concatenate([[0], np.cumsum(counts)])
        return SparseMatrix(start, number[self.to[inside]].astype(np.int32), self.weight[inside])

    def scaled(self, factor: float) -> "SparseMatrix":
        """The same with every entry times the factor."""
        return SparseMatrix(self.start, self.to, self.weight * factor)


def by_entries(matrix: NDArray[np.float64] | SparseMatrix) -> SparseMatrix:
    """A checked matrix in this form, whichever it has."""
    if isinstance(matrix, SparseMatrix):
        return matrix
    rows, columns = np.nonzero(matrix)
    start = np.searchsorted(rows, np.arange(len(matrix) + 1))
    return SparseMatrix(start, columns.astype(np.int32), matrix[rows, columns])


def sparse_matrix(matrix: Any) -> SparseMatrix:
    """Of a scipy sparse matrix, symmetric; raises UsageError naming row and column of what cannot be."""
    from scipy import sparse

    entries = sparse.csr_array(matrix, dtype=np.float64)
    entries.sum_duplicates()
    wrong = ~((entries.data >= 0) & (entries.data < np.inf))
    if wrong.any():
        at = int(np.argmax(wrong))
        row = int(np.searchsorted(entries.indptr, at, side="right")) - 1
        raise UsageError(
            f"communication matrix: {entries.data[at]:g} at row {row}, column {entries.indices[at]}",
            "entries must be finite and not negative",
        )
    apart = abs(entries - entries.T).tocoo()
    largest = entries.maximum(entries.T).tocoo()
    if apart.nnz:
        limit = dict(zip(zip(*largest.coords, strict=True), largest.data.tolist(), strict=True))
        for row, column, value in zip(*apart.coords, apart.data.tolist(), strict=True):
            if value > SYMMETRY * limit[row, column]:
                raise UsageError(
                    f"communication matrix: not symmetric: {entries[row, column]:g} at row {row}, column"
                    f" {column} but {entries[column, row]:g} at row {column}, column {row}",
                    "add the matrix to its transpose",
                )
        entries = sparse.csr_array(entries * 0.5 + entries.T * 0.5)
    entries.setdiag(0.0)
    entries.eliminate_zeros()
    entries.sort_indices()
    return SparseMatrix(entries.indptr.astype(np.int64), entries.indices.astype(np.int32), entries.data)
