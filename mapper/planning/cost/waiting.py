"""How long threads wait for each other where they share cpus."""

import numpy as np

from ...threads.problem import Floats, Nodes
from ...workload.use import ThreadUse

FAR = 5.0  # standard deviations, from which on the number of threads that run matters by its mean alone


def waiting_of(use: ThreadUse, threads: Nodes, cpus: int) -> Floats:
    """(T,) how many threads wait for one of the cpus that these share in the mean, while each of them runs.

    By stretches of the run where it is known who runs in each, else by pairs.
    """
    if len(threads) <= cpus:
        return np.zeros(len(threads))
    active = use.activity
    if active is not None:
        return active.mean_over(waiting_in_stretches(active.of(threads), cpus), threads)
    return waiting(use.together[np.ix_(threads, threads)] * (1.0 - np.eye(len(threads))), cpus)


def waiting_in_stretches(running: Floats, cpus: int) -> Floats:
    """(S,) how many threads wait for one of the cpus in each stretch of time, while any one of T runs.

    running: (S, T) how far each of them runs in it, independently of the others. For X of them that run the
    mean of X max(X - cpus, 0) over that of X: the same for each, and right for all together.
    """
    mean = running.sum(axis=1)
    answer: Floats = np.zeros(len(running))
    if running.shape[1] <= cpus:
        return answer
    spread = np.maximum(mean - np.einsum("st,st->s", running, running), 0.0)
    many = mean > 0
    answer[many] = np.maximum(spread[many] / mean[many] + mean[many] - cpus, 0.0)
    some = np.flatnonzero((np.abs(mean - cpus) < FAR * np.sqrt(spread)) & many)
    few = np.arange(cpus)
    over = spread[some] + mean[some] * (mean[some] - cpus)
    over += chances(running[some], cpus) @ (few * (cpus - few))
    answer[some] = np.maximum(over, 0.0) / mean[some]
    return answer


def waiting_where_dealt(running: Floats, cpus: int) -> Floats:
    """(S,) the same where the kernel deals the threads to the cpus as evenly as it can, and leaves each
    there, as two may share a cpu for a while though another one is idle."""
    count = running.shape[1]
    every, rest = divmod(count, cpus)
    # Others on its cpu: of `rest` cpus one more than on the remaining ones.
    beside = (rest * (every + 1) * every + (cpus - rest) * every * (every - 1)) / max(count, 1)
    mean = running.sum(axis=1)
    pairs = mean * mean - np.einsum("st,st->s", running, running)
    answer: Floats = np.zeros(len(mean))
    np.divide(pairs * beside * cpus / max(count - 1, 1), mean, out=answer, where=mean > 0)
    return answer


def chances(running: Floats, many: int) -> Floats:
    """(S, many) probability that 0, 1, … of (S, T) threads run: a Poisson binomial distribution."""
    answer: Floats = np.zeros((len(running), many))
    answer[:, 0] = 1.0
    for one in running.T[running.max(axis=0, initial=0.0) > 0.0]:
        answer[:, 1:] += one[:, None] * (answer[:, :-1] - answer[:, 1:])
        answer[:, 0] *= 1.0 - one
    return answer


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
    idle = (chances(beside[between], cpus) * np.arange(cpus - 1, -1, -1)).sum(axis=1)
    answer[between] = np.maximum(1.0 + mean[between] - cpus + idle, 0.0)
    return answer
