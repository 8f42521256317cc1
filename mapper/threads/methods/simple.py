"""Placements by the thread's number alone: the baselines of every plan."""

import numpy as np

from ..problem import Nodes, Problem


def compact(problem: Problem) -> Nodes:
    """Fill node after node: thread i goes to node i div (N/K)."""
    return np.repeat(np.arange(problem.nodes), problem.sizes)


def scatter(problem: Problem) -> Nodes:
    """Deal threads out one at a time: thread i goes to node i mod K, full nodes are passed over."""
    return _deal(problem.sizes, 1)


def interleave(problem: Problem) -> Nodes:
    """Deal threads out two at a time, so that neighbours in pairs stay together (our reading of the name)."""
    return _deal(problem.sizes, 2)


def random(problem: Problem) -> Nodes:
    """Compact, shuffled by the seed."""
    return np.random.default_rng(problem.seed).permutation(compact(problem))


def _deal(sizes: Nodes, hand: int) -> Nodes:
    """Node of each thread when each node in turn takes up to `hand` threads until it is full."""
    nodes = np.repeat(np.arange(len(sizes)), sizes)
    rounds = np.concatenate([np.arange(size) // hand for size in sizes.tolist()])
    return nodes[np.lexsort((nodes, rounds))]
