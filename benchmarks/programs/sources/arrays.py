"""numpy in a pool of threads: blocks of a large array, which numpy works on without the lock."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

WORKERS = int(sys.argv[1]) if len(sys.argv) > 1 else 8
BLOCKS, LENGTH, ROUNDS = 64, 1 << 18, 3

data = np.arange(BLOCKS * LENGTH, dtype=np.float64).reshape(BLOCKS, LENGTH)
out = np.empty_like(data)


def work(block: int) -> float:
    np.multiply(data[block], 0.5, out=out[block])
    np.add(out[block], data[block], out=data[block])
    return float(data[block].mean())


with ThreadPoolExecutor(WORKERS) as pool:
    for _ in range(ROUNDS):
        means = list(pool.map(work, range(BLOCKS)))
print(f"checked {sum(means):.3f}")
