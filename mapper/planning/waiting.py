"""How long threads wait for each other where they share cpus."""

import numpy as np
from numpy.typing import NDArray

from ..threads.problem import Floats, Nodes
from ..workload.use import ThreadUse

FAR = 5.0  # standard deviations, from which on the number of threads that run matters by its mean alone


def waiting_of(use: ThreadUse, threads: Nodes, met: Nodes, part: Floats | None, cpus: int) -> Floats:
    """(T,) how many threads wait for one of a set's cpus in the mean, while each of these runs that have it.

    met: (M,) threads that are on the set, these among them; part: (M,) what part of their time (None: all).
    By stretches of the run where it is known who runs in each, else by pairs.
    """
    if len(met) <= cpus:
        return np.zeros(len(threads))
    active = use.activity
    if active is not None:
        running = active.of(met)
        if part is not None:
            running = running * part
        return active.mean_over(waiting_in_stretches(running, np.isin(met, threads), cpus), threads)
    beside = use.together[np.ix_(threads, met)]
    beside[np.equal.outer(threads, met)] = 0.0
    return waiting(beside if part is None else beside * part, cpus)


def waiting_in_stretches(running: Floats, asked: NDArray[np.bool_], cpus: int) -> Floats:
    """(S,) how many threads wait for one of the cpus in each stretch, while any one of those asked runs.

    running: (S, T) how far each thread runs in it, independently of the others; asked: (T,) of whom the wait
    is wanted. For A of them that run, and O of the others, the mean of A max(A + O - cpus, 0) over that of A:
    the same for each that is asked, and right for all of them together.
    """
    answer: Floats = np.zeros(len(running))
    if running.shape[1] <= cpus:
        return answer
    mean, spread = _moments(running[:, asked])
    beside, more = _moments(running[:, ~asked])
    many = mean > 0
    answer[many] = np.maximum(spread[many] / mean[many] + mean[many] + beside[many] - cpus, 0.0)
    some = np.flatnonzero((np.abs(mean + beside - cpus) < FAR * np.sqrt(spread + more)) & many)
    first, second = (_chances(running[np.ix_(some, kind)], cpus) for kind in (asked, ~asked))
    few = np.arange(cpus)
    idle = np.maximum(cpus - np.add.outer(few, few), 0.0)
    over = spread[some] + mean[some] * (mean[some] + beside[some] - cpus)
    over += np.einsum("sa,ao,so->s", first * few, idle, second, optimize=True)
    answer[some] = np.maximum(over, 0.0) / mean[some]
    return answer


def _moments(running: Floats) -> tuple[Floats, Floats]:
    """(S,) mean and variance of how many threads run."""
    mean = running.sum(axis=1)
    return mean, np.maximum(mean - np.einsum("st,st->s", running, running), 0.0)


def _chances(running: Floats, many: int) -> Floats:
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
    chances = _chances(beside[between], cpus)
    idle = (chances * np.arange(cpus - 1, -1, -1)).sum(axis=1)
    answer[between] = np.maximum(1.0 + mean[between] - cpus + idle, 0.0)
    return answer
