"""Decoding of PERF_SAMPLE_DATA_SRC, against values whose meaning perf prints."""

import numpy as np
import pytest

from numaplan.profiler.perfdata.accesses.data_source import is_store, levels
from numaplan.profiler.trace.schema import LEVELS


def source(
    op: int = 2, lvl: int = 0, snoop: int = 0, number: int = 0, remote: int = 0, hops: int = 0
) -> np.ndarray:
    value = op | lvl << 5 | snoop << 19 | number << 33 | remote << 37 | hops << 43
    return np.array([value], dtype=np.uint64)


@pytest.mark.parametrize(
    ("value", "level"),
    [
        (0x68100142, "l1"),  # perf: OP LOAD|LVL L1 hit
        (0x5080021, "unknown"),  # not available
        (0x1E05080021, "unknown"),
        (0, "unknown"),
    ],
)
def test_whole_words(value: int, level: str) -> None:
    assert LEVELS[levels(np.array([value], dtype=np.uint64))[0]] == level


@pytest.mark.parametrize(
    ("fields", "level"),
    [
        ({"lvl": 0x2 | 0x10}, "lfb"),
        ({"lvl": 0x2 | 0x40, "snoop": 0x10}, "l3"),
        ({"lvl": 0x2 | 0x80}, "local_dram"),
        ({"lvl": 0x2 | 0x100}, "remote_dram"),
        ({"lvl": 0x2 | 0x400}, "remote_cache"),
        ({"lvl": 0x4 | 0x40}, "unknown"),  # L3 miss, nothing more
        ({"op": 4, "lvl": 0x4 | 0x8}, "unknown"),  # a store that missed the L1
        ({"number": 0xD}, "local_dram"),
        ({"number": 0xD, "remote": 1}, "remote_dram"),
        ({"number": 0xD, "remote": 1, "hops": 3}, "remote_dram"),
        ({"number": 3, "remote": 1, "hops": 3}, "remote_cache"),
        ({"number": 3, "remote": 1, "hops": 1}, "l3"),
        ({"number": 0x9}, "cxl"),
        ({"number": 0xE}, "pmem"),
        ({"number": 0xF, "lvl": 0x2 | 0x20}, "l2"),
        ({"number": 0xD, "lvl": 0x4 | 0x40, "remote": 1}, "remote_dram"),
    ],
)
def test_fields(fields: dict[str, int], level: str) -> None:
    assert LEVELS[levels(source(**fields))[0]] == level


def test_operations() -> None:
    assert not is_store(source(op=2))[0]
    assert is_store(source(op=4))[0]
