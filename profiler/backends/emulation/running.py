"""Which threads could run: `emulate-PID-START.{running,running-window}` (native/emulate/spool.c)."""

from collections.abc import Iterator, Sequence

import numpy as np

from ...running_block import RunningBlock
from .spool import ProcessSpool

FILES = ("running", "running-window")
_HEADER = np.uint64(1 << 63)


def running_blocks(processes: Sequence[ProcessSpool]) -> Iterator[RunningBlock]:
    """Of each process that has some."""
    for process in processes:
        parts = [np.array(pairs) for pairs in process.words(FILES)]
        if not parts:
            continue
        pairs = np.concatenate(parts)
        is_look = pairs[:, 0] == _HEADER
        look = np.repeat(np.cumsum(is_look), 2)
        number = np.where(is_look[:, None], 0, pairs).ravel()
        known = (number > 0) & (number <= len(process.threads)) & (look > 0)
        thread = number[known].astype(np.int64) - 1
        times = pairs[is_look, 1].astype(np.int64) + process.shift_ns
        yield RunningBlock(
            times[look[known] - 1], process.threads["tid"].astype(np.int32)[thread], process.begins[thread]
        )
