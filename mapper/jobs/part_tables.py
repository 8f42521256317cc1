"""The tables of a part as Parquet: `job/rank=3/threads.parquet` and so on, hive folders by rank.

Each file says its schema in its key-value metadata; that of the threads has the facts and the machine, too.
"""

import os
import re
from pathlib import Path

import pyarrow as pa

from numaplan.common import UsageError

SCHEMA = "numaplan/part/1"
FOLDER = re.compile(r"rank=(0|[1-9][0-9]{0,7})")
TABLES: dict[str, dict[str, pa.DataType]] = {
    "threads": {
        "thread": pa.int32(),
        "process": pa.string(),
        "path": pa.string(),
        "name": pa.string(),
        "load": pa.float64(),
        "accesses": pa.float64(),
        "beyond_first_cache": pa.float64(),
        "start_ns": pa.int64(),
        "end_ns": pa.int64(),
        "keeps": pa.bool_(),
        "node": pa.int32(),
        "cache": pa.int64(),
        "cache_misses": pa.list_(pa.float64()),
    },
    "pairs": {"kind": pa.string(), "thread": pa.int32(), "other": pa.int32(), "value": pa.float64()},
    "phases": {
        "phase": pa.int32(),
        "end_ns": pa.int64(),
        "rate": pa.float64(),
        "thread": pa.int32(),
        "load": pa.float64(),
    },
    "regions": {
        "region": pa.int32(),
        "process": pa.string(),
        "kind": pa.string(),
        "name": pa.string(),
        "build_id": pa.string(),
        "thread": pa.string(),
        "sequence": pa.int32(),
        "bytes": pa.int64(),
        "start_ns": pa.int64(),
        "end_ns": pa.int64(),
        "source": pa.string(),
    },
    "pages": {
        **{"region": pa.int32(), "page": pa.int64(), "thread": pa.int32()},
        **{"accesses": pa.float64(), "writes": pa.float64(), "toucher": pa.int32(), "before": pa.float64()},
        **{
            "phase": pa.int32(),
            "first_ns": pa.int64(),
            "missed": pa.float64(),
            "missed_before": pa.float64(),
        },
    },
    "messages": {
        "peer": pa.int32(),
        "kind": pa.string(),
        "bytes": pa.int64(),
        "count": pa.int64(),
        "thread": pa.int32(),
    },
}
SCHEMAS = {name: pa.schema(list(columns.items())) for name, columns in TABLES.items()}
AGAIN = "make the part again with 'nmap reduce'"
ONE_RUN = "give the parts of one run: empty the folder, and record or reduce that into it"


def part_folders(job: Path) -> dict[int, Path]:
    """The folders of a job's parts by rank, ascending; raises UsageError where there is none."""
    try:
        names = sorted(entry.name for entry in os.scandir(job))
    except OSError as error:
        raise UsageError(f"{job}: {error.strerror}", "give the folder of 'nprof record --reduce'") from error
    found = {int(match[1]): job / name for name in names if (match := FOLDER.fullmatch(name))}
    if not found:
        raise UsageError(f"{job}: no part of a rank (rank=0, …)", "make parts with 'nmap reduce'")
    return dict(sorted(found.items()))
