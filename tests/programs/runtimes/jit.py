"""numba's own pool of threads, until the input ends."""

import os
import sys

os.environ.setdefault("NUMBA_NUM_THREADS", "4")
os.environ.setdefault("NUMBA_THREADING_LAYER", "workqueue")

import numba
import numpy as np


@numba.njit(parallel=True)
def total(values):
    result = 0.0
    for i in numba.prange(len(values)):
        result += values[i]
    return result


print(total(np.ones(100000)))
sys.stdin.read()
