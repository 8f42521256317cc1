"""The calls that samples were taken in: `emulate-PID-START.{calls,calls-window}` (native/emulate/spool.c)."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ...call_block import CallBlock
from .spool import ProcessSpool


def call_blocks(processes: Sequence[ProcessSpool]) -> Iterator[CallBlock]:
    """Of each process that has some."""
    for process in processes:
        parts = list(process.words(("calls", "calls-window")))
        if process.calls:
            pairs = np.concatenate(parts)[: process.calls]
            yield CallBlock(
                process.pid,
                process.first_call + np.arange(len(pairs), dtype=np.int32),
                _callers(pairs[:, 0], process.first_call),
                pairs[:, 1],
            )


def _callers(numbers: NDArray[np.uint64], first: int) -> NDArray[np.int32]:
    """From the process's own numbers, of which 0 is none; a damaged one is none, too."""
    known = (numbers > 0) & (numbers <= np.arange(len(numbers), dtype=np.uint64))
    return np.where(known, numbers.astype(np.int64) - 1 + first, -1).astype(np.int32)
