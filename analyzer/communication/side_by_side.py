"""Matrices of threads of which most never met: a job's ranks, recorded apart and put side by side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Matrix = NDArray[np.float64]


class Met(NamedTuple):
    """Threads that were seen together: members: (M,) their numbers; matrix: (M, M) of them."""

    members: NDArray[np.int64]
    matrix: Matrix


class SideBySide(msgspec.Struct, frozen=True):
    """A symmetric (N, N) matrix that is 0 outside of some parts, of which no two have a thread in common.

    The matrix of one recording is one part. Of many ranks only the parts take memory, unless `whole` is
    asked for.
    """

    count: int
    parts: Sequence[Met]

    def whole(self) -> Matrix:
        """(N, N) all of it; the very matrix where it is one part."""
        if len(self.parts) == 1 and np.array_equal(self.parts[0].members, np.arange(self.count)):
            return self.parts[0].matrix
        matrix = np.zeros((self.count, self.count))
        for members, part in self.parts:
            matrix[np.ix_(members, members)] = part
        return matrix

    def entries(self) -> "csr_array":
        """What is not 0, as scipy's sparse array, its rows in order."""
        from scipy import sparse

        rows, columns, values = [], [], []
        for members, part in self.parts:
            row, column = np.nonzero(part)
            rows.append(members[row])
            columns.append(members[column])
            values.append(part[row, column])
        places = np.concatenate(rows), np.concatenate(columns)
        found = sparse.csr_array((np.concatenate(values), places), (self.count, self.count))
        found.sort_indices()
        return found

    def total(self) -> float:
        """The sum of all."""
        return float(sum(part.sum() for _, part in self.parts))

    def cells(self, most: int) -> Matrix:
        """(C, C) sums over neighbouring threads, as many in each that there are `most` cells in a row."""
        wide = -(-self.count // most)
        cells = np.zeros((-(-self.count // wide),) * 2)
        for members, part in self.parts:
            at = members // wide
            np.add.at(cells, (at[:, None], at), part)
        return cells


def one_part(matrix: Matrix) -> SideBySide:
    """A whole matrix in this form."""
    return SideBySide(len(matrix), [Met(np.arange(len(matrix)), matrix)])
