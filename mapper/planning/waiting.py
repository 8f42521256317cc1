"""How long threads wait for each other where they share cpus."""

import numpy as np

from ..threads.problem import Floats

FAR = 5.0  # standard deviations, from which on the number of threads that run matters by its mean alone


def waiting(beside: Floats, cpus: int) -> Floats:
    """(T,) how many threads wait for one of the cpus in the mean, while each of T runs.

    beside: (T, N) the probability that each of the others runs then too, independently of each other. The
    mean of max(1 + X - cpus, 0), for X of them.
    """
    beside = np.clip(beside, 0.0, 1.0)
    mean, spread = beside.sum(axis=1), np.sqrt((beside * (1.0 - beside)).sum(axis=1))
    answer: Floats = np.maximum(1.0 + mean - cpus, 0.0)
    between = np.abs(mean + 1.0 - cpus) < FAR * spread
    if cpus == 1 or not between.any():
        return answer
    some = beside[between]
    chances = np.zeros((len(some), cpus))  # of 0, 1, … others: a Poisson binomial distribution
    chances[:, 0] = 1.0
    for one in some.T[some.max(axis=0) > 0.0]:
        chances[:, 1:] += one[:, None] * (chances[:, :-1] - chances[:, 1:])
        chances[:, 0] *= 1.0 - one
    idle = (chances * np.arange(cpus - 1, -1, -1)).sum(axis=1)
    answer[between] = np.maximum(1.0 + mean[between] - cpus + idle, 0.0)
    return answer
