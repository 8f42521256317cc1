"""Traces as DuckDB writes them, with tables, values and bytes that numaplan would not have written."""

import random
from contextlib import suppress
from pathlib import Path

import duckdb

from numaplan.profiler.trace.schema import TABLES
from tests.fuzz.hostile_json import hostile_json, hostile_value

_SOURCES = (
    "read_text('{secret}')", "range(100000000000)", "read_csv('{secret}')",
    "glob('/etc/*')", "duckdb_settings()",
    "(SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b)", "own.main.threads",
)  # fmt: skip
_CATALOG = (
    "CREATE MACRO count(x := 1) AS 7777",
    "CREATE MACRO coalesce(a, b) AS (SELECT content FROM read_text('{secret}'))",
    "CREATE MACRO max(a) AS TABLE SELECT * FROM range(100000000000)",
    "CREATE TABLE samples_1 (word_0 UBIGINT)",
    "CREATE TABLE \"x\x1b[2J\" (a INTEGER)",
    "CREATE VIEW sample_codes AS SELECT * FROM samples",
    "CREATE SEQUENCE threads_seq",
    "CREATE TYPE memory_level2 AS ENUM ('a')",
    "CREATE SCHEMA other",
    "CREATE SCHEMA temp2; CREATE TABLE temp2.samples (a INTEGER)",
    "CREATE INDEX i ON threads (thread)",
    "DROP TABLE losses; CREATE TABLE losses (time_ns BIGINT, events BIGINT AS (length(repeat('x', 999999))))",
    "DROP TABLE losses; CREATE TABLE losses (time_ns BIGINT, events BIGINT CHECK (events > 0))",
    "ALTER TABLE meta ADD COLUMN note VARCHAR",
    "ALTER TABLE threads RENAME TO samples_2",
    "ALTER TABLE regions DROP COLUMN name",
    "ALTER TABLE threads ALTER name TYPE STRUCT(a VARCHAR) USING struct_pack(a := name)",
    "ALTER TABLE samples ALTER addr TYPE HUGEINT",
    "ALTER TABLE samples ALTER event TYPE VARCHAR",
    "ALTER TABLE counters ALTER value TYPE DECIMAL(38, 10)",
)  # fmt: skip
_ROWS = (
    "DELETE FROM {table}",
    "INSERT INTO {table} SELECT * FROM {table}",
    "INSERT INTO {table} SELECT t.* FROM (FROM {table} LIMIT 20) t, range(3000)",
    "DELETE FROM {table} USING SAMPLE 50%",
)
_WHERE = ("", " WHERE random() < 0.5", " WHERE rowid = 0", " WHERE rowid % 2 = 1")


def make_hostile(path: Path, secret: Path, chance: random.Random) -> None:
    """Change a sound trace in place, in one to three ways; `secret` is a file that no reader may show."""
    connection = duckdb.connect(str(path), config={"memory_limit": "1GB", "threads": 1})
    try:
        for _ in range(chance.randint(1, 3)):
            with suppress(duckdb.Error, ValueError):  # some changes exclude others
                chance.choice((_view, _catalog, _values, _values, _values, _values, _meta, _meta, _rows))(
                    connection, str(secret), chance
                )
    finally:
        connection.close()
    if chance.random() < 0.1:
        _damage(path, chance)


def _view(connection: duckdb.DuckDBPyConnection, secret: str, chance: random.Random) -> None:
    """A view in place of a table, with its columns, some of which come from elsewhere."""
    table = chance.choice(list(TABLES))
    source = chance.choice(_SOURCES).format(secret=secret)
    connection.execute(f"ALTER TABLE {table} RENAME TO kept")
    listed = ", ".join(TABLES[table])
    made = chance.choice(
        (f"SELECT {listed} FROM kept, {source}", f"SELECT * FROM {source}", "SELECT * FROM kept")
    )
    connection.execute(f"CREATE VIEW {table} AS {made}")


def _catalog(connection: duckdb.DuckDBPyConnection, secret: str, chance: random.Random) -> None:
    connection.execute(chance.choice(_CATALOG).format(secret=secret))


def _values(connection: duckdb.DuckDBPyConnection, _secret: str, chance: random.Random) -> None:
    table = chance.choice(list(TABLES))
    column = chance.choice(list(TABLES[table]))
    value = hostile_value(chance)
    cast = chance.choice((str(value) if isinstance(value, (dict, list)) else value, None))
    connection.execute(f"UPDATE {table} SET {column} = ?{chance.choice(_WHERE)}", [cast])


def _meta(connection: duckdb.DuckDBPyConnection, _secret: str, chance: random.Random) -> None:
    """A fact of the recording, or the machine, changed in its text."""
    if chance.random() < 0.4:
        ((text,),) = connection.execute("SELECT json FROM machine").fetchall()
        made = hostile_json(str(text).encode(), chance).decode(errors="replace")
        connection.execute("UPDATE machine SET json = ?", [made])
        return
    keys = [key for (key,) in connection.execute("SELECT key FROM meta ORDER BY key").fetchall()]
    value = str(hostile_value(chance)).replace("@deep@", "[" * 100_000).replace("@wide@", "9" * 5000)
    connection.execute("UPDATE meta SET value = ? WHERE key = ?", [value, chance.choice(keys)])


def _rows(connection: duckdb.DuckDBPyConnection, _secret: str, chance: random.Random) -> None:
    connection.execute(chance.choice(_ROWS).format(table=chance.choice(list(TABLES))))


def _damage(path: Path, chance: random.Random) -> None:
    """Bytes changed, or the file cut short."""
    data = bytearray(path.read_bytes())
    if chance.random() < 0.3:
        del data[chance.randrange(len(data)) :]
    for _ in range(chance.randint(0, 20)):
        if data:
            data[chance.randrange(len(data))] = chance.randrange(256)
    path.write_bytes(data)
