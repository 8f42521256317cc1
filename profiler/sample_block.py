"""Samples in blocks, as backends and readers of recordings hand them over, and the threads they are of."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

USER_END = 1 << 63  # addresses from here on are the kernel's


@dataclass(frozen=True)
class SampleBlock:
    """Equally long arrays, one entry a sample; -1 (0 for addresses) where the backend does not know.

    time_ns: CLOCK_MONOTONIC, int64; event, level: codes of trace.schema EVENTS and LEVELS; latency: cycles;
    reach: see TABLES in trace.schema; call: the innermost one under way, by its number in a CallBlock.
    Blocks come in any order of time.
    """

    time_ns: NDArray[np.int64]
    pid: NDArray[np.int32]
    tid: NDArray[np.int32]
    cpu: NDArray[np.int32]
    node: NDArray[np.int32]
    addr: NDArray[np.uint64]
    phys_addr: NDArray[np.uint64]
    ip: NDArray[np.uint64]
    event: NDArray[np.uint8]
    is_write: NDArray[np.bool_]
    level: NDArray[np.uint8]
    latency: NDArray[np.int32]
    reach: NDArray[np.int8]
    call: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.time_ns)

    def chosen(self, which: NDArray[np.bool_]) -> "SampleBlock":
        """The samples for which the mask is true."""
        return SampleBlock(**{name: column[which] for name, column in vars(self).items()})


@dataclass(frozen=True)
class SeenThread:
    """A thread as the backend saw it (where the preload library could not enter); times CLOCK_MONOTONIC."""

    pid: int
    tid: int
    name: str = ""
    parent_tid: int = -1
    start_ns: int = -1
    end_ns: int = -1
