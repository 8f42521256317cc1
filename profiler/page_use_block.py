"""Use of pages in blocks, as a backend that sees every access hands it over."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class PageUseBlock:
    """How often threads of one process used pages, each in [start_ns, end_ns); equally long arrays.

    first_ns: of the thread's first access to the page within that time; addr: of the page; alive_ns: a time
    at which the thread lived; missed: accesses that no cache answered, -1: not known; late_ns: when a
    region may be told to be there that was there by end_ns, soonest first (none: that is known exactly);
    node: where the page was; local: whether the accesses were by cpus of it, 1 or 0, -1: not known.
    """

    pid: int
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    first_ns: NDArray[np.int64]
    addr: NDArray[np.uint64]
    tid: NDArray[np.int32]
    alive_ns: NDArray[np.int64]
    loads: NDArray[np.int64]
    stores: NDArray[np.int64]
    missed: NDArray[np.int64]
    late_ns: tuple[NDArray[np.int64], ...] = ()
    node: NDArray[np.int32] | None = None
    local: NDArray[np.int8] | None = None

    def __len__(self) -> int:
        return len(self.loads)
