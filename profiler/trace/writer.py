"""Write a trace.db: a temporary DuckDB file that is renamed when it is complete."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from numaplan.common import UsageError, atomic_output, version

from .database import QUIET, driver, quoted
from .meta_numbers import wrong_number
from .schema import ADDED, COLUMNS, ENUMS, NUMBERS, SCHEMA_VERSION, TABLES, TIME, array_type

_ROW_GROUP = 63 * 2048  # rows: of columns of 8 bytes they fill four blocks of the database, nearly
_ROWS = 2 * _ROW_GROUP  # samples that are stored at once
_FEW = 122_880  # samples that the database compresses in no time
_BYTES = 32  # of a sample, at most: compressing takes the database as long again as storing

_SETTINGS = (
    QUIET,
    "SET memory_limit = '128MB'",  # written blocks would stay in memory as long as there is some
    # One stream of blocks: further threads only hand it around, and waiting row groups leave the cache.
    "SET threads = 1",
    "SET write_buffer_row_group_count = 1",
)
_TYPES = {**NUMBERS, "DOUBLE": "float64"}
Arrays = Mapping[str, np.ndarray[Any, Any]]


class TraceWriter:
    """A trace being written; use as a context manager. The file appears only if the block succeeds.

    Raises UsageError when the folder is missing, not writable or full.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._stack = ExitStack()
        self._stored = 0
        self._filled = 0
        self._incoming = {name: np.empty(_ROWS, array_type(kind)) for name, kind in COLUMNS.items()}

    def __enter__(self) -> "TraceWriter":
        self._temporary = self._stack.enter_context(atomic_output(self.path))
        self._stack.callback(_remove_companions, self._temporary)
        try:
            self._db = driver().connect()
            self._stack.callback(self._db.close)
            for setting in _SETTINGS:
                self._db.execute(setting)
            self._db.execute(f"ATTACH {quoted(self._temporary)} AS trace (ROW_GROUP_SIZE {_ROW_GROUP})")
            self._db.execute("USE trace")
            self._db.execute("BEGIN")
            for name, values in ENUMS.items():
                self._db.execute(f"CREATE TYPE {name} AS ENUM {values!r}")
            for table, columns in TABLES.items():
                if table != "samples":  # made once it is known whether there are many
                    self._create(table, columns)
            self.set_meta({"schema": SCHEMA_VERSION, "version": version()})
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise self._told(error) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            try:
                self._store_samples()
                self._db.execute("COMMIT")
                self._db.execute("CHECKPOINT")
                self._db.close()
            except BaseException as failure:
                self._stack.__exit__(type(failure), failure, failure.__traceback__)
                raise self._told(failure) from failure
        self._stack.__exit__(kind, error, trace)

    @property
    def sample_count(self) -> int:
        """Samples written so far."""
        return self._stored + self._filled

    def set_meta(self, values: Mapping[str, object]) -> None:
        """Add facts to the meta table (values are stored as text).

        Raises UsageError for a number that readers refuse, before there is a file in place of an earlier one.
        """
        if problem := wrong_number(values):
            raise UsageError(f"{self.path}: the trace cannot be written: {problem}", "record it again")
        self.add_rows("meta", [(key, str(value)) for key, value in values.items()])

    def add_rows(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Append rows, each in the column order of schema.TABLES[table]; for the small tables."""
        columns = TABLES[table]
        given = list(rows)
        if given:
            incoming = {
                name: _array([row[index] for row in given], kind)
                for index, (name, kind) in enumerate(columns.items())
            }
            self._run(f"INSERT INTO {table} SELECT * FROM incoming", incoming)

    def add_columns(self, table: str, columns: Arrays) -> None:
        """Append rows as arrays, one for each column of schema.TABLES[table]."""
        listed = ", ".join(TABLES[table])
        self._run(f"INSERT INTO {table} SELECT {listed} FROM incoming", columns)

    def add_samples(self, columns: Arrays) -> None:
        """Append samples, which are copied: equally long arrays, one a column; event and level as codes."""
        at, count = 0, len(columns[TIME])
        while at < count:
            stop = min(count, at + _ROWS - self._filled)
            filled = self._filled + stop - at
            for name, values in self._incoming.items():
                given = -1 if name in ADDED and name not in columns else columns[name][at:stop]
                values[self._filled : filled] = given
            at, self._filled = stop, filled
            if filled == _ROWS:
                self._store_samples()

    def instructions(self, most: int) -> list[tuple[str, int]]:
        """(process, address) of the instructions of the samples so far, those with the most first, and calls.

        The threads and calls are written already.
        """
        self._store_samples()
        try:
            found: list[tuple[str, int]] = self._db.execute(
                "SELECT process, ip FROM (SELECT process, ip, count(*) AS n FROM samples JOIN threads USING "
                "(thread) WHERE ip > 0 GROUP BY ALL UNION ALL SELECT DISTINCT process, ip, 0 FROM calls) "
                f"GROUP BY process, ip ORDER BY sum(n) DESC, process, ip LIMIT {most}"
            ).fetchall()
        except Exception as error:
            raise self._told(error) from error
        return found

    def _store_samples(self) -> None:
        """Store those that were taken; after the first time there is a table."""
        if not self._stored:
            kinds = _stored(self._taken()) if self._filled >= _FEW else COLUMNS
            self._create("samples", kinds)
        if self._filled:
            incoming = self._taken()
            values = ", ".join(
                _as_enum(name, COLUMNS[name], column) if COLUMNS[name] in ENUMS else name
                for name, column in incoming.items()
            )
            self._run(f"INSERT INTO samples SELECT {values} FROM incoming", incoming)
            self._stored += self._filled
            self._filled = 0

    def _taken(self) -> dict[str, np.ndarray[Any, Any]]:
        return {name: column[: self._filled] for name, column in self._incoming.items()}

    def _create(self, table: str, columns: Mapping[str, str]) -> None:
        listed = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
        self._run(f"CREATE TABLE {table} ({listed})")

    def _run(self, statement: str, incoming: Arrays | None = None) -> None:
        try:
            if incoming is not None:
                self._db.register("incoming", dict(incoming))
            self._db.execute(statement)
        except Exception as error:
            raise self._told(error) from error
        finally:
            if incoming is not None:
                with suppress(Exception):
                    self._db.unregister("incoming")

    def _told(self, error: BaseException) -> BaseException:
        if isinstance(error, driver().Error):
            text = str(error).partition("\n")[0]
            return UsageError(
                f"{self.path}: the trace cannot be written: {text}", "free space or choose another place"
            )
        return error


def _remove_companions(temporary: Path) -> None:
    """Remove DuckDB's write-ahead log and spill folder of a file that has been given up or renamed."""
    import shutil

    for suffix in (".wal", ".tmp"):
        companion = temporary.with_name(temporary.name + suffix)
        if companion.is_dir():
            shutil.rmtree(companion, ignore_errors=True)
        with suppress(OSError):
            companion.unlink()


def _array(values: list[Any], kind: str) -> np.ndarray[Any, Any]:
    """A column of a small table; text as objects, since arrays of text would be enums to the database."""
    return np.array(values, _TYPES.get(kind, np.object_))


def _stored(samples: Arrays) -> dict[str, str]:
    """The columns' types, and how they are compressed where there are many samples of which these are some.

    Those that gain most are, until a sample takes no more than _BYTES.
    """
    spans = {name: int(samples[name].max()) - int(samples[name].min()) for name in COLUMNS}
    varying = {name: samples[name].itemsize for name in COLUMNS if spans[name]}
    gains = {
        name: size - spans[name].bit_length() / 8
        for name, size in varying.items()
        if COLUMNS[name] in NUMBERS
    }
    room = float(sum(varying.values()))
    packed = set()
    for name in sorted(gains, key=lambda name: -gains[name]):
        if room > _BYTES and gains[name] >= 1:
            room -= gains[name]
            packed.add(name)
    return {
        name: f"{kind} USING COMPRESSION {'bitpacking' if name in packed else 'uncompressed'}"
        for name, kind in COLUMNS.items()
    }


def _as_enum(column: str, kind: str, codes: np.ndarray[Any, Any]) -> str:
    """An SQL expression that makes a column of codes, these, one of values of an enum.

    Case by case takes half the time that enum_range takes, the less the fewer there are.
    """
    values = [(code, ENUMS[kind][code]) for code in np.flatnonzero(np.bincount(codes)).tolist()]
    cases = " ".join(f"WHEN {code} THEN '{value}'::{kind}" for code, value in values)
    return f"CASE {column} {cases} END"
