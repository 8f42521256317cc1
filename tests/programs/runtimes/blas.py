"""numpy's BLAS threads, and a few of Python's own, until the input ends."""

import os
import threading

import numpy as np

workers = [threading.Thread(target=os.read, args=(0, 1)) for _ in range(3)]
for worker in workers:
    worker.start()
matrix = np.ones((400, 400))
for _ in range(5):
    matrix = matrix @ matrix / 400
for worker in workers:
    worker.join()
print(round(float(matrix[0, 0])))
