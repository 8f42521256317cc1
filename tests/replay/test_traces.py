"""Traces that earlier versions wrote are read as before."""

import lzma
from pathlib import Path

import numpy as np

from numaplan.analyzer import analyze_trace
from numaplan.profiler import Trace
from numaplan.profiler.trace.schema import COLUMNS

TRACES = Path(__file__).parent / "traces"


def test_packed_samples_are_read_through_their_view(tmp_path: Path) -> None:
    """Version 0.2.0 put the columns of many samples into words, from which a view took them."""
    path = tmp_path / "packed.db"
    path.write_bytes(lzma.decompress((TRACES / "packed.db.xz").read_bytes()))
    row = np.arange(300)
    want = {
        "time_ns": row * 10,
        "thread": row % 4,
        "cpu": row % 4,
        "node": row % 2,
        "addr": 0x7F0000000000 + row * 64,
        "phys_addr": 0 * row,
        "ip": 0x401000 + 0 * row,
        "event": row % 2,
        "is_write": row % 2 == 1,
        "level": np.where(row < 150, 1, 5),
        "latency": np.where(row < 150, -1, 400),
        "region": 0 * row,
        "reach": -1 + 0 * row,
    }
    with Trace.open(path) as trace:
        assert trace.rows("SELECT count(*) FROM duckdb_views() WHERE database_name = 'trace'") == [(2,)]
        assert trace.sample_count == 300
        whole = trace.all_samples(list(COLUMNS))
        blocks = list(trace.sample_blocks(list(COLUMNS), block=100))
        for name, values in want.items():
            assert np.array_equal(whole[name], values), name
            assert np.array_equal(np.concatenate([block[name] for block in blocks]), values), name
        assert sum(len(block["addr"]) for block in trace.sample_blocks(["addr"], "event = 'store'")) == 150
        assert [thread.samples for thread in analyze_trace(trace).threads] == [75] * 4
