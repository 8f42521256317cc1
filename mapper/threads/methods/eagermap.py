"""EagerMap: greedy groups by communication, level by level from the leaves of the machine up.

Source: [EAGERMAP]; semantics as the published program has them. O(N^2) a level with running sums.
"""

from collections.abc import Sequence

import numpy as np

from ..problem import Floats, Nodes, Problem


def eagermap(problem: Problem) -> Nodes:
    """EagerMap for NUMA nodes only: one level of groups of the nodes' sizes."""
    return group_numbers(form_groups(problem.comm, problem.sizes.tolist()), problem.threads)


def eagermap_tree(comm: Floats, arities: Sequence[int]) -> list[list[int]]:
    """Threads of each unit of a machine with the given arities, root first, in machine order.

    comm: (N, N) symmetric with zero diagonal. Units that get nothing hold empty lists.
    """
    levels = [arity for arity in arities if arity > 1]
    count = int(np.prod(levels, dtype=np.int64)) if levels else 1
    weights, units = _level(comm, [[[thread]] for thread in range(len(comm))], count, 1)
    span = 1  # units under one element
    for arity in levels[:0:-1]:
        count //= arity
        weights, units = _level(weights, units, count, span := span * arity)
    return _padded([slot for element in units for slot in element], int(np.prod(levels, dtype=np.int64)))


def _level(
    weights: Floats, elements: list[list[list[int]]], count: int, span: int
) -> tuple[Floats, list[list[list[int]]]]:
    """One step: elements (each a list of units, a unit a list of threads) into at most `count` groups."""
    size, extra = divmod(len(elements), count) if count < len(elements) else (1, 0)
    groups = form_groups(weights, [size + (g < extra) for g in range(min(count, len(elements)))])
    joined: list[list[list[int]]] = []
    for group in groups:
        slots = [slot for member in group for slot in elements[member]]
        if span == 1:  # the thread level: a group is one unit, shared by its threads
            joined.append([[thread for slot in slots for thread in slot]])
        else:
            joined.append(_padded(slots, span))
    return contract(weights, groups), joined


def _padded(slots: list[list[int]], count: int) -> list[list[int]]:
    return slots + [[] for _ in range(count - len(slots))]


def group_numbers(groups: Sequence[Sequence[int]], count: int) -> Nodes:
    """(N,) the number of the group that each of `count` elements is in."""
    numbers = np.empty(count, dtype=np.int64)
    for number, group in enumerate(groups):
        numbers[list(group)] = number
    return numbers


def contract(weights: Floats, groups: Sequence[Sequence[int]]) -> Floats:
    """(G, G) weights between groups of elements, zero diagonal."""
    member = group_numbers(groups, len(weights))
    order = np.argsort(member, kind="stable")
    first = np.searchsorted(member[order], np.arange(len(groups)))
    rows = np.add.reduceat(weights[order], first, axis=0)
    columns = np.ascontiguousarray(rows.T)[order]  # sums down columns are quicker than along rows
    between: Floats = np.ascontiguousarray(np.add.reduceat(columns, first, axis=0).T)
    np.fill_diagonal(between, 0.0)
    return between


def form_groups(weights: Floats, sizes: Sequence[int]) -> list[list[int]]:
    """Groups of the given sizes, formed in turn; each takes the element with the greatest weight to it.

    Ties go to the lowest index; the seed is the lowest element left. Members keep their order of joining.
    """
    free = np.ones(len(weights), dtype=bool)
    groups: list[list[int]] = []
    for size in sizes:
        group: list[int] = []
        sums = np.where(free, 0.0, -np.inf)
        for _ in range(size):
            chosen = int(sums.argmax())
            free[chosen] = False
            group.append(chosen)
            sums += weights[chosen]
            sums[chosen] = -np.inf
        groups.append(group)
    return groups
