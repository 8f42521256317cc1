"""When threads run: how far in each stretch of the run."""

from collections.abc import Sequence

import msgspec
import numpy as np

from ..threads.problem import Floats, Nodes

STRETCHES = 256  # of each run, where several recordings are joined


class Activity(msgspec.Struct, frozen=True):
    """lasts: (S,) how long each stretch is, in any unit; running: (S, N) how far each thread runs in it,
    0..1; looked: whether that was seen, of threads that poll, too, and is not told from their accesses."""

    lasts: Floats
    running: Floats
    looked: bool = False

    def merged(self) -> "Activity":
        """The same with each kind of stretch once, in any order, and each thread's numbers side by side."""
        binary = bool(np.isin(self.running, (0.0, 1.0)).all())
        rows = np.ascontiguousarray(np.packbits(self.running > 0, axis=1) if binary else self.running)
        if not rows.size:
            return self
        # As bytes: to compare rows number by number takes seconds.
        words = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel()
        _, first, number = np.unique(words, return_index=True, return_inverse=True)
        lasts = np.bincount(number, self.lasts, len(first)).astype(np.float64)
        return Activity(lasts, np.asfortranarray(self.running[first]), self.looked)

    def of(self, threads: Nodes) -> Floats:
        """(S, T) how far these threads run."""
        answer: Floats = self.running.T[threads].T
        return answer

    @property
    def ran(self) -> Floats:
        """(N,) how long each thread runs."""
        answer: Floats = self.lasts @ self.running
        return answer

    def shares_of(self, groups: Sequence[Nodes]) -> Floats:
        """(groups,) how long any thread of each runs, over how long any thread at all does."""
        idle = np.array([np.prod(1.0 - self.of(group), axis=1) for group in groups])
        ran: Floats = (1.0 - idle) @ self.lasts
        every = float((1.0 - idle.prod(axis=0)) @ self.lasts) if len(groups) else 0.0
        return ran / every if every > 0 else np.ones(len(groups))

    def mean_over(self, found: Floats, threads: Nodes) -> Floats:
        """(T,) the mean of (S,) values of stretches over the time that each thread runs; 0: it does not."""
        running = self.of(threads)
        ran = self.lasts @ running
        total: Floats = (self.lasts * found) @ running
        return np.divide(total, ran, out=np.zeros_like(ran), where=ran > 0)

    def by_lane(self, lane: Nodes, count: int) -> "Activity":
        """The same of lanes: threads one after another."""
        running = np.zeros((count, len(self.lasts)))
        np.add.at(running, lane, self.running.T)
        return Activity(self.lasts, np.minimum(running.T, 1.0), self.looked)


def joined(parts: Sequence[tuple[Nodes, Activity | None]], count: int) -> Activity | None:
    """Of recordings of one run side by side (ranks), and of several runs one after another.

    parts: numbers of the threads of each recording, out of so many. None: of one it is not known.
    """
    runs: list[tuple[set[int], Floats]] = []
    for numbers, part in parts:
        if part is None:
            return None
        own = set(numbers.tolist())
        beside = next((run for run in runs if not run[0] & own), None)
        if beside is None:
            beside = set[int](), np.zeros((STRETCHES, count))
            runs.append(beside)
        beside[0].update(own)
        beside[1][:, numbers] = _evenly(part)
    if not runs:
        return None
    looked = all(part is not None and part.looked for _, part in parts)
    return Activity(np.ones(STRETCHES * len(runs)), np.concatenate([run[1] for run in runs]), looked)


def _evenly(part: Activity) -> Floats:
    """(STRETCHES, N) who runs in the middle of each of as many stretches of equal length: means would no more
    tell who runs at once."""
    ends = np.cumsum(part.lasts)
    middles = (np.arange(STRETCHES) + 0.5) / STRETCHES * ends[-1]
    answer: Floats = part.running[np.searchsorted(ends, middles)]
    return answer
