"""The threads of a recording: one table from what the preload library logged and what the backend saw."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..identity.records import Identity, ThreadRecord
from ..sample_block import SeenThread
from .attribution import IntervalIndex


def path_key(path: str) -> tuple[int, ...]:
    """Sort key of a creation path (`0.10` after `0.9`)."""
    return tuple(int(part) for part in path.split("."))


def process_key(process: str) -> tuple[str, tuple[int, ...]]:
    """Sort key of a process name (`p0.1`, `r3`)."""
    return process[:1], path_key(process[1:])


@dataclass
class ThreadTable:
    """Threads in their final order (by process, then path); the row number is the thread's index."""

    records: list[ThreadRecord]

    def __post_init__(self) -> None:
        records = self.records
        tids = np.array([record.tid for record in records], np.int64)
        self._index = IntervalIndex(
            tids, tids + 1, [record.start_ns for record in records], [record.end_ns for record in records]
        )
        size = int(tids.max(initial=0)) + 1
        # Most tids belong to one thread for the whole run: one look-up by tid, no search.
        self._only = np.full(size, -1, np.int32)
        self._only[tids] = np.arange(len(records), dtype=np.int32)
        self._shared = np.bincount(tids, minlength=size) > 1
        self._plain = not self._shared.any()

    def find(self, tid: NDArray[np.int32], time_ns: NDArray[np.int64]) -> NDArray[np.int32]:
        """Thread index of each (tid, time), -1 for a tid that nobody announced."""
        if self._plain and len(tid) and tid.min() >= 0 and tid.max() < len(self._only):
            return self._only[tid]
        known = (tid >= 0) & (tid < len(self._only))
        safe = np.where(known, tid, 0)
        answer = np.where(known, self._only[safe], -1).astype(np.int32)
        twice = np.flatnonzero(known & self._shared[safe])
        if len(twice):
            answer[twice] = self._index.find(tid[twice], time_ns[twice])
        return answer


def merge_threads(identity: Identity, seen: Sequence[SeenThread]) -> list[ThreadRecord]:
    """The logged threads, and those that only the backend saw, named by their order of birth.

    A thread of a program that the preload library could not enter (static, setuid) gets the path `0.N` under
    its process, N counted in order of birth; its process is named in order of the pids.
    """
    records = list(identity.threads)
    process_of = {process.pid: process.process for process in identity.processes}
    logged: dict[int, list[ThreadRecord]] = {}
    for record in records:
        logged.setdefault(record.tid, []).append(record)
    children: dict[str, int] = {}
    for record in records:
        parts = record.path.split(".")
        if len(parts) == 2:
            children[record.process] = max(children.get(record.process, 0), int(parts[1]))
    unnamed = 0
    for thread in sorted(seen, key=lambda item: (item.pid, item.tid != item.pid, item.start_ns, item.tid)):
        if any(_same_thread(record, thread) for record in logged.get(thread.tid, ())):
            continue
        if thread.pid not in process_of:
            taken = set(process_of.values())
            while (name := f"p{unnamed}") in taken:
                unnamed += 1
            process_of[thread.pid] = name
        process = process_of[thread.pid]
        path = "0"
        if thread.tid != thread.pid:
            children[process] = children.get(process, 0) + 1
            path = f"0.{children[process]}"
        record = ThreadRecord(
            process, path, thread.pid, thread.tid, thread.name, thread.start_ns, thread.end_ns
        )
        records.append(record)
        logged.setdefault(thread.tid, []).append(record)
    return sorted(records, key=lambda item: (process_key(item.process), path_key(item.path), item.start_ns))


def _same_thread(record: ThreadRecord, thread: SeenThread) -> bool:
    """Whether a logged thread and a seen one (same tid) ran at the same time."""
    if record.pid != thread.pid:
        return False
    if record.path == "0" and thread.tid == thread.pid:
        return True  # a main thread goes on through every exec, of which the backend sees each part
    logged_end = record.end_ns if record.end_ns >= 0 else np.inf
    seen_end = thread.end_ns if thread.end_ns >= 0 else np.inf
    return record.start_ns <= seen_end and thread.start_ns <= logged_end
