"""What is read from a trace for the pages: who uses them, and who touched them first."""

from pathlib import Path

import numpy as np

from numaplan.mapper.page_stats import read_page_stats
from numaplan.profiler import EVENT_CODE, LEVEL_CODE, Machine, Trace, TraceWriter

START = 0x10010  # not at the start of a page: a region's pages are counted from its own start
PAGE = 4096


def test_first_touch_is_from_before_the_threads_start(tmp_path: Path) -> None:
    rows = [  # time, thread, offset in the region, write
        (0, 0, 0, True),
        (1, 0, PAGE, True),
        (50, 1, 8, True),
        (51, 2, PAGE - 1, False),
        (52, 1, PAGE, False),
        (53, 2, 2 * PAGE, True),
        (54, 1, 2 * PAGE, False),
    ]
    time, thread, offset, write = (np.array(column) for column in zip(*rows, strict=True))
    count = len(rows)
    path = tmp_path / "trace.db"
    with TraceWriter(path) as writer:
        writer.add_rows("machine", [(Machine.load("2x2").to_json().decode(),)])
        starts = enumerate((0, 40, 41))
        names = ("0", "0.1", "0.2")
        writer.add_rows("threads", [(i, "p0", names[i], 10 + i, 10, "t", at, -1) for i, at in starts])
        writer.add_rows("regions", [(0, "p0", "heap", "a", "b", START, 1 << 20, 0, 1, 0, -1)])
        writer.add_samples(
            {
                "time_ns": time.astype(np.int64),
                "thread": thread.astype(np.int32),
                "cpu": np.full(count, -1, np.int16),
                "node": np.full(count, -1, np.int16),
                "addr": (START + offset).astype(np.uint64),
                "phys_addr": np.zeros(count, np.uint64),
                "ip": np.zeros(count, np.uint64),
                "event": np.where(write, EVENT_CODE["store"], EVENT_CODE["load"]).astype(np.uint8),
                "is_write": write,
                "level": np.full(count, LEVEL_CODE["l1"], np.uint8),
                "latency": np.full(count, -1, np.int32),
                "region": np.zeros(count, np.int32),
            }
        )
        writer.set_meta({"backend": "test", "period": 1})
    with Trace.open(path) as trace:
        stats = read_page_stats(trace, [0, 1, 2])
    assert stats.toucher is not None
    columns = (stats.page, stats.thread, stats.accesses, stats.writes, stats.toucher)
    found = list(zip(*(column.tolist() for column in columns), strict=True))
    assert found == [
        (0, 0, 0, 0, 0),
        (0, 1, 1, 1, 0),
        (0, 2, 1, 0, 0),
        (1, 0, 0, 0, 0),
        (1, 1, 1, 0, 0),
        (2, 1, 1, 0, 2),
        (2, 2, 1, 1, 2),
    ]
    assert stats.before is not None and stats.before.tolist() == [1, 0, 0, 1, 0, 0, 0]
