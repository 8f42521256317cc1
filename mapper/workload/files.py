"""Communication matrices, load vectors and phases in files: comm.csv, loads.csv, phases.csv, sparse matrices.

comm.csv: N rows of N numbers, comma separated, no header; loads.csv: one number a row; phases.csv as
`nmap analyze --to` writes it: a header, then start, end, weight and loads of each phase. Matrices of others
may be counted in directions: they are refused, or made symmetric where that is asked for.
"""

import io
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from numaplan.common import UsageError, read_document

from ..threads.inputs import MAX_THREADS, Floats, check_loads, check_matrix, check_phases
from ..threads.sparse import SparseMatrix

MATRIX_LIMIT = 1 << 30  # bytes of text
_COMM_HINT = "give N rows of N numbers, comma separated, no header"
_PHASES_HINT = "give the phases.csv of 'nmap analyze --to'"
_CHUNK = 1 << 20  # bytes read at once for a digest
_BEFORE = 3  # columns before the loads: start_ns, end_ns, weight
MOST_PHASES = 1000
PHASES_LIMIT = 1 << 28


class CommFile(NamedTuple):
    """A matrix as read, (N, N) symmetric with zero diagonal, and what had to be done to it (may be empty).

    Sparse files of many threads stay sparse.
    """

    comm: Floats | SparseMatrix
    note: str


class PhasesFile(NamedTuple):
    """Loads by phase (P, N), and accesses a time in each (P,)."""

    loads: Floats
    rates: Floats


def read_comm(path: str | Path, symmetrise: bool = False) -> CommFile:
    """Read a communication matrix (.csv; .npz and .mtx: sparse); raises UsageError naming row and column.

    symmetrise: take a matrix that counts directions as the mean of both; without it such a one is refused.
    """
    name = str(path)
    matrix: Any
    if name.endswith((".npz", ".mtx")):
        matrix = _read_sparse(Path(path))
    else:
        matrix = _read_csv(read_document(path, "communication matrix", MATRIX_LIMIT), name)
    try:
        return CommFile(check_matrix(matrix), "")
    except UsageError as error:
        directed = "not symmetric" in error.what
        if not (directed and symmetrise):
            hint = f"{error.hint}, or give --symmetrise" if directed else error.hint
            raise UsageError(f"{name}: {error.what}", hint) from error
    note = f"{name}: not symmetric; both directions of each pair were added and halved"
    return CommFile(check_matrix(matrix / 2 + matrix.T / 2), note)


def read_loads(path: str | Path) -> Floats:
    """Read a load vector, one number a row; raises UsageError naming the row."""
    rows = _rows(read_document(path, "load vector"), str(path), "give one number per row")
    if len(rows) == 1 and "," in rows[0]:
        rows = rows[0].split(",")
    values = [_number(text, f"{path}: row {row}") for row, text in enumerate(rows)]
    if not values:
        raise UsageError(f"{path}: empty", "give one number per row")
    try:
        return check_loads(values, len(values))
    except UsageError as error:
        raise UsageError(f"{path}: {error.what}", error.hint) from error


def read_phases(path: Path, threads: int) -> PhasesFile:
    """Read loads by phase; raises UsageError naming the row that is wrong."""
    lines = _rows(read_document(path, "phases", PHASES_LIMIT), str(path), _PHASES_HINT)
    if len(lines) < 2 or not lines[0].startswith("start_ns,"):
        raise UsageError(f"{path}: no phases in it", _PHASES_HINT)
    if len(lines) - 1 > MOST_PHASES:
        raise UsageError(f"{path}: {len(lines) - 1} phases", f"give at most {MOST_PHASES}")
    rows = np.empty((len(lines) - 1, _BEFORE + threads))
    for number, line in enumerate(lines[1:]):
        fields = line.split(",")
        if len(fields) != rows.shape[1]:
            raise UsageError(
                f"{path}: row {number} has {len(fields) - _BEFORE} loads for {threads} threads", _PHASES_HINT
            )
        try:
            rows[number] = fields
        except ValueError as error:
            raise UsageError(f"{path}: row {number}: {error}", _PHASES_HINT) from error
    try:
        return PhasesFile(check_phases(rows[:, _BEFORE:], threads), check_phases(rows[:, 2], len(rows))[0])
    except UsageError as error:
        raise UsageError(f"{path}: {error.what}", error.hint) from error


