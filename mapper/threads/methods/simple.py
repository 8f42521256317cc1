"""Placements by the thread's number alone: the baselines of every plan."""

import numpy as np

from ..problem import Nodes, Problem


def compact(problem: Problem) -> Nodes:
    """Fill node after node: thread i goes to node i div (N/K)."""
    return np.repeat(np.arange(problem.nodes), problem.sizes)


def scatter(problem: Problem) -> Nodes:
    """Deal threads out one at a time: thread i goes to node i mod K, full nodes are passed over."""
    return _deal(problem, 1)


def interleave(problem: Problem) -> Nodes:
    """Deal threads out two at a time, so that neighbours in pairs stay together (our reading of the name)."""
    return _deal(problem, 2)


def random(problem: Problem) -> Nodes:
    """Compact, shuffled by the seed."""
    return np.random.default_rng(problem.seed % (1 << 64)).permutation(compact(problem))


def _deal(problem: Problem, hand: int) -> Nodes:
    """Node of each thread, dealt to the groups of nodes, and those of each group to its nodes."""
    if problem.groups is None:
        return _in_turn(problem.sizes, hand)
    groups, group = np.unique(problem.groups, return_inverse=True)
    turn = _in_turn(np.bincount(group, problem.sizes).astype(np.int64), hand)
    answer = np.empty_like(turn)
    for number in range(len(groups)):
        own = np.flatnonzero(group == number)
        answer[turn == number] = own[_in_turn(problem.sizes[own], hand)]
    return answer


def _in_turn(sizes: Nodes, hand: int) -> Nodes:
    """Node of each thread when each node in turn takes up to `hand` threads until it is full."""
    nodes = np.repeat(np.arange(len(sizes)), sizes)
    rounds = np.concatenate([np.arange(size) // hand for size in sizes.tolist()])
    return nodes[np.lexsort((nodes, rounds))]
