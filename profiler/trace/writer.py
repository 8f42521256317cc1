"""Write a trace.db: a temporary DuckDB file that takes its name when it is whole."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from numaplan.common import UsageError, atomic_output, version
from numaplan.profiler.trace.sample_tables import SampleTables
from numaplan.profiler.trace.schema import ENUMS, SCHEMA_VERSION, TABLES

ROWS = 4 * 122_880  # row groups of the database


class TraceWriter:
    """A trace being written; use as a context manager. The file appears only if the block succeeds.

    Raises UsageError when the folder is missing, not writable or full.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._stack = ExitStack()
        self._samples = 0
        self._held = 0
        self._tables = SampleTables()
        self._blocks: list[Mapping[str, np.ndarray[Any, Any]]] = []

    def __enter__(self) -> "TraceWriter":
        import duckdb

        self._temporary = self._stack.enter_context(atomic_output(self.path))
        self._stack.callback(_remove_companions, self._temporary)
        try:
            self._db = duckdb.connect(str(self._temporary))
            self._stack.callback(self._db.close)
            self._db.execute("SET enable_progress_bar = false")  # it would go to stdout
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
                self._flush()
                self._db.execute(self._tables.finish())
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
        rows = [(key, str(value)) for key, value in values.items()]
        self._run("INSERT INTO meta VALUES (?, ?)", rows)

    def add_rows(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Append rows, each in the column order of schema.TABLES[table]; for the small tables."""
        import pyarrow as pa

        columns = TABLES[table]
        given = list(rows)
        if not given:
            return
        arrow = pa.table(
            {name: [row[index] for row in given] for index, name in enumerate(columns)},
            schema=pa.schema([(name, _ARROW[kind]()) for name, kind in columns.items()]),
        )
        listed = ", ".join(f'"{name}"' for name in columns)
        self._insert(arrow, f"INSERT INTO {table} SELECT {listed} FROM incoming")

    def add_samples(self, columns: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Append samples from equally long arrays, one a column; event and level as codes.

        Small blocks are kept until they fill row groups: the file becomes smaller, and is written faster.
        """
        count = len(columns["time_ns"])
        if count == 0:
            return
        self._samples += count
        self._held += count
        if self._held >= ROWS:
            self._blocks.append(columns)
            self._flush()
        else:
            self._blocks.append({name: columns[name].copy() for name in TABLES["samples"]})

    def _flush(self) -> None:
        import pyarrow as pa

        if not self._blocks:
            return
        blocks, self._blocks, self._held = self._blocks, [], 0
        joined = {
            name: blocks[0][name] if len(blocks) == 1 else np.concatenate([block[name] for block in blocks])
            for name in TABLES["samples"]
        }
        before, stored, insert = self._tables.take(joined)
        for statement in before:
            self._run(statement)
        self._insert(pa.table(stored), insert)

    def _insert(self, arrow: object, statement: str) -> None:
        self._db.register("incoming", arrow)
        try:
            self._run(statement)
        finally:
            with suppress(Exception):
                self._db.unregister("incoming")

    def _run(self, statement: str, rows: list[tuple[str, str]] | None = None) -> None:
        try:
            if rows is None:
                self._db.execute(statement)
            else:
                self._db.executemany(statement, rows)
        except Exception as error:
            raise self._told(error) from error

    def _told(self, error: BaseException) -> BaseException:
        import duckdb

        if isinstance(error, duckdb.Error):
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


def _arrow_types() -> dict[str, Any]:
    def kind(name: str) -> Any:
        def make() -> Any:
            import pyarrow as pa

            return getattr(pa, name)()

        return make

    return {
        "VARCHAR": kind("string"),
        "INTEGER": kind("int32"),
        "BIGINT": kind("int64"),
        "UBIGINT": kind("uint64"),
        "DOUBLE": kind("float64"),
    }


_ARROW = _arrow_types()
