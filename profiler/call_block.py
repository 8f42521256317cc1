"""Calls that samples were taken in, as backends and readers of recordings hand them over."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class CallBlock:
    """Calls of a process, equally long arrays; `call` of its samples is one of their numbers, or -1.

    number: each its own among all of a recording; caller: of the call that was under way when it was made,
    lower than its own, -1: none is known; ip: an address in the instruction of the call.
    """

    pid: int
    number: NDArray[np.int32]
    caller: NDArray[np.int32]
    ip: NDArray[np.uint64]
