"""Operations that several samples tell of, one after the other: the first of them counts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...sample_block import SampleBlock


class Operations:
    """Remembers the last operation from block to block."""

    def __init__(self) -> None:
        self._last = (-1, -1, 0)  # thread, time and address

    def once(self, block: SampleBlock) -> SampleBlock:
        """The block, not empty, with one sample of each operation."""
        same = np.ones(len(block), np.bool_)
        columns: tuple[NDArray[Any], ...] = (block.tid, block.time_ns, block.addr)
        for column, last in zip(columns, self._last, strict=True):
            same[1:] &= column[1:] == column[:-1]
            same[0] &= int(column[0]) == last
        tid, time, addr = (int(column[-1]) for column in columns)
        self._last = (tid, time, addr)
        return block.chosen(~same) if same.any() else block
