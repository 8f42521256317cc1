"""TreeMatch: at each level the partition into equal groups that leaves least weight between them.

Source: [TREEMATCH]. Exhaustive while the candidate groups number less than LIMIT (30,000 in the published
program) and the search ends within STEPS; above it greedy, one prime factor of the size at a time, as the
number of candidates explodes with the size. The partition is not unique: compare costs.
"""

from collections.abc import Sequence
from itertools import combinations
from math import comb

import numpy as np

from ..problem import Floats, Nodes, Problem
from ..solver import solve_exactly
from .eagermap import contract, group_numbers

LIMIT = 30_000
STEPS = 3_000_000
CHUNK = 256  # candidates judged one by one before the impossible ones are sorted out


def treematch(problem: Problem) -> Nodes:
    """TreeMatch for NUMA nodes only: one level of groups of the nodes' sizes."""
    return group_numbers(best_groups(problem.comm, problem.sizes.tolist()), problem.threads)


def treematch_tree(comm: Floats, arities: Sequence[int]) -> list[list[int]]:
    """Thread of each unit of a machine with the given arities, root first; as many threads as units."""
    weights = comm
    units = [[thread] for thread in range(len(comm))]
    for arity in [arity for arity in arities if arity > 1][:0:-1]:
        groups = best_groups(weights, [arity] * (len(units) // arity))
        units = [[thread for element in group for thread in units[element]] for group in groups]
        weights = contract(weights, groups)
    return units


def best_groups(weights: Floats, sizes: Sequence[int]) -> list[list[int]]:
    """Groups of the given sizes with least weight between them, exact or greedy by number of candidates."""
    if is_exhaustive(len(weights), sizes):
        exact = _exhaustive(weights, sizes)
        if exact is not None:
            return exact
    if min(sizes) == max(sizes):
        return _greedy(weights, max(sizes))
    return _fill(weights, sizes)


def is_exhaustive(threads: int, sizes: Sequence[int]) -> bool:
    """Whether there are few enough candidate groups to try them all."""
    return comb(threads, max(sizes)) < LIMIT


def _exhaustive(weights: Floats, sizes: Sequence[int]) -> list[list[int]] | None:
    count = len(sizes)
    problem = Problem(
        comm=weights,
        loads=np.zeros(len(weights)),
        sizes=np.asarray(sizes, dtype=np.int64),
        distances=1.0 - np.eye(count),
        targets=np.zeros(count),
        objective="remote",
    )
    solution = solve_exactly(problem, group_numbers(_fill(weights, sizes), len(weights)), STEPS)
    if not solution.proven:
        return None
    return [np.flatnonzero(solution.places == node).tolist() for node in range(count)]


def _greedy(weights: Floats, size: int) -> list[list[int]]:
    """Groups of one size, built up by its prime factors, smallest first."""
    groups = [[element] for element in range(len(weights))]
    between = weights
    for factor in _prime_factors(size):
        chosen = _fill(between, [factor] * (len(groups) // factor), _candidates(between, factor))
        groups = [[thread for element in group for thread in groups[element]] for group in chosen]
        between = contract(between, chosen)
    return groups


def _prime_factors(number: int) -> list[int]:
    factors = []
    divisor = 2
    while number > 1:
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return factors


def _candidates(weights: Floats, size: int) -> Nodes:
    """(C, size) candidate groups by weight to the outside, least first; none where there are too many."""
    count = len(weights)
    degree = weights.sum(axis=1)
    if size == 2:
        groups = np.column_stack(np.triu_indices(count, 1))
        inside = weights[groups[:, 0], groups[:, 1]]
    elif comb(count, size) < LIMIT:
        groups = np.array(list(combinations(range(count), size)))
        inside = sum(
            (weights[groups[:, a], groups[:, b]] for a in range(size) for b in range(a)), np.zeros(1)
        )
    else:
        return np.empty((0, size), dtype=np.int64)
    outside = degree[groups].sum(axis=1) - 2 * inside
    return groups[np.argsort(outside, kind="stable")]


def _fill(weights: Floats, sizes: Sequence[int], candidates: Nodes | None = None) -> list[list[int]]:
    """Take disjoint candidates in order; what they leave open is filled by greatest weight to the group."""
    free = np.ones(len(weights), dtype=bool)
    groups: list[list[int]] = []
    left = np.empty((0, 1), dtype=np.int64) if candidates is None else candidates
    while len(left) and len(groups) < len(sizes):
        for candidate in left[:CHUNK].tolist():
            if len(groups) < len(sizes) and all(free[element] for element in candidate):
                groups.append(candidate)
                free[candidate] = False
        left = left[CHUNK:]
        left = left[free[left].all(axis=1)]  # most are no longer possible
    for size in sizes[len(groups) :]:
        group: list[int] = []
        sums = np.zeros(len(weights))
        for _ in range(size):
            group.append(int(np.argmax(np.where(free, sums, -1.0))))
            free[group[-1]] = False
            sums += weights[group[-1]]
        groups.append(group)
    return groups
