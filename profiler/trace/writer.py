"""Write a trace.db: a temporary DuckDB file that is renamed when it is complete."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from numaplan.common import UsageError, atomic_output, version

from .driver import driver
from .sample_tables import ROW_GROUP, SampleTables
from .schema import ENUMS, NUMBERS, SCHEMA_VERSION, TABLES

_SETTINGS = (
    "SET enable_progress_bar = false",  # it would go to stdout
    "SET memory_limit = '256MB'",  # written blocks would stay in memory as long as there is some
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
        self._samples = 0
        self._tables = SampleTables(self._run)

    def __enter__(self) -> "TraceWriter":
        self._temporary = self._stack.enter_context(atomic_output(self.path))
        self._stack.callback(_remove_companions, self._temporary)
        try:
            self._db = driver().connect()
            self._stack.callback(self._db.close)
            for setting in _SETTINGS:
                self._db.execute(setting)
            name = str(self._temporary).replace("'", "''")
            self._db.execute(f"ATTACH '{name}' AS trace (ROW_GROUP_SIZE {ROW_GROUP})")
            self._db.execute("USE trace")
            for name, values in ENUMS.items():
                self._db.execute(f"CREATE TYPE {name} AS ENUM {values!r}")
            for table, columns in TABLES.items():
                if table == "samples":  # SampleTables knows how when it has seen some
                    continue
                listed = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
                self._db.execute(f"CREATE TABLE {table} ({listed})")
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
                self._tables.finish()
                self._db.execute("CHECKPOINT")
                self._db.close()
            except Exception as failure:
                self._stack.__exit__(type(failure), failure, failure.__traceback__)
                raise self._told(failure) from failure
        self._stack.__exit__(kind, error, trace)

    @property
    def sample_count(self) -> int:
        """Samples written so far."""
        return self._samples

    def set_meta(self, values: Mapping[str, object]) -> None:
        """Add facts to the meta table (values are stored as text)."""
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

    def add_samples(self, columns: Arrays) -> None:
        """Append samples from equally long arrays, one a column; event and level as codes."""
        count = len(columns["time_ns"])
        if count:
            self._samples += count
            self._tables.add(columns)

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
