"""Siblings: threads that one thread made and that exchange with one thread alone, as workers do with who
gives out the work. Which of them takes more of it is chance, so they are expected to exchange alike.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..threads.problem import Floats, Nodes
from .pools import kind_of

ALONE = 0.8  # of what a thread exchanges, that must be with one other
ALIKE = 3.0  # times as much as most of them, or as little, up to which the difference is taken for chance


def siblings_of(threads: Sequence[tuple[str, str]], lines: Floats, names: Sequence[str] = ()) -> list[Nodes]:
    """The threads of each group, if there are several; threads: (process, creation path) of each; lines:
    (N, N) that two threads take from each other; names: of each, where known."""
    made = lines.sum(axis=1)
    found: dict[tuple[str, str, str, int], list[int]] = defaultdict(list)
    for thread, (process, path) in enumerate(threads):
        hub = int(lines[thread].argmax())
        if made[thread] > 0 and lines[thread, hub] >= ALONE * made[thread]:
            found[process, path.rpartition(".")[0], kind_of(names, thread), hub].append(thread)
    groups = []
    for (*_, hub), members in found.items():
        own = np.array(members)
        groups.append(own[alike(lines[own, hub])])
    return [group for group in groups if len(group) > 1]


def alike(exchanged: Floats) -> NDArray[np.bool_]:
    """(N,) whether what each exchanges differs by chance from what most do."""
    usual = float(np.median(exchanged))
    answer: NDArray[np.bool_] = (exchanged <= ALIKE * usual) & (exchanged * ALIKE >= usual)
    return answer
