"""Write a part: into a folder of another name that is renamed, so that nobody sees half a part."""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from numaplan.analyzer import PageCounts
from numaplan.common import UsageError

from .part import PAGE_EXTRAS, PAGE_ROWS, Part
from .part_tables import SCHEMA, SCHEMAS, TABLES


def write_part(folder: Path, part: Part) -> Path:
    """Write a part into a job's folder, in place of one that is there; returns where it is.

    Raises UsageError when it cannot be written.
    """
    target = folder / f"rank={part.facts.rank}"
    temporary = folder / f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
        for name, columns in _columns(part).items():
            meta = {"numaplan": SCHEMA}
            if name == "threads":
                meta["numaplan.facts"] = msgspec.json.encode(part.facts).decode()
                meta["numaplan.machine"] = part.machine.to_json().decode()
            table = pa.table(columns, schema=SCHEMAS[name].with_metadata(meta))
            pq.write_table(table, temporary / f"{name}.parquet", compression="zstd")
        if target.exists():
            old = temporary.with_suffix(".old")
            target.rename(old)
            temporary.rename(target)
            shutil.rmtree(old, ignore_errors=True)
        else:
            temporary.rename(target)
    except OSError as error:
        raise UsageError(
            f"{target}: {error.strerror or error}", "choose a folder that can be written"
        ) from error
    finally:
        with suppress(OSError):
            shutil.rmtree(temporary)
    return target


def _columns(part: Part) -> dict[str, dict[str, Any]]:
    own, count = part.facts.own, len(part.threads)

    def all_threads(values: Sequence[Any] | np.ndarray[Any, Any] | None) -> list[Any]:
        """What only own threads have, None for the others."""
        listed = values.tolist() if isinstance(values, np.ndarray) else list(values or [])
        return [*listed, *[None] * (count - len(listed))]

    tables: dict[str, dict[str, Any]] = {
        "threads": {
            "thread": np.arange(count, dtype=np.int32),
            "process": [process for process, _ in part.threads],
            "path": [path for _, path in part.threads],
            "name": all_threads(part.names),
            "load": all_threads(part.loads),
            "accesses": all_threads(part.accesses),
            "beyond_first_cache": all_threads(part.beyond),
            "start_ns": all_threads([start for start, _ in part.lives]),
            "end_ns": all_threads([end for _, end in part.lives]),
            "keeps": all_threads(part.keeps),
            "node": all_threads(part.seen_on),
            "cache": all_threads(part.domain),
            "cache_misses": all_threads(part.missed),
        },
        "pairs": _pairs(part),
        "phases": {
            "phase": np.repeat(np.arange(len(part.phases), dtype=np.int32), own),
            "end_ns": np.repeat(part.phase_ends, own),
            "rate": np.repeat(part.phase_rates, own),
            "thread": np.tile(np.arange(own, dtype=np.int32), len(part.phases)),
            "load": part.phases.ravel(),
        },
    }
    if part.pages is not None:
        tables |= {"regions": _regions(part.pages), "pages": _page_rows(part.pages)}
    if part.messages is not None:
        found = part.messages
        tables["messages"] = {name: getattr(found, name) for name in TABLES["messages"]}
    return tables


def _pairs(part: Part) -> dict[str, Any]:
    kinds, rows, columns, values = [], [], [], []
    for name, matrix in part.matrices.items():
        row, column = np.nonzero(matrix)
        kinds += [name] * len(row)
        rows.append(row)
        columns.append(column)
        values.append(matrix[row, column])
    joined = [np.concatenate(arrays) for arrays in (rows, columns, values)]
    return {
        "kind": kinds,
        "thread": joined[0].astype(np.int32),
        "other": joined[1].astype(np.int32),
        "value": joined[2],
    }


def _regions(pages: PageCounts) -> dict[str, Any]:
    keys = pages.regions
    lives = np.full((len(keys), 2), -1) if pages.lives is None else pages.lives
    words = ("process", "kind", "name", "build_id", "thread", "sequence", "bytes")
    return {
        "region": np.arange(len(keys), dtype=np.int32),
        **{word: [getattr(key, word) for key in keys] for word in words},
        "start_ns": lives[:, 0] if pages.lives is not None else [None] * len(keys),
        "end_ns": lives[:, 1] if pages.lives is not None else [None] * len(keys),
        "source": [pages.sources.get(key) for key in keys],
    }


def _page_rows(pages: PageCounts) -> dict[str, Any]:
    answer = {}
    for name in (*PAGE_ROWS, *PAGE_EXTRAS):
        column, kind = getattr(pages, name), TABLES["pages"][name]
        known = column is not None
        answer[name] = (
            pa.array(column.astype(kind.to_pandas_dtype())) if known else pa.nulls(len(pages), kind)
        )
    return answer
