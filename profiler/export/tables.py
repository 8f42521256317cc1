"""A trace's tables as files, one each."""

import errno
import os
from pathlib import Path

from numaplan.common import UsageError, uninterrupted

from ..trace.database import quoted
from ..trace.reader import Trace
from ..trace.schema import TABLES

OPTIONS = {"parquet": "FORMAT parquet, COMPRESSION zstd", "csv": "FORMAT csv, HEADER"}
_NO_ROOM = os.strerror(errno.ENOSPC)


def export_tables(trace: Trace, folder: Path, kind: str, written: list[Path]) -> list[Path]:
    """Write one file a table into `folder`, for which the trace was opened, and add them to `written`.

    kind: one of OPTIONS. Raises UsageError when the folder cannot be written. Each file appears whole or not
    at all; a signal waits for the end of a table.
    """
    from numaplan.common import atomic_output

    for table in TABLES:
        target = folder / f"{table}.{kind}"
        try:
            # DuckDB, interrupted while it writes Parquet, now and then waits for itself for ever.
            with atomic_output(target) as temporary, uninterrupted():
                trace.rows(f"COPY {table} TO {quoted(temporary)} ({OPTIONS[kind]})")
        except UsageError as error:
            if _NO_ROOM not in error.what:
                raise
            raise UsageError(f"{target}: {_NO_ROOM}", "free some space there, or write elsewhere") from error
        written.append(target)
    return written
