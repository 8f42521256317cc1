"""What PERF_SAMPLE_DATA_SRC says of an access: load or store, and the memory level that served it.

Bit fields as in include/uapi/linux/perf_event.h (union perf_mem_data_src). Two generations of level fields
exist side by side: single bits (mem_lvl) and a number (mem_lvl_num) with a remote bit, hops and a region.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from ...trace.schema import LEVEL_CODE

Sources = NDArray[np.uint64]

LOAD, STORE = 1 << 1, 1 << 2
LEVEL_SHIFT, _LEVEL_BITS = 5, 14
NUMBER_SHIFT, _NUMBER_BITS = 33, 5  # mem_lvl_num and, above it, mem_remote
HOPS_SHIFT, _HOPS_BITS, _REGION_BITS = 43, 3, 5  # mem_hops and, above it, mem_region
MARK = 1 << 7  # where both tables have it, the bits count rather than the number
_HIT, _MISS = 1 << 1, 1 << 2
_L3, _REMOTE_RAM, _REMOTE_CACHE_1 = 1 << 6, 1 << 8 | 1 << 9, 1 << 10
# mem_lvl, the farthest first: with several bits set the access went that far.
_OLD_LEVELS = (
    (_REMOTE_RAM, "remote_dram"),
    (_REMOTE_CACHE_1 | 1 << 11, "remote_cache"),
    (1 << 7, "local_dram"),
    (1 << 12, "io"),
    (1 << 13, "uncached"),
    (_L3, "l3"),
    (1 << 5, "l2"),
    (1 << 4, "lfb"),
    (1 << 3, "l1"),
)
_CACHES = 1 << 3 | 1 << 4 | 1 << 5 | _L3
# mem_lvl_num: (where it is, where it is with the remote bit); 0 and 15 say nothing.
_NUMBERED = {
    1: ("l1", "remote_cache"),
    2: ("l2", "remote_cache"),
    3: ("l3", "remote_cache"),
    4: ("l3", "remote_cache"),
    5: ("l2", "remote_cache"),
    6: ("l3", "remote_cache"),
    7: ("l1", "remote_cache"),  # what Intel calls L0
    8: ("uncached", "uncached"),
    9: ("cxl", "cxl"),
    10: ("io", "io"),
    11: ("l3", "remote_cache"),
    12: ("lfb", "lfb"),
    13: ("local_dram", "remote_dram"),
    14: ("pmem", "pmem"),
}
_NAMES_A_CACHE = (1, 2, 3, 4, 5, 6, 7, 11)
_SAME_NODE = 1  # hops: another core's cache on the same node is not remote
_RAM, _MMIO = 13, 7  # a number and a region: device memory


def levels(data_src: Sources, by_amd: NDArray[np.bool_] | bool = False) -> NDArray[np.uint8]:
    """The level code (trace.schema LEVELS) of each access; `unknown` where the hardware does not say.

    by_amd: which ones AMD's IBS sampled.
    """
    bits = (data_src >> np.uint64(LEVEL_SHIFT) & np.uint64((1 << _LEVEL_BITS) - 1)).astype(np.intp)
    old = old_tables()[np.asarray(by_amd, np.intp), bits]
    number = (data_src >> np.uint64(NUMBER_SHIFT) & np.uint64((1 << _NUMBER_BITS) - 1)).astype(np.intp)
    place = np.uint64((1 << _HOPS_BITS + _REGION_BITS) - 1)
    new = numbered_table()[number, (data_src >> np.uint64(HOPS_SHIFT) & place).astype(np.intp)]
    by_bits = (new == LEVEL_CODE["unknown"]) | (new & old & MARK != 0)
    found: NDArray[np.uint8] = np.where(by_bits, old, new) & np.uint8(MARK - 1)
    return found


def is_store(data_src: Sources) -> NDArray[np.bool_]:
    """Which accesses are stores."""
    return (data_src & np.uint64(STORE)).astype(np.bool_)


@cache
def old_tables() -> NDArray[np.uint8]:
    """Level code by the bits of mem_lvl, of all processors and of those of AMD."""
    values = np.arange(1 << _LEVEL_BITS)
    table = np.full(len(values), LEVEL_CODE["unknown"], dtype=np.uint8)
    for bits, name in reversed(_OLD_LEVELS):
        table[values & bits != 0] = LEVEL_CODE[name]
    missed = values & (_MISS | _HIT) == _MISS
    # "L1 miss" or "L3 miss" without more: where it was served is not known.
    table[(values & _MISS != 0) & (values & ~(_MISS | _CACHES) & ~0b1 == 0)] = LEVEL_CODE["unknown"]
    of_amd = table.copy()
    # Another cache of the same node, or the L3 and those that share it, before Linux 6.8 wrote numbers.
    of_amd[values & ~(_HIT | _L3) == _REMOTE_CACHE_1] = LEVEL_CODE["l3"]
    tables = np.stack([table, of_amd])
    # Intel names the cache that was missed, or the one on the way to another node's memory.
    tables[:, missed | (values & _REMOTE_RAM != 0)] |= MARK
    return tables


@cache
def numbered_table() -> NDArray[np.uint8]:
    """Level code by mem_lvl_num with mem_remote above it, and by mem_hops with mem_region above it."""
    shape = 1 << _NUMBER_BITS, 1 << _REGION_BITS, 1 << _HOPS_BITS
    table = np.full(shape, LEVEL_CODE["unknown"], dtype=np.uint8)
    for number, (local, remote) in _NUMBERED.items():
        far = number | 1 << (_NUMBER_BITS - 1)
        table[number] = LEVEL_CODE[local]
        table[far] = LEVEL_CODE[remote]
        table[far, :, _SAME_NODE] = LEVEL_CODE[local if local != "l1" else "l3"]
        if number in _NAMES_A_CACHE:
            table[[number, far]] |= MARK
    table[[_RAM, _RAM | 1 << (_NUMBER_BITS - 1)], _MMIO] = LEVEL_CODE["io"]
    return table.reshape(len(table), -1)
