"""numpy's BLAS threads, and a few of Python's own."""

import threading
import time

import numpy as np

workers = [threading.Thread(target=time.sleep, args=(0.3,)) for _ in range(3)]
for worker in workers:
    worker.start()
matrix = np.ones((400, 400))
for _ in range(5):
    matrix = matrix @ matrix / 400
for worker in workers:
    worker.join()
print(round(float(matrix[0, 0])))
