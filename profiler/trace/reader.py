"""Read a trace.db: checked when opened, then tables as DataFrames and samples as blocks of arrays.

A command may open a trace while numpy is still being loaded: nothing here needs it before samples are read.
"""

import json
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec

from numaplan.common import BAD_JSON, UsageError, as_text, facts_html, shell_line
from numaplan.machine import Machine

from .database import QUIET, limited, open_database, show_tables
from .meta_numbers import wrong_number
from .rows import RegionRow, SourceName, ThreadRow
from .sample_columns import as_type, lacks, listed, of_arrow
from .schema import ADDED, COLUMNS, READABLE_VERSIONS, TABLES

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    Array = np.ndarray[Any, Any]

BLOCK = 1 << 20


class Trace:
    """An open trace, read only. Use `Trace.open` as a context manager.

    part: the span of time [start, end) in ns that all samples are from, None for the whole recording.
    """

    def __init__(self, path: Path, connection: Any, part: tuple[int, int] | None = None) -> None:
        self.path = path
        self._db = connection
        self.part = part
        rows = self.rows("SELECT key, value FROM meta")
        self.meta: dict[str, str] = {str(key): str(value) for key, value in rows}

    @property
    def _schema(self) -> str:
        return self.meta.get("schema", "")

    @staticmethod
    def open(path: str | os.PathLike[str], exporting_to: Path | None = None) -> "Trace":
        """Open a trace; raises UsageError when it is missing, cut short, of another schema or no trace.

        Whatever it holds, queries reach no other file, but for one folder where that is asked for.
        """
        connection = open_database(Path(path), exporting_to)
        try:
            trace = Trace(Path(path), connection)
            trace._check()
        except BaseException:
            connection.close()
            raise
        return trace

    def __enter__(self) -> "Trace":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the file."""
        self._db.close()

    def between(self, start_ns: int, end_ns: int) -> "Trace":
        """The same trace with no samples and losses but those of [start_ns, end_ns); to be closed as well.

        Without counters, which are of the whole run. `duration_ns` is that of the part.
        """
        connection = self._cursor((start_ns, end_ns))
        try:
            part = Trace(self.path, connection, (start_ns, end_ns))
        except BaseException:
            connection.close()
            raise
        whole = self.duration_ns
        part.meta["duration_ns"] = str(max(0, min(end_ns, whole) - start_ns))
        return part

    @cached_property
    def duration_ns(self) -> int:
        """How long the recording is; by its last sample where that is not written."""
        known = int(self.meta.get("duration_ns", "0"))
        return known or 1 + int(self.rows("SELECT coalesce(max(time_ns), -1) FROM samples")[0][0])

    @property
    def argv(self) -> list[str]:
        """The recorded program's command line; empty where it is not known."""
        text = self.meta.get("argv", "[]")
        try:
            return msgspec.json.decode(text, type=list[str])
        except BAD_JSON:
            return _with_surrogates(text)

    @cached_property
    def machine(self) -> Machine:
        """The machine it was recorded on (or for, when emulated)."""
        rows = self.rows("SELECT json FROM machine")
        if len(rows) != 1:
            raise UsageError(f"{self.path}: holds {len(rows)} machines", "record it again")
        return Machine.from_json(str(rows[0][0]), f"{self.path} (machine)")

    @cached_property
    def sample_count(self) -> int:
        """How many samples there are, of all events."""
        return int(self.rows("SELECT count(*) FROM samples")[0][0])

    @cached_property
    def thread_rows(self) -> list[ThreadRow]:
        """The threads table, ordered by thread index, asked once."""
        listed = ", ".join(TABLES["threads"])
        return [ThreadRow(*row) for row in self.rows(f"SELECT {listed} FROM threads ORDER BY thread")]

    @cached_property
    def region_rows(self) -> list[RegionRow]:
        """The regions table, ordered by region index, asked once."""
        listed = ", ".join(TABLES["regions"])
        return [RegionRow(*row) for row in self.rows(f"SELECT {listed} FROM regions ORDER BY region")]

    @cached_property
    def source_names(self) -> dict[int, SourceName]:
        """What the source calls regions, by region, of those where it is known; asked once."""
        listed = ", ".join(TABLES["names"])
        asked = f"SELECT {listed} FROM names SEMI JOIN regions USING (region) ORDER BY region"
        rows = (SourceName(*row) for row in self.rows(asked))
        return {row.region: row for row in rows if row.line > 0 or row.name}

    def has(self, column: str) -> bool:
        """Whether samples have a column, which those of earlier versions may not."""
        return not lacks(column, self._schema)

    def read_small_tables(self) -> None:
        """Ask now what is asked once: machine, threads, regions, how many samples."""
        _ = self.machine, self.thread_rows, self.region_rows, self.sample_count

    def frame(self, table: str) -> "pd.DataFrame":
        """A table (docs/reference/trace.md) as a DataFrame; raises UsageError for one that there is not."""
        if table not in TABLES:
            raise UsageError(f"a trace has no table {table!r}", f"choose from {', '.join(TABLES)}")
        return self.query(f"FROM {table}")

    def _repr_html_(self) -> str:
        part = "" if self.part is None else f" (from {self.part[0]:,} to {self.part[1]:,} ns)"
        facts = {
            "program": shell_line(self.argv),
            "recorded by": self.meta.get("backend", ""),
            "machine": f"{self.machine.name or 'unnamed'}: {len(self.machine.nodes)} nodes, "
            f"{len(self.machine.cpus)} cpus",
            "threads": f"{len(self.thread_rows):,}",
            "regions": f"{len(self.region_rows):,}",
            "samples": f"{self.sample_count:,}{part}",
        }
        return facts_html(f"Trace {self.path.name}", facts)

    def threads(self) -> "pd.DataFrame":
        """The threads table, ordered by thread index."""
        return self.query("SELECT * FROM threads ORDER BY thread")

    def regions(self) -> "pd.DataFrame":
        """The regions table, ordered by region index."""
        return self.query("SELECT * FROM regions ORDER BY region")

    def counters(self) -> "pd.DataFrame":
        """The counters table."""
        return self.query("SELECT * FROM counters ORDER BY time_ns, thread, event")

    def losses(self) -> "pd.DataFrame":
        """The losses table."""
        return self.query("SELECT * FROM losses ORDER BY time_ns")

    def query(self, sql: str, parameters: Sequence[object] = ()) -> "pd.DataFrame":
        """The answer to a query as a DataFrame; raises UsageError when the file is damaged."""
        with limited(self._db, self.path):
            frame: pd.DataFrame = self._db.execute(sql, list(parameters)).df()
            return frame

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The answer to a query as tuples (cheaper to start than `query`: no pandas)."""
        with limited(self._db, self.path):
            answer: list[tuple[Any, ...]] = self._db.execute(sql, list(parameters)).fetchall()
            return answer

    def arrays(self, sql: str, parameters: Sequence[object] = ()) -> "dict[str, Array]":
        """The answer to a query as one numpy array a column (no pandas)."""
        with limited(self._db, self.path):
            found: dict[str, Any] = self._db.execute(sql, list(parameters)).fetchnumpy()
        # Gaps make an array a masked one; a plain one needs no numpy.ma, which is slow to load.
        return {
            name: values.filled(0) if hasattr(values, "filled") else values for name, values in found.items()
        }

    def all_samples(self, columns: Sequence[str]) -> "dict[str, Array]":
        """All samples as equally long arrays, event and level as codes, in the order of the file.

        For traces whose samples are known to fit into memory.
        """
        return self._samples(columns, f"SELECT {listed(columns, self._schema)} FROM samples")

    def sample_blocks(
        self, columns: Sequence[str], where: str = "", order: str = "", block: int = BLOCK
    ) -> "Iterator[dict[str, Array]]":
        """Samples as dicts of equally long arrays, `block` rows at a time; event and level as codes.

        where: an SQL condition on the samples table; order: SQL columns to order by (sorted on disk when
        they do not fit in memory). Never holds the whole table. Raises UsageError for an unknown column.
        """
        for column in columns:
            if column not in COLUMNS:
                raise UsageError(f"samples have no column {column!r}", f"choose from {', '.join(COLUMNS)}")
        sql = f"SELECT {listed(columns, self._schema)} FROM samples"
        if where:
            sql += f" WHERE {where}"
        if order:
            sql += f" ORDER BY {order}"
        if self.sample_count <= block:
            # One block at most: as numpy's own, since loading Arrow takes longer than reading it.
            found = self._samples(columns, sql)
            if len(found[columns[0]]):
                yield found
            return
        cursor = self._arrow_cursor()
        try:
            with limited(cursor, self.path):
                batches = cursor.sql(sql).to_arrow_reader(block)
            while True:
                # Each by itself: whoever takes them may take as long as he likes.
                with limited(cursor, self.path):
                    batch = next(batches, None)
                if batch is None:
                    return
                yield {name: of_arrow(batch.column(name), COLUMNS[name]) for name in columns}
        finally:
            cursor.close()

    def _arrow_cursor(self) -> Any:
        """A cursor that answers in Arrow batches, which takes DuckDB's Python part."""
        import duckdb  # noqa: F401  (its Python part adds those methods to the native one)

        return self._cursor(self.part)

    def _cursor(self, part: tuple[int, int] | None) -> Any:
        """Another connection to the same file."""
        cursor = self._db.cursor()
        try:
            show_tables(cursor, part)
            cursor.execute(QUIET)
        except BaseException:
            cursor.close()
            raise
        return cursor

    def _samples(self, columns: Sequence[str], sql: str) -> "dict[str, Array]":
        """The answer to a query for columns of samples, in their own types."""
        found = self.arrays(sql)
        return {name: as_type(found[name], COLUMNS[name]) for name in columns}

    def _check(self) -> None:
        found = self.meta.get("schema")
        if found not in READABLE_VERSIONS:
            known = ", ".join(READABLE_VERSIONS)
            raise UsageError(
                f"{self.path}: trace schema {found}, this version reads {known}", "record it again"
            )
        if problem := wrong_number(self.meta):
            raise UsageError(f"{self.path}: {problem}", "record it again")
        for column in ADDED:
            if not lacks(column, self._schema):
                self.rows(f"SELECT {column} FROM samples WHERE false")


def _with_surrogates(text: str) -> list[str]:
    """The words of a JSON list as earlier versions wrote those that are no UTF-8; empty for another text."""
    try:
        words = json.loads(text)
    except (ValueError, RecursionError):
        return []
    is_list = isinstance(words, list) and all(isinstance(word, str) for word in words)
    return as_text(words) if is_list else []
