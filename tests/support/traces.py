"""Traces written for tests: the columns that a test is about, and plain values for the others."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from numaplan.profiler import EVENT_CODE, LEVEL_CODE, Machine, TraceWriter
from numaplan.profiler.trace.schema import TABLES

PLAIN: dict[str, tuple[type, Any]] = {
    "time_ns": (np.int64, 0),
    "thread": (np.int32, 0),
    "cpu": (np.int32, -1),
    "node": (np.int32, -1),
    "addr": (np.uint64, 0),
    "phys_addr": (np.uint64, 0),
    "ip": (np.uint64, 0),
    "event": (np.uint8, EVENT_CODE["load"]),
    "is_write": (np.bool_, False),
    "level": (np.uint8, LEVEL_CODE["l1"]),
    "latency": (np.int32, -1),
    "region": (np.int32, -1),
    "reach": (np.int8, -1),
    "call": (np.int32, -1),
}


def write_trace(
    path: Path,
    samples: Mapping[str, Any],
    threads: Sequence[tuple[Any, ...]],
    regions: Sequence[tuple[Any, ...]] = (),
    meta: Mapping[str, object] | None = None,
    machine: str = "2x2",
    transfers: Sequence[tuple[int, ...]] | None = None,
    page_use: Sequence[tuple[int, ...]] | None = None,
    messages: Sequence[tuple[Any, ...]] | None = None,
    names: Sequence[tuple[Any, ...]] = (),
    running: Sequence[tuple[int, int]] = (),
    counters: Sequence[tuple[int, int, str, float]] = (),
) -> Path:
    """A trace; samples: columns (single values stand for all), time_ns among them; threads, regions,
    transfers, page_use, messages, names, running, counters: rows of these tables (None: nothing was
    counted)."""
    unknown = set(samples) - set(PLAIN)
    assert not unknown, unknown
    count = len(samples["time_ns"])
    columns = {
        name: np.broadcast_to(np.asarray(samples.get(name, plain)).astype(kind), (count,)).copy()
        for name, (kind, plain) in PLAIN.items()
    }
    with TraceWriter(path) as writer:
        writer.add_rows("machine", [(Machine.load(machine).to_json().decode(),)])
        writer.add_rows("threads", list(threads))
        writer.add_rows("regions", list(regions))
        writer.add_samples(columns)
        writer.add_rows("transfers", transfers or [])
        width = len(TABLES["page_use"])
        writer.add_rows("page_use", [(*row, *[-1] * (width - len(row))) for row in page_use or []])
        writer.add_rows("messages", messages or [])
        writer.add_rows("names", list(names))
        writer.add_rows("running", list(running))
        writer.add_rows("counters", list(counters))
        tables = {"transfers": transfers, "page_use": page_use}
        counted = {name: "all" for name, rows in tables.items() if rows is not None}
        counted |= {} if messages is None else {"messages": "pmpi"}
        writer.set_meta({"backend": "test", **counted, **(meta or {})})
    return path
