"""DuckDB, as far as it is needed, and opening the database of a trace."""

from pathlib import Path
from typing import Any

from numaplan.common import UsageError

QUIET = "SET enable_progress_bar = false"  # else a long query draws one on stdout, amid the answer
_HEADERS = 3 * 4096  # the file header and two database headers before the first block
_MAGIC = b"DUCK"


def driver() -> Any:
    """DuckDB's native module where it can be had alone: its Python part takes longer to load than a query.

    It reads dicts of numpy arrays; Arrow tables only the Python part can scan, and that loads pandas.
    """
    try:
        import _duckdb

        _duckdb.connect  # noqa: B018  (of a later version it may be elsewhere)
        return _duckdb
    except (ImportError, AttributeError):
        import duckdb

        return duckdb


def open_database(path: Path) -> Any:
    """A connection that reads the file; raises UsageError when it is missing, cut short or no database."""
    _check_start(path)
    try:
        return _connect(path)
    except UsageError:
        raise
    except Exception as error:
        raise unreadable(path, error) from error


def part_of_database(connection: Any, start_ns: int, end_ns: int) -> Any:
    """Another connection to the same file, whose `samples` and `losses` are those of [start_ns, end_ns).

    `counters` has no rows: its totals are of the whole run.
    """
    part = connection.cursor()
    (name,) = part.execute("SELECT current_database()").fetchone()
    file = '"' + name.replace('"', '""') + '".main'
    within = f"time_ns >= {start_ns} AND time_ns < {end_ns}"
    for table, condition in (("samples", within), ("losses", within), ("counters", "false")):
        part.execute(f"CREATE TEMP VIEW {table} AS SELECT * FROM {file}.{table} WHERE {condition}")
    part.execute(QUIET)
    return part


def unreadable(path: Path, error: Exception) -> UsageError:
    """What to tell of an error of the database."""
    text = str(error).partition("\n")[0]
    return UsageError(f"{path}: the trace cannot be read: {text}", "it is damaged: copy or record it again")


def _check_start(path: Path) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(16)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", "give a trace that 'nprof record' wrote") from error
    if start[8:12] != _MAGIC:
        raise UsageError(f"{path}: not a trace (no DuckDB file)", "give one that 'nprof record' wrote")


def _connect(path: Path) -> Any:
    connection = driver().connect(str(path), read_only=True)
    try:
        connection.execute(QUIET)
        # The header says how many blocks there are; a file cut short would fail only when they are read.
        row = connection.execute("SELECT block_size, total_blocks FROM pragma_database_size()").fetchone()
        expected = _HEADERS + int(row[0]) * int(row[1]) if row else 0
        found = path.stat().st_size
        if found < expected:
            raise UsageError(f"{path}: cut short ({found} of {expected} bytes)", "copy or record it again")
    except BaseException:
        connection.close()
        raise
    return connection
