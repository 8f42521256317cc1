"""DuckDB, as far as it is needed, and opening the database of a trace, which may be anybody's."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numaplan.common import UsageError, available_bytes

from .catalog import FILE, check_catalog, check_rows, lacking_of_use, tables_of
from .schema import ENUMS, TABLES

QUIET = "SET enable_progress_bar = false"  # else a long query draws one on stdout, amid the answer
_HEADERS = 3 * 4096  # the file header and two database headers before the first block
_MAGIC = b"DUCK"
# What is read once need not stay in memory; what needs more, such as a sort, goes through the disk.
_MEMORY_MIB = (64, 512)  # the least and the most that it gets; between them a quarter of what is left
_SMALL = 64 << 20  # bytes: of such a file several threads hand each other what takes longer than reading
_UNLIKELY = "no trace of numaplan is like that"
_PATIENCE = (60.0, 1e-6)  # seconds that a query may take, and more for each byte of the file


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


def open_database(path: Path, exporting_to: Path | None = None) -> Any:
    """A connection whose tables are those of the file, of which nothing but tables is read.

    The file is attached beside an empty database: so its macros stand for no function that a query names.
    Nothing can be reached from it: other files (but for `exporting_to`, where a query may write), extensions,
    settings. Raises UsageError when it is missing, cut short or no trace.
    """
    _check_start(path)
    connection = None
    try:
        connection = driver().connect()
        for setting in _settings(path, exporting_to):
            connection.execute(setting)
        _check_whole(connection, path)
        check_catalog(connection, path)
        check_rows(connection, path)
        show_tables(connection)
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, UsageError) or not isinstance(error, Exception):
            raise
        raise unreadable(path, error) from error
    return connection


def show_tables(connection: Any, part: tuple[int, int] | None = None) -> None:
    """Let a connection, whose own these names are, see the tables of the trace.

    Of a part, `samples`, `losses` and `running` are those of [start, end) in ns, `transfers` and `page_use`
    those of stretches whose middle is there; `counters` and `messages`, of the whole run, have no rows.
    """
    conditions = dict.fromkeys(TABLES, "")
    if part:
        within = f"WHERE time_ns >= {part[0]} AND time_ns < {part[1]}"
        middle = f"WHERE start_ns + (end_ns - start_ns) // 2 BETWEEN {part[0]} AND {part[1] - 1}"
        conditions |= {"samples": within, "losses": within, "running": within}
        conditions |= {"transfers": middle, "page_use": middle}
        conditions |= {"counters": "WHERE false", "messages": "WHERE false"}
    there = tables_of(connection)
    for table, condition in conditions.items():
        rows = _no_rows(table)
        if table in there:
            lacking = lacking_of_use(connection, table)
            added = "".join(f", (-1)::{TABLES[table][name]} AS {name}" for name in lacking)
            rows = f"SELECT *{added} FROM {FILE}.{table} {condition}"
        connection.execute(f"CREATE TEMP VIEW {table} AS {rows}")


def _no_rows(table: str) -> str:
    kinds = {name: "VARCHAR" if kind in ENUMS else kind for name, kind in TABLES[table].items()}
    columns = ", ".join(f"NULL::{kind} AS {name}" for name, kind in kinds.items())
    return f"SELECT {columns} WHERE false"


@contextmanager
def limited(connection: Any, path: Path) -> Iterator[None]:
    """A query, ended when it takes far longer than any of a trace of this size; raises UsageError then, or
    when the database cannot answer it.
    """
    least, each = _PATIENCE
    patience = least
    with suppress(OSError):  # it may have been removed since it was opened
        patience += each * path.stat().st_size
    alarm = threading.Timer(patience, connection.interrupt)
    alarm.daemon = True
    alarm.start()
    try:
        yield
    except UsageError:
        raise
    except driver().InterruptException as error:
        raise UsageError(
            f"{path}: a question took more than {patience:.0f} s", f"{_UNLIKELY}: record it again"
        ) from error
    except Exception as error:
        raise unreadable(path, error) from error
    finally:
        alarm.cancel()
        alarm.join()  # it holds the connection


def unreadable(path: Path, error: Exception) -> UsageError:
    """What to tell of an error of the database; raises MemoryError when it is that."""
    text = str(error).partition("\n")[0]
    most = f"{_MEMORY_MIB[1]}.0 MiB"
    if f"/{most} used" in text:  # it was not ours that is little
        return UsageError(f"{path}: a question takes more than {most}", f"{_UNLIKELY}: record it again")
    if isinstance(error, MemoryError) or "Out of Memory" in text:
        raise MemoryError(text) from error
    return UsageError(f"{path}: the trace cannot be read: {text}", "it is damaged: copy or record it again")


def is_trace(path: Path) -> bool:
    """Whether a file can be read and begins as a DuckDB database does: DuckDB itself takes longer to load."""
    with suppress(OSError):
        return path.is_file() and _starts_as_trace(path)
    return False


def _starts_as_trace(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(16)[8:12] == _MAGIC


def _check_start(path: Path) -> None:
    try:
        is_one = _starts_as_trace(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", "give a trace that 'nprof record' wrote") from error
    if not is_one:
        raise UsageError(f"{path}: not a trace (no DuckDB file)", "give one that 'nprof record' wrote")


def _settings(path: Path, exporting_to: Path | None) -> Iterator[str]:
    """What makes a new connection read one file, and nothing else."""
    yield QUIET
    yield f"ATTACH {quoted(path)} AS trace (READ_ONLY)"
    yield f"SET temp_directory = {quoted(f'{path}.tmp')}"
    least, most = _MEMORY_MIB
    memory = min(most, max(least, available_bytes() >> 22))
    yield f"SET memory_limit = '{memory}MiB'"
    if path.stat().st_size < _SMALL or memory < most:
        yield "SET threads = 1"
    if exporting_to:
        yield f"SET allowed_directories = [{quoted(exporting_to)}]"
    yield "SET autoinstall_known_extensions = false"
    yield "SET autoload_known_extensions = false"
    yield "SET enable_external_access = false"
    yield "SET allowed_configs = ['enable_progress_bar']"  # which each further connection has for itself
    yield "SET lock_configuration = true"


def _check_whole(connection: Any, path: Path) -> None:
    """The header says how many blocks there are; a file cut short would fail only when they are read."""
    row = connection.execute(
        "SELECT block_size, total_blocks FROM pragma_database_size() WHERE database_name = 'trace'"
    ).fetchone()
    expected = _HEADERS + int(row[0]) * int(row[1]) if row else 0
    found = path.stat().st_size
    if found < expected:
        raise UsageError(f"{path}: cut short ({found} of {expected} bytes)", "copy or record it again")


def quoted(path: object) -> str:
    """A file's name in SQL; raises UsageError for one that DuckDB cannot be told."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise UsageError(f"{path}: its name is not UTF-8", "rename it, or choose another folder") from None
    return "'" + str(path).replace("'", "''") + "'"
