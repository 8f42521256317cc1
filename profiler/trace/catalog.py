"""What the database of a trace may hold: its tables, and nothing that runs what its writer wrote."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numaplan.common import UsageError

from .schema import ADDED, ADDED_TABLES, ADDED_TO_USE, ENUMS, MOST_RANKS, NUMBERS, TABLES

FILE = "trace.main"  # under which name its own tables are found
_WHOLE_NUMBERS = ("UTINYINT", "TINYINT", "USMALLINT", "SMALLINT", "UINTEGER", "INTEGER", "UBIGINT", "BIGINT")
_IMPOSSIBLE_MESSAGES = (
    f"SELECT 1 FROM {FILE}.messages WHERE NOT (rank BETWEEN 0 AND {MOST_RANKS - 1} AND peer BETWEEN 0 AND "
    f"{MOST_RANKS - 1} AND bytes >= 0 AND count >= 0 AND thread >= -1) LIMIT 1"
)
_OF_NOBODY = (
    f"SELECT 1 FROM {FILE}.regions "
    f"WHERE thread < -1 OR thread >= (SELECT count(*) FROM {FILE}.threads) LIMIT 1"
)
_LATEST = 1 << 62  # ns
_IMPOSSIBLE_LOOKS = (
    f"SELECT 1 FROM {FILE}.running WHERE NOT (time_ns BETWEEN 0 AND {_LATEST}) "
    f"OR thread < 0 OR thread >= (SELECT count(*) FROM {FILE}.threads) LIMIT 1"
)
_IMPOSSIBLE_CALLS = f"SELECT 1 FROM {FILE}.calls WHERE caller >= call OR caller < -1 LIMIT 1"
_HARMLESS = 1 << 20  # rows, however small the file is
_LONGEST = 1 << 16  # bytes of a name, or of a thread's path
_NUMBERED = (("threads", "thread"), ("regions", "region"))
_TEXTS = ("machine", "meta")  # whose values are no names
_PACKED = re.compile("samples_[0-9]{1,9}")
_VIEWS = ("samples", "sample_codes")
_WORDS = (
    *("SELECT", "CAST", "AS", "UNION ALL", "list_value", "FROM samples_[0-9]{1,9}", "word_[0-9]{1,2}"),
    *("[0-9]{1,20}", *_WHOLE_NUMBERS, *ENUMS, *TABLES["samples"]),
)
_LABELS = [name for names in ENUMS.values() for name in names]
_PACKED_VIEW = re.compile(
    rf"CREATE VIEW (?:{'|'.join(_VIEWS)}) AS "
    rf"(?:(?:{'|'.join(_WORDS)})\b|'(?:{'|'.join(_LABELS)})'|[][ ()&>!=+,\"-])+;"
)


def check_catalog(connection: Any, path: Path) -> None:
    """Raise UsageError for anything in the attached file that is no table of a trace.

    Macros do no harm, as no query finds them; but for the views of 0.2.0, with which they are refused.
    """
    found = tables_of(connection)
    packed = found.get("samples") == "VIEW"
    for name, kind in found.items():
        expected = name in TABLES or (packed and _PACKED.fullmatch(name) is not None)
        if not (expected and kind == "BASE TABLE") and not (packed and name in _VIEWS and kind == "VIEW"):
            raise _no_trace(path, f"it has a {kind.lower()} {name[:40]!r}")
    for name in TABLES:
        if name not in found and name not in ADDED_TABLES:
            raise _no_trace(path, f"it has no table {name!r}")
    _check_sizes(connection, path)
    if packed:
        _check_views(connection, path)
    for name in found:
        if name != "sample_codes":  # which is no longer read
            _check_columns(connection, path, name)


def _check_sizes(connection: Any, path: Path) -> None:
    """Refuse rows that are all alike: a small file of such would fill the memory. Ours take bytes each."""
    most = _most_rows(path)
    listed = "SELECT table_name, estimated_size FROM duckdb_tables() WHERE database_name = 'trace'"
    for name, rows in connection.execute(listed).fetchall():
        if rows > most:
            raise _no_trace(path, f"its table {name[:40]!r} has {rows:,} rows, more than the file has bytes")


def _most_rows(path: Path) -> int:
    return max(_HARMLESS, path.stat().st_size)


def tables_of(connection: Any) -> dict[str, str]:
    """Names of tables and views, and which of both each is."""
    listed = "SELECT table_name, table_type FROM information_schema.tables WHERE table_catalog = 'trace'"
    return dict(connection.execute(listed).fetchall())


def lacking_of_use(connection: Any, table: str) -> list[str]:
    """Columns that the table page_use of an earlier version lacks; of others none."""
    if table != "page_use":
        return []
    there = {name for name, *_ in _columns(connection, table)}
    return [name for name in ADDED_TO_USE if name not in there]


def check_rows(connection: Any, path: Path) -> None:
    """Raise UsageError where the small tables have gaps or names without end, or two rows have one number."""
    asked, found = [], tables_of(connection)
    for table, columns in TABLES.items():
        if table != "samples" and table in found:  # whose readers take none for what is missing
            there = [name for name in columns if name not in lacking_of_use(connection, table)]
            gap = f"bool_or({' OR '.join(f'{name} IS NULL' for name in there)})"
            longest = "0"
            if names := [name for name in there if columns[name] == "VARCHAR" and table not in _TEXTS]:
                longest = f"max(greatest(0, {', '.join(f'strlen({name})' for name in names)}))"
            asked.append(f"SELECT '{table}', {gap}, {longest}, 0, 0, 0, 0 FROM {FILE}.{table}")
    for table, name in _NUMBERED:
        asked.append(
            f"SELECT '{table}', false, 0, count(*), count(DISTINCT {name}), min({name}), max({name}) "
            f"FROM {FILE}.{table}"
        )
    limit = _most_rows(path)  # of regions there may be gaps
    found_rows = connection.execute(" UNION ALL ".join(asked)).fetchall()
    for table, gap, longest, rows, distinct, least, most in found_rows:
        if gap:
            raise _no_trace(path, f"its table {table!r} has gaps")
        if (longest or 0) > _LONGEST:
            raise _no_trace(path, f"its table {table!r} has a name of {longest:,} bytes")
        if rows and (distinct != rows or least < 0 or most >= (rows if table == "threads" else limit)):
            raise _no_trace(path, f"its {table} are not numbered from 0, each by a number of its own")
    if connection.execute(_OF_NOBODY).fetchone():
        raise _no_trace(path, "its regions are of threads that it has not")
    if "running" in found and connection.execute(_IMPOSSIBLE_LOOKS).fetchone():
        raise _no_trace(path, "threads that it has not could run, or at impossible times")
    if "messages" in found and connection.execute(_IMPOSSIBLE_MESSAGES).fetchone():
        raise _no_trace(path, "its messages are of impossible ranks or sizes")
    if "calls" in found and connection.execute(_IMPOSSIBLE_CALLS).fetchone():
        raise _no_trace(path, "some of its calls are not made within earlier ones")


def _check_columns(connection: Any, path: Path, table: str) -> None:
    """Refuse columns of other types, computed ones, and a table that lacks some."""
    expected, found = TABLES.get(table, {}), set()
    for name, kind, computed in _columns(connection, table):
        found.add(name)
        known = expected.get(name, kind if kind in _WHOLE_NUMBERS and table not in TABLES else "")
        if computed is not None or not _is_kind(kind, known):
            raise _no_trace(path, f"its table {table!r} has a column {name[:40]!r} of {kind[:40]}")
    for name in expected:
        if name not in found and name not in (ADDED_TO_USE if table == "page_use" else ADDED):
            raise _no_trace(path, f"its table {table!r} has no column {name!r}")


def _columns(connection: Any, table: str) -> Iterator[tuple[str, str, str | None]]:
    """Name, type, and how it is computed, if it is; the name of a table is one of those expected."""
    listed = f"SELECT name, type, dflt_value FROM pragma_table_info('{FILE}.{table}')"
    yield from connection.execute(listed).fetchall()


def _is_kind(found: str, expected: str) -> bool:
    """Whether a column has the expected type: the same enumerators, or any whole numbers for such."""
    if expected in ENUMS:
        # Earlier versions may have had fewer; a code is a position.
        listed = ", ".join(f"'{name}'" for name in ENUMS[expected])
        return found.startswith("ENUM(") and f"{listed}, ".startswith(f"{found[5:-1]}, ")
    return found == expected or (found in _WHOLE_NUMBERS and expected in NUMBERS)


def _check_views(connection: Any, path: Path) -> None:
    """Some traces of 0.2.0 packed many samples into words, which views take apart: only such are run."""
    rows = connection.execute(
        "SELECT sql FROM duckdb_views() WHERE database_name = 'trace' AND NOT internal UNION ALL "
        "SELECT 'a macro' FROM duckdb_functions() WHERE database_name = 'trace' AND NOT internal"
    )
    for (text,) in rows.fetchall():
        if not _PACKED_VIEW.fullmatch(text):
            raise _no_trace(path, "its samples are a view that numaplan did not write")


def _no_trace(path: Path, why: str) -> UsageError:
    return UsageError(f"{path}: not a trace of numaplan: {why}", "record it again")
