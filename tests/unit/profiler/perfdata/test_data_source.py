"""Decoding of PERF_SAMPLE_DATA_SRC, against values whose meaning perf prints."""

from pathlib import Path

import numpy as np
import pytest

from numaplan.profiler.perfdata.accesses.blocks import AccessBlocks
from numaplan.profiler.perfdata.accesses.data_source import (
    LEVEL_SHIFT,
    LOAD,
    NUMBER_SHIFT,
    is_store,
    levels,
)
from numaplan.profiler.trace.schema import LEVELS
from tests.support.perfdata_builder import Builder, Event


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
        # As Linux writes them for Intel's: the cache that was missed, or passed on the way, has a number too.
        (0x600080082, "unknown"),  # LOAD|LVL MISS|LVLNUM L3
        (0x2600202042, "remote_dram"),  # LOAD|HIT|REM_RAM1|SNOOP HIT|LVLNUM L3|REMOTE
        (0x3A00102042, "remote_dram"),  # LOAD|HIT|REM_RAM1|LVLNUM RAM|REMOTE
        (0x2600208042, "remote_cache"),  # LOAD|HIT|REM_CCE1|SNOOP HIT|LVLNUM L3|REMOTE
        (0xE00100042, "l1"),  # LOAD|HIT|LVLNUM L0
        (0x1C01A00000042, "io"),  # LOAD|HIT|LVLNUM RAM|REGION MMIO
        (0x2001A00000042, "local_dram"),  # … of another region
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


@pytest.mark.parametrize(
    ("value", "by_amd", "otherwise"),
    [
        (0x88842, "l3", "remote_cache"),  # L3|REM_CCE1|HIT, SNOOP NA: Zen 1 to 3; ARM's perf writes it, too
        (0x808042, "l3", "remote_cache"),  # REM_CCE1|HIT, SNOOP HITM: Zen 4, a cache of the same node
        (0x90042, "remote_cache", "remote_cache"),  # REM_CCE2|HIT: of another node
        (0x81600088842, "l3", "l3"),  # the first as Linux writes it since 6.8
        (0x83600808042, "l3", "l3"),
        (0x80842, "l3", "l3"),
    ],
)
def test_caches_of_the_same_node_by_amd(value: int, by_amd: str, otherwise: str) -> None:
    values = np.array([value, value], dtype=np.uint64)
    found = levels(values, np.array([True, False]))
    assert [LEVELS[code] for code in found] == [by_amd, otherwise]


@pytest.mark.parametrize("name", ["ibs_op//", "cpu/mem-loads/"])
def test_accesses_have_the_same_levels(tmp_path: Path, name: str) -> None:
    chance = np.random.default_rng(3)
    words = chance.integers(0, 1 << 51, 4000, dtype=np.uint64)
    words[::2] &= np.uint64(~(0b1111 << NUMBER_SHIFT) & (1 << 64) - 1)  # where bits count alone
    words[::3] &= np.uint64(0x3F << LEVEL_SHIFT | 1 << LEVEL_SHIFT + 10 | 0x1F << NUMBER_SHIFT)
    words |= np.uint64(LOAD)
    builder = Builder([Event(("tid", "time", "addr", "data_src"), name=name)])
    for time, word in enumerate(words.tolist()):
        builder.sample(0, {"pid": 5, "tid": 5, "time": time, "addr": 64, "data_src": word})
    (tmp_path / "perf.data").write_bytes(builder.file())
    found = np.concatenate([block.level for block in AccessBlocks(tmp_path / "perf.data")])
    assert found.tolist() == levels(words, "ibs_op" in name).tolist()
    assert len(set(found.tolist())) > 8


def test_operations() -> None:
    assert not is_store(source(op=2))[0]
    assert is_store(source(op=4))[0]