def _rows(data: bytes, where: str, hint: str) -> list[str]:
    """Lines that are not empty; raises UsageError for what is not text."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{where}: not text (byte {error.start})", hint) from error
    return [line for line in (line.strip() for line in text.splitlines()) if line]


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        shown = text.strip()[:20]
        raise UsageError(f"{where}: {shown!r} is not a number", "correct the file") from None


def _read_csv(data: bytes, where: str) -> Floats:
    rows = _rows(data, where, _COMM_HINT)
    if not 1 <= len(rows) <= MAX_THREADS:
        raise UsageError(f"{where}: {len(rows)} rows", f"1 to {MAX_THREADS} threads can be placed")
    matrix = np.empty((len(rows), len(rows)))
    for number, line in enumerate(rows):
        fields = line.rstrip(",").split(",")
        if len(fields) != len(rows):
            raise UsageError(
                f"{where}: row {number} has {len(fields)} columns in a matrix of {len(rows)} rows", _COMM_HINT
            )
        try:
            matrix[number] = fields
        except ValueError:
            for column, field in enumerate(fields):
                _number(field, f"{where}: row {number}, column {column}")
            raise UsageError(f"{where}: row {number} cannot be read", _COMM_HINT) from None
    return matrix


def _read_sparse(path: Path) -> Any:
    """A scipy csr_array of a scipy .npz or a Matrix Market file."""
    from scipy import io as scipy_io, sparse

    data = read_document(path, "sparse matrix", MATRIX_LIMIT)
    try:
        if path.suffix == ".npz":
            _check_archive(data)
            loaded = sparse.load_npz(io.BytesIO(data))
        else:
            _check_market(data)
            with warnings.catch_warnings():  # that it will be an array: it is made one below
                warnings.simplefilter("ignore", DeprecationWarning)
                loaded = scipy_io.mmread(io.BytesIO(data))
        rows, columns = loaded.shape
        if rows != columns or not 1 <= rows <= MAX_THREADS:
            raise ValueError(f"{rows} x {columns}, not a square of at most {MAX_THREADS}")
        entries: Any = sparse.coo_array(loaded)
        return sparse.csr_array(entries).astype(np.float64)
    except Exception as error:  # damaged archives and headers raise errors of many kinds
        text = str(error).partition("\n")[0]
        if "does not contain a sparse" in text:  # scipy names its own buffer there
            text = "holds arrays, but no sparse matrix"
        raise UsageError(f"{path}: {text}", "give a scipy .npz or a Matrix Market file") from error


def _check_archive(data: bytes) -> None:
    """Refuse an archive whose members would unpack to more than a matrix may take."""
    import zipfile

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(member.file_size for member in archive.infolist()) > MATRIX_LIMIT:
            raise ValueError("unpacks to more than a matrix may take")


def _check_market(data: bytes) -> None:
    """Refuse a Matrix Market file that claims more than it can hold: the reader trusts its header."""
    sizes = next((line for line in data.splitlines() if line.strip() and not line.startswith(b"%")), b"")
    numbers = [int(field) for field in sizes.split()]
    if len(numbers) == 2:  # a dense array: rows x columns entries
        numbers.append(numbers[0] * numbers[1])
    if len(numbers) != 3 or min(numbers) < 0 or numbers[2] > len(data) or max(numbers[:2]) > MAX_THREADS:
        raise ValueError("its header claims more than the file holds, or cannot be read")


def digest(path: Path) -> str:
    """sha256 of a file, as a plan's provenance gives it."""
    import hashlib

    found, chunk = hashlib.sha256(), memoryview(bytearray(_CHUNK))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(chunk):
            found.update(chunk[:count])
    return f"sha256:{found.hexdigest()}"
