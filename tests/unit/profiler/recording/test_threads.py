"""Threads: logged and seen ones make one table; a tid that came back is told apart by time."""

import numpy as np

from numaplan.profiler.identity.records import Identity, ProcessRecord, ThreadRecord
from numaplan.profiler.recording.threads import ThreadTable, merge_threads, path_key
from numaplan.profiler.sample_block import SeenThread


def identity(threads: list[ThreadRecord], processes: list[ProcessRecord] | None = None) -> Identity:
    return Identity(processes=processes or [], threads=threads, regions=[], modules=[])


def thread(path: str, tid: int, start: int = 0, end: int = -1) -> ThreadRecord:
    return ThreadRecord("p0", path, 100, tid, "app", start, end)


def test_paths_sort_by_number() -> None:
    paths = ["0.10", "0.9", "0", "0.9.1"]
    assert sorted(paths, key=path_key) == ["0", "0.9", "0.9.1", "0.10"]


def test_a_tid_that_came_back_is_told_apart_by_time() -> None:
    table = ThreadTable([thread("0", 100), thread("0.1", 7, 0, 50), thread("0.2", 7, 60, 90)])
    tid = np.array([7, 7, 7, 100, 8, 1 << 20], np.int32)
    time = np.array([10, 55, 60, 10, 10, 10], np.int64)
    assert table.find(tid, time).tolist() == [1, -1, 2, 0, -1, -1]


def test_threads_that_only_the_backend_saw_get_paths_by_birth() -> None:
    seen = [
        SeenThread(pid=5, tid=9, start_ns=30),
        SeenThread(pid=5, tid=5, start_ns=0),
        SeenThread(pid=5, tid=7, start_ns=20),
    ]
    records = merge_threads(identity([]), seen)
    assert [(record.process, record.path, record.tid) for record in records] == [
        ("p0", "0", 5),
        ("p0", "0.1", 7),
        ("p0", "0.2", 9),
    ]


def test_a_seen_thread_that_was_logged_is_not_counted_twice() -> None:
    process = ProcessRecord("p0", 100, "", ("app",), "app", "", 0, -1)
    logged = [thread("0", 100), thread("0.1", 101, 5)]
    seen = [SeenThread(100, 100, start_ns=1), SeenThread(100, 101, start_ns=4), SeenThread(100, 102)]
    records = merge_threads(identity(logged, [process]), seen)
    assert [(record.path, record.tid) for record in records] == [("0", 100), ("0.1", 101), ("0.2", 102)]
