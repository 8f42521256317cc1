"""A trace reduced to the parts of its ranks: done where the trace lies, by the rank itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from numaplan.common import UsageError
from numaplan.profiler import Trace

from ..workload.from_trace import read_trace
from ..workload.one_job import size_of_job
from .part import Messages, Part, PartFacts, rank_of_process, split
from .part_writing import write_part

_MESSAGES = (
    "SELECT rank, peer, kind::VARCHAR AS kind, bytes, count, thread FROM messages WHERE rank <> peer"
    " ORDER BY rank, peer, messages.kind, thread"
)


def reduce_trace(path: Path, job: Path) -> list[PartFacts]:
    """Write the parts of a trace's ranks into the folder of the job; returns what is told of each.

    Raises UsageError when the trace cannot be read, or is of no rank.
    """
    parts = parts_of_trace(path)
    for part in parts:
        write_part(job, part)
    return [part.facts for part in parts]


def parts_of_trace(path: Path) -> list[Part]:
    """The parts of a trace's ranks, in their order; raises as `reduce_trace`."""
    with Trace.open(path) as trace:
        if all(rank_of_process(row.process) is None for row in trace.thread_rows):
            raise UsageError(
                f"{path}: of no rank of a job", "record with 'nprof record --multiprocess' under its launcher"
            )
        facts = _job_facts(trace)
        messages = _messages(trace) if trace.meta.get("messages") else None
        numbers = {row.thread: (row.process, row.path) for row in trace.thread_rows}
    found = read_trace(path, pages=True, by_phase=False, first_touches=True)
    line = found.analysis.timeline
    ends = [line.start_ns + phase.end * line.slice_ns for phase in found.analysis.phases]
    facts |= {"recording": found.workload.sources["trace"], "messages": messages is not None}
    parts = split(found.workload, ends, facts)
    if messages is None:
        return parts
    return [replace(part, messages=_own(part, messages, numbers)) for part in parts]


def _job_facts(trace: Trace) -> dict[str, Any]:
    return {
        "ranks": size_of_job(trace.meta),
        "host": trace.meta.get("host", ""),
        "job": trace.meta.get("job", ""),
    }


def _messages(trace: Trace) -> dict[str, Any]:
    found: dict[str, Any] = trace.arrays(_MESSAGES)
    return found


def _own(part: Part, messages: Mapping[str, Any], names: Mapping[int, tuple[str, str]]) -> Messages:
    """Those of the rank, with threads as its part numbers them."""
    number = {key: place for place, key in enumerate(part.threads[: part.facts.own])}
    mine = np.flatnonzero(messages["rank"] == part.facts.rank)
    threads = [number.get(names.get(int(thread), ("", "")), -1) for thread in messages["thread"][mine]]
    return Messages(
        peer=messages["peer"][mine].astype(np.int64),
        kind=[str(kind) for kind in messages["kind"][mine]],
        bytes=messages["bytes"][mine].astype(np.int64),
        count=messages["count"][mine].astype(np.int64),
        thread=np.array(threads, np.int64),
    )
