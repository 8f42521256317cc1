"""Siblings: threads that one thread made and that exchange with one thread alone, as workers do with who
gives out the work. Which of them takes more of it is chance, so they are expected to exchange alike. And
children of one process, or threads that one thread made, whose numbers are chance, as those of a server.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ...threads.problem import Floats, Nodes
from ..use import ThreadUse
from .pools import LIGHT, Twins, does_little, kind_of

ALONE = 0.8  # of what a thread exchanges, that must be with one other
FEWEST = 3  # siblings that do about as much
IDLE = 2  # siblings before them that do less; one may be a pool's helper, as the resource tracker of Python's
WELL_LESS = 2.0  # times fewer accesses than the others, of one that ran before them
DIGITS = 9  # of a number, at most
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


def children_by_chance(
    threads: Sequence[tuple[str, str]], names: Sequence[str], use: ThreadUse
) -> list[Twins]:
    """Children of each process, in order of creation, that run the same program with one thread each and do
    about as much at the same time, after some that do less: as those of a server, their numbers are chance.
    With those just before them that did at most half as much and hardly ran when they worked: they may be
    the first to work in the next run.

    threads: (process, creation path) of each; names: of each, where known: of one that has none it is not
    known what program it runs, so it is none of them; use: of these threads.
    """
    several = {process for process, path in threads if path != "0"}
    found: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for thread, (process, path) in enumerate(threads):
        parent, _, number = process.rpartition(".")
        named = bool(names) and bool(names[thread])
        if parent and path == "0" and named and process not in several and _is_number(number):
            found[parent, kind_of(names, thread)][int(number)] = thread
    return _by_chance(found.values(), use, np.zeros(len(threads), bool))


def threads_by_chance(
    threads: Sequence[tuple[str, str]], names: Sequence[str], use: ThreadUse, pools: Sequence[Nodes]
) -> list[Twins]:
    """The same of threads that one thread made, as a server does for each connection; also with those just
    before them that did little. Idle ones of pools are where these are."""
    pooled = np.concatenate([np.empty(0, np.int64), *pools])
    found: dict[tuple[str, str, str], dict[int, int]] = defaultdict(dict)
    for thread, (process, path) in enumerate(threads):
        maker, _, number = path.rpartition(".")
        if maker and _is_number(number):
            found[process, maker, kind_of(names, thread)][int(number)] = thread
    answer = []
    for own in _by_chance(found.values(), use, does_little(use.accesses, use.lines)):
        free = own.idle[:0] if np.isin(own.busy, pooled).any() else own.idle[~np.isin(own.idle, pooled)]
        answer.append(own._replace(idle=free))
    return answer


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= DIGITS


def _by_chance(siblings: Iterable[Mapping[int, int]], use: ThreadUse, idle: NDArray[np.bool_]) -> list[Twins]:
    """siblings: thread by number, of each group; idle: (N,) who counts as idle though it
    runs beside the others."""
    groups = []
    for by_number in siblings:
        own = np.array([by_number[number] for number in sorted(by_number)])
        working = _working(own, use)
        if len(working) < FEWEST:
            continue
        usual = float(np.median(use.accesses[working]))
        if use.accesses[own[:IDLE]].max() * ALIKE < usual:
            before = own[: int(np.argmax(own == working[0]))]
            apart = use.together[np.ix_(working, before)].mean(axis=0) < LIGHT
            apart &= use.accesses[before] * WELL_LESS < usual
            beside = np.flatnonzero(~(idle[before] | apart))
            groups.append(Twins(before[beside[-1] + 1 :] if len(beside) else before, working))
    return groups


def _working(own: Nodes, use: ThreadUse) -> Nodes:
    """Those that do about as much as most that do more than little, and run beside each other."""
    busy = own[use.accesses[own] > LIGHT * use.accesses[own].max(initial=0.0)]
    busy = busy[alike(use.accesses[busy])] if len(busy) else busy
    beside: Floats = use.together[np.ix_(busy, busy)].sum(axis=1)
    answer: Nodes = busy[(beside > 0) & (2 * beside >= np.median(beside))] if len(busy) else busy
    return answer


def by_distance(lines: Floats, children: Sequence[Nodes], threads: Sequence[tuple[str, str]]) -> Floats:
    """(N, N) lines of which children exchange the mean of all pairs that are as many numbers apart: that
    stays when each is a number later. threads: (process, creation path) of each."""
    answer = lines.copy()
    for own in children:
        number = np.array([_number(threads[thread][0]) for thread in own])
        _, apart = np.unique(np.subtract.outer(number, number), return_inverse=True)
        apart = apart.reshape(len(own), len(own))
        part = lines[np.ix_(own, own)]
        mean = np.bincount(apart.ravel(), part.ravel()) / np.bincount(apart.ravel())
        answer[np.ix_(own, own)] = mean[apart]
    return answer


def _number(process: str) -> int:
    """Which child of its parent it is."""
    return int(process.rpartition(".")[2])
