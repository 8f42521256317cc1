"""Which threads could run: `emulate-PID-START.{running,running-window}` (native/emulate/spool.c). The
lab's looks are written alike."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

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
        time, thread = read_looks(np.concatenate(parts), len(process.threads))
        tid = process.threads["tid"].astype(np.int32)
        yield RunningBlock(time + process.shift_ns, tid[thread], process.begins[thread])


def read_looks(pairs: NDArray[np.uint64], most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(n,) time of a look and number, from 0 on, of one that could run then, if it is below `most`.

    pairs: (n, 2) words: a look's header and its time, then two numbers each, from 1 on, 0: none.
    """
    is_look = pairs[:, 0] == _HEADER
    look = np.repeat(np.cumsum(is_look), 2)
    number = np.where(is_look[:, None], 0, pairs).ravel()
    known = (number > 0) & (number <= most) & (look > 0)
    times = pairs[is_look, 1].astype(np.int64)
    return times[look[known] - 1], number[known].astype(np.int64) - 1
