"""Which threads could run, in blocks, as a backend that sees it hands it over."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RunningBlock:
    """Looks at a process, or at all at once: a row for each thread that could run then; equally long arrays.

    time_ns: of the look; tid; alive_ns: a time at which the thread lived.
    """

    time_ns: NDArray[np.int64]
    tid: NDArray[np.int32]
    alive_ns: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.time_ns)
