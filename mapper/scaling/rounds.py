"""Teams that a program makes one after another: the same threads again, with further creation paths.

Recordings are carried over by lanes (workload/lifetimes/lanes.py), each with the path of its first
thread. What the threads of a lane do is dealt to them in equal parts here.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from numaplan.analyzer import BY_PAIRS, PageCounts
from numaplan.profiler import path_key

from ..threads.problem import Floats, Nodes
from ..workload.use import ThreadUse
from ..workload.workload import Workload
from .rows import COUNTS
from .team import Team

MOST = 2048  # threads of all teams: their matrices are dense
NO_PLACE = (
    "threads that are made after others have ended have no place in the plan: they are not as many further"
    f" teams in each recording, or more than {MOST} threads"
)


def rounds_of(workload: Workload, lane: Nodes, team: Team) -> int:
    """How often a recording makes its team; 0: threads come later that are no such team.

    lane: (N,) of each thread; team: of the lanes.
    """
    paths = [path for _, path in workload.threads]
    first = [paths[number] for number in np.unique(lane, return_index=True)[1]]
    if len(first) == len(paths):
        return 1
    made = len(team) - team.leads
    rounds = (len(paths) - len(team.others) - team.leads) // made
    expected = {path: row for row, path in enumerate(first)}
    expected |= {
        team.path(place, again * made): row
        for again in range(rounds)
        for place, row in enumerate(team.members)
        if place or not team.leads
    }
    # One that is made after the members would come after all teams, or between them.
    after = any(team.path_of_other(first[row], len(team) + 1) != first[row] for row in team.others)
    return rounds if expected == dict(zip(paths, lane.tolist(), strict=True)) and not after else 0


def common_rounds(found: Sequence[int], n: int) -> int:
    """The rounds of all recordings, for n threads; 0: they differ, or are too many."""
    rounds = found[0]
    return rounds if set(found) == {rounds} and (rounds == 1 or rounds * n <= MOST) else 0


def in_rounds(workload: Workload, team: Team, n: int, rounds: int) -> Workload:
    """A workload of n members as one of `rounds` teams, one after another; team: of a recording."""
    return _Rounds(workload, team, n, rounds).workload()


class _Rounds:
    """row, turn: (T,) row of the workload of one team that each thread stands for, and in which team, -1: it
    is there all the time; share: (T,) of what that row does."""

    def __init__(self, one: Workload, team: Team, n: int, rounds: int) -> None:
        self.one, self.team, self.rounds = one, team, rounds
        self.member = {team.path(place): place for place in range(int(team.leads), n)}
        self.made = [path in self.member for _, path in one.threads]
        threads = [
            (self._path(path, again), row, again) if made else (path, row, -1)
            for row, ((_, path), made) in enumerate(zip(one.threads, self.made, strict=True))
            for again in range(rounds if made else 1)
        ]
        threads.sort(key=lambda thread: path_key(thread[0]))
        self.paths = [path for path, _, _ in threads]
        self.row, self.turn = (np.array([thread[at] for thread in threads]) for at in (1, 2))
        self.share = np.where(self.turn < 0, 1.0, 1.0 / rounds)
        # (rounds, rows + 1) which thread a row is in each team; the last row, -1, is nobody.
        self.thread = np.full((rounds, len(one.threads) + 1), -1)
        for number, (_, row, again) in enumerate(threads):
            self.thread[slice(None) if again < 0 else again, row] = number

    def workload(self) -> Workload:
        """All teams."""
        one = self.one
        assert isinstance(one.comm, np.ndarray)
        lasts = one.lasted_s * 1e9 if math.isfinite(one.lasted_s) else 1e9
        ends = np.linspace(0, max(lasts, self.rounds), self.rounds + 1).astype(np.int64)
        process = one.threads[0][0]
        return replace(
            one,
            threads=[(process, path) for path in self.paths],
            comm=self._matrix(one.comm),
            loads=self._vector(one.loads),
            pages=None if one.pages is None else self._pages(one.pages),
            keeps=tuple(one.keeps[row] for row in self.row) if one.keeps else (),
            names=tuple(one.names[row] for row in self.row) if one.names else (),
            use=None if one.use is None else self._use(one.use),
            lives=tuple(
                (0, -1) if again < 0 else (int(ends[again]), int(ends[again + 1]))
                for again in self.turn.tolist()
            ),
        )

    def _vector(self, vector: Floats) -> Floats:
        answer: Floats = vector[self.row] * self.share
        return answer

    def _matrix(self, matrix: Floats) -> Floats:
        """(T, T) in equal parts to all teams; threads of two teams have nothing with each other."""
        one, other = self.turn[:, None], self.turn[None, :]
        meet = (one == other) | (one < 0) | (other < 0)
        answer: Floats = matrix[np.ix_(self.row, self.row)] * meet * np.minimum.outer(self.share, self.share)
        return answer

    def _use(self, use: ThreadUse) -> ThreadUse:
        def vector(found: Floats | None) -> Floats | None:
            return None if found is None else self._vector(found)

        return replace(
            use,
            accesses=self._vector(use.accesses),
            lines=self._matrix(use.lines),
            together=self._matrix(use.together) / self.share[:, None],  # of the time that a thread runs
            kept=None if use.kept is None else self._matrix(use.kept),
            beyond=vector(use.beyond),
            sleeps=vector(use.sleeps),
        )

    def _pages(self, pages: PageCounts) -> PageCounts:
        """With what members make for themselves once for each team, and the rest used by all teams alike."""
        own = np.array([key.thread in self.member for key in pages.regions], bool)
        keys, sources = list(pages.regions), dict(pages.sources)
        number, parts = np.arange(len(keys)), [self._rows(pages, own, np.arange(len(keys)), 0)]
        for again in range(1, self.rounds):
            number[own] = len(keys) + np.arange(own.sum())
            for key in np.array(pages.regions, object)[own]:
                keys.append(replace(key, thread=self._path(key.thread, again)))
                if key in pages.sources:
                    sources[keys[-1]] = pages.sources[key]
            parts.append(self._rows(pages, own, number, again))
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        order = np.lexsort([columns[name] for name in ("thread", "page", "region")])
        apart = {name: getattr(pages, name) for name in BY_PAIRS}
        lives = pages.lives
        return replace(
            pages,
            regions=keys,
            sources=sources,
            lives=None if lives is None else np.concatenate([lives, *[lives[own]] * (self.rounds - 1)]),
            **{name: column[order] for name, column in columns.items()},
            **{name: None if found is None else self._matrix(found) for name, found in apart.items()},
        )

    def _rows(self, pages: PageCounts, own: NDArray[np.bool_], number: Nodes, again: int) -> dict[str, Any]:
        """Columns of one team; number: of each region for it, own: which ones are the members' own."""
        theirs = own[pages.region]
        part = np.where(theirs | ~np.append(self.made, False)[pages.thread], 1.0, 1 / self.rounds)
        kept = theirs | (part < 1) | (again == 0)
        found = {
            "region": number[pages.region],
            "page": pages.page,
            "thread": self.thread[again][pages.thread],
        }
        if pages.toucher is not None:
            first = np.where(theirs, again, 0)
            found["toucher"] = self.thread[first, pages.toucher]
        found |= {name: getattr(pages, name) * part for name in COUNTS if getattr(pages, name) is not None}
        return {name: column[kept] for name, column in found.items()}

    def _path(self, path: str, again: int) -> str:
        return self.team.path(self.member[path], again * len(self.member))
