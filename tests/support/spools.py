"""What the emulation plugin leaves of a process, as files."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from numaplan.profiler.backends.emulation.spool import HEADER, MAGIC, THREAD_RECORD, VERSION

STRIDE = 512


def write_threads(
    folder: Path,
    tids: Sequence[int],
    *,
    claimed: int | None = None,
    error: int = 0,
    stem: str = "emulate-7-100",
) -> Path:
    header = np.zeros(1, HEADER)
    header[0] = (
        *(MAGIC, VERSION, 7, STRIDE, error, 100, len(tids) if claimed is None else claimed),
        *(0, 0, 0, 0, 12_288, 0, 0, 0),
    )
    records = np.zeros(len(tids), THREAD_RECORD)
    records["tid"] = tids
    records["birth"] = range(len(tids))
    body = b"".join(record.tobytes().ljust(STRIDE, b"\0") for record in records)
    path = folder / f"{stem}.threads"
    path.write_bytes(header.tobytes().ljust(4096, b"\0") + body)
    return path


def write_pairs(folder: Path, kind: str, pairs: Sequence[tuple[int, int]], tail: bytes = b"") -> None:
    data = np.array(pairs, np.uint64).reshape(-1, 2).tobytes() + tail
    (folder / f"emulate-7-100.{kind}").write_bytes(data)
