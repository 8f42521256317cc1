"""Moments between two threads at which nobody lives but who was there before both and stays until after."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np

from ..workload import Workload
from .creation import root_of
from .lanes import FOREVER, Life, lasting


class Barriers:
    """Moments at which threads begin or end: since when those are there that live before and after, and until
    when. lives: of all threads; end FOREVER: to the end of the run."""

    def __init__(self, lives: Sequence[Life]) -> None:
        self._moments = sorted({moment for life in lives for moment in life})
        self._since, self._until = np.empty((2, len(self._moments)), np.int64)
        waiting, last, first = sorted(lives, reverse=True), list[Life](), list[Life]()
        for at, moment in enumerate(self._moments):
            while waiting and waiting[-1][0] < moment:
                start, end = waiting.pop()
                heappush(last, (-start, end))
                heappush(first, (end, start))
            while last and last[0][1] <= moment:
                heappop(last)
            while first and first[0][0] <= moment:
                heappop(first)
            self._since[at] = -last[0][0] if last else -FOREVER
            self._until[at] = first[0][0] if first else FOREVER

    def between(self, one: Life, other: Life) -> bool:
        """Whether the other life begins after the one, and at a moment between nobody lives but who has been
        there since before both and stays until after."""
        first, end = bisect_left(self._moments, one[1]), bisect_right(self._moments, other[0])
        stays = (self._since[first:end] <= one[0]) & (self._until[first:end] >= other[1])
        return bool(stays.any())

    def before(self, life: Life) -> int:
        """The last moment before a life, at which those that are there stay until it ends; -1: none."""
        found = np.flatnonzero(self._until[: bisect_right(self._moments, life[0])] >= life[1])
        return self._moments[int(found[-1])] if len(found) else -1


def barriers_of(workload: Workload) -> dict[str, Barriers]:
    """Those of all processes that come from one: each rank may have been recorded on a clock of its own."""
    lives: dict[str, list[Life]] = {}
    for thread, life in zip(workload.threads, workload.lives, strict=True):
        lives.setdefault(root_of(thread), []).append(lasting(life))
    return {root: Barriers(own) for root, own in lives.items()}
