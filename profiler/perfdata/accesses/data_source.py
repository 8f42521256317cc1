"""What PERF_SAMPLE_DATA_SRC says of an access: load or store, and the memory level that served it.

Bit fields as in include/uapi/linux/perf_event.h (union perf_mem_data_src). Two generations of level fields
exist side by side: single bits (mem_lvl) and a number (mem_lvl_num) with a remote bit and hops.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from ...trace.schema import LEVEL_CODE

Sources = NDArray[np.uint64]

LOAD, STORE = 1 << 1, 1 << 2
LEVEL_SHIFT, _LEVEL_BITS = 5, 14
NUMBER_SHIFT, _NUMBER_BITS = 33, 5  # mem_lvl_num and, above it, mem_remote
HOPS_SHIFT, _HOPS_BITS = 43, 3
_MISS = 1 << 2
# mem_lvl, the farthest first: with several bits set the access went that far.
_OLD_LEVELS = (
    (1 << 8 | 1 << 9, "remote_dram"),
    (1 << 10 | 1 << 11, "remote_cache"),
    (1 << 7, "local_dram"),
    (1 << 12, "io"),
    (1 << 13, "uncached"),
    (1 << 6, "l3"),
    (1 << 5, "l2"),
    (1 << 4, "lfb"),
    (1 << 3, "l1"),
)
_CACHES = 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6
# mem_lvl_num: (where it is, where it is with the remote bit); 0 and 15 say nothing.
_NUMBERED = {
    1: ("l1", "remote_cache"),
    2: ("l2", "remote_cache"),
    3: ("l3", "remote_cache"),
    4: ("l3", "remote_cache"),
    5: ("l2", "remote_cache"),
    6: ("l3", "remote_cache"),
    8: ("uncached", "uncached"),
    9: ("cxl", "cxl"),
    10: ("io", "io"),
    11: ("l3", "remote_cache"),
    12: ("lfb", "lfb"),
    13: ("local_dram", "remote_dram"),
    14: ("pmem", "pmem"),
}
_SAME_NODE = 1  # hops: another core's cache on the same node is not remote


def levels(data_src: Sources) -> NDArray[np.uint8]:
    """The level code (trace.schema LEVELS) of each access; `unknown` where the hardware does not say."""
    old = old_table()[
        (data_src >> np.uint64(LEVEL_SHIFT) & np.uint64((1 << _LEVEL_BITS) - 1)).astype(np.intp)
    ]
    number = (data_src >> np.uint64(NUMBER_SHIFT) & np.uint64((1 << _NUMBER_BITS) - 1)).astype(np.intp)
    hops = (data_src >> np.uint64(HOPS_SHIFT) & np.uint64((1 << _HOPS_BITS) - 1)).astype(np.intp)
    new = numbered_table()[number, hops]
    found: NDArray[np.uint8] = np.where(new != LEVEL_CODE["unknown"], new, old)
    return found


def is_store(data_src: Sources) -> NDArray[np.bool_]:
    """Which accesses are stores."""
    return (data_src & np.uint64(STORE)).astype(np.bool_)


@cache
def old_table() -> NDArray[np.uint8]:
    """Level code by the bits of mem_lvl."""
    values = np.arange(1 << _LEVEL_BITS)
    table = np.full(len(values), LEVEL_CODE["unknown"], dtype=np.uint8)
    for bits, name in reversed(_OLD_LEVELS):
        table[values & bits != 0] = LEVEL_CODE[name]
    # "L1 miss" or "L3 miss" without more: where it was served is not known.
    table[(values & _MISS != 0) & (values & ~(_MISS | _CACHES) & ~0b1 == 0)] = LEVEL_CODE["unknown"]
    return table


@cache
def numbered_table() -> NDArray[np.uint8]:
    """Level code by mem_lvl_num with mem_remote above it, and by mem_hops."""
    table = np.full((1 << _NUMBER_BITS, 1 << _HOPS_BITS), LEVEL_CODE["unknown"], dtype=np.uint8)
    for number, (local, remote) in _NUMBERED.items():
        table[number] = LEVEL_CODE[local]
        table[number | 1 << (_NUMBER_BITS - 1)] = LEVEL_CODE[remote]
        table[number | 1 << (_NUMBER_BITS - 1), _SAME_NODE] = LEVEL_CODE[local if local != "l1" else "l3"]
    return table
