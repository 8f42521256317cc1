"""Transfers in blocks, as a backend that sees every access hands them over."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class TransferBlock:
    """Lines that threads took from each other in [start_ns, end_ns) of one process; equally long arrays.

    A transfer is an access to a line whose last writer is another thread, the first one since that write.
    addr: of a page that the lines are in, or near to; writer, reader: tids; writer_ns, reader_ns: a time at
    which each lived; events: how many transfers; late_ns: as of PageUseBlock.
    """

    pid: int
    start_ns: int
    end_ns: int
    addr: NDArray[np.uint64]
    writer: NDArray[np.int32]
    writer_ns: NDArray[np.int64]
    reader: NDArray[np.int32]
    reader_ns: NDArray[np.int64]
    events: NDArray[np.int64]
    late_ns: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.events)
