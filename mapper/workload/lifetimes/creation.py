"""In which order the threads of all processes were made."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from ...threads.problem import Floats, Nodes


def creation_ranks(threads: Sequence[tuple[str, str]], lives: Sequence[tuple[int, int]]) -> Nodes:
    """(N,) how many threads were made before each one.

    threads: (process, creation path); lives: (start, end) in ns of one clock, or nothing: then they are in
    order. A thread may begin to run later than one that its creator made after it: it was made before that
    one began.
    """
    if not lives:
        return np.arange(len(threads))
    made = np.array([start for start, _ in lives])
    turn = np.arange(len(threads))
    for siblings in _siblings(threads):
        made[siblings] = np.minimum.accumulate(made[siblings][::-1])[::-1]
        turn[siblings] = np.sort(siblings)
    answer = np.empty(len(threads), np.int64)
    answer[np.lexsort([turn, made])] = np.arange(len(threads))
    return answer


def made_order(thread: tuple[str, str], number: int) -> tuple[int, ...]:
    """What to sort the threads that one made by: its number for them, as a path tells it."""
    last = thread[1].rpartition(".")[2]
    return (int(last), number) if last.isdecimal() else (0, number)


def creator_of(thread: tuple[str, str]) -> tuple[str, str]:
    """Of a thread (process, creation path) its process and the path of who made it."""
    process, path = thread
    return process, path.rpartition(".")[0]


def root_of(thread: tuple[str, str]) -> str:
    """The process of which that of a thread (process, creation path) descends: a rank, or itself."""
    return thread[0].partition(".")[0]


def _siblings(threads: Sequence[tuple[str, str]]) -> list[list[int]]:
    """The threads that each one made in its own process, in the order in which it did."""
    answer: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, (process, path) in enumerate(threads):
        if "." in path:
            answer[process, path.rpartition(".")[0]].append(number)
    return [sorted(own, key=lambda at: made_order(threads[at], at)) for own in answer.values()]


def ranks_of_lanes(ranks: Nodes, accesses: Floats, lane: Nodes) -> Nodes:
    """(lanes,) rank of each lane's thread that makes the most accesses."""
    order = np.lexsort([-accesses, lane])
    answer: Nodes = ranks[order[np.unique(lane[order], return_index=True)[1]]]
    return answer
