"""How much memory lives at a time, of blocks that come and go."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def order_of_lives(lives: Ints) -> Ints:
    """(2 N,) in which order N blocks come (0 to N) and go (N to 2 N). What goes as another comes makes room.

    lives: (N, 2) when each comes and goes, -1: it stays.
    """
    made, gone = lives.T
    gone = np.where(gone < 0, np.iinfo(np.int64).max, gone)
    return np.lexsort((np.repeat([1, 0], len(lives)), np.concatenate([made, gone])))


def most_at_a_time(size: NDArray[np.float64], order: Ints) -> float:
    """Bytes of the blocks (N,) that live at the same time at most, in their order of coming and going."""
    return float(np.cumsum(np.concatenate([size, -size])[order]).max(initial=0.0))
