"""Threads, communication, loads and memory of a program, carried over to another number of threads."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from numaplan.analyzer import BY_PAIRS, RESTACKED
from numaplan.profiler import path_key

from ..threads.problem import Floats
from ..workload.use import ThreadUse
from ..workload.workload import Workload
from .memory import scaled_pages
from .pattern import Pattern
from .profiles import carried, source
from .rows import Scale
from .sequences import Recording
from .team import Team

Pair = tuple[Workload, Team]


class Carried:
    """What is carried over from recordings with their teams, the largest last, to a team of n."""

    def __init__(self, pairs: Sequence[Pair], pattern: Pattern, n: int) -> None:
        self.pairs, self.pattern, self.n = pairs, pattern, n
        self.base, self.team = pairs[-1]
        members = {self.team.path(place): ("member", place) for place in range(n)}
        paths = [path for _, path in self.base.threads]
        others = {self.team.path_of_other(paths[number], n): ("other", number) for number in self.team.others}
        every = sorted({**others, **members}.items(), key=lambda pair: path_key(pair[0]))
        self.paths = [path for path, _ in every]
        kinds = [what for _, what in every]
        self.members = np.array([kinds.index(("member", place)) for place in range(n)])
        self.others = {number: kinds.index(("other", number)) for number in self.team.others}

    def workload(self, *, roles: bool) -> tuple[Workload, tuple[str, ...]]:
        """It, and the paths of threads beside the members; roles: whether members are known to have some."""
        base, n = self.base, self.n
        use = self._use() if base.use is not None else None
        process = base.threads[0][0]
        stands = [int(self.team.members[int(source(np.array(i), n, len(self.team)))]) for i in range(n)]
        from_row = {int(row): stands[place] for place, row in enumerate(self.members)}
        from_row |= {row: number for number, row in self.others.items()}
        rows = [from_row[row] for row in range(len(self.paths))]
        members = list(self.team.members)
        keeps = list(base.keeps)
        usual = roles or not keeps or sum(keeps[i] for i in members) * 2 >= len(members)
        found = Workload(
            threads=[(process, path) for path in self.paths],
            comm=self.matrix("comm"),
            loads=self._vector("loads"),
            sources={},
            argv=base.argv,
            build_id=base.build_id,
            executable=base.executable,
            pages=self._pages(),
            machine=base.machine,
            notes=(),
            keeps=tuple(usual if row in set(members) else keeps[row] for row in rows) if keeps else (),
            names=tuple(base.names[row] for row in rows) if base.names else (),
            unordered=base.unordered,
            real_time=base.real_time,
            use=use,
            lasted_s=base.lasted_s,
        )
        return found, tuple(self.paths[row] for row in sorted(self.others.values()))

    def _vector(self, name: str) -> Floats:
        return self._carried_vector([self._of(workload, name) for workload, _ in self.pairs])

    @staticmethod
    def _of(workload: Workload, name: str) -> Floats:
        owner = workload if name in ("comm", "loads") else workload.use
        return np.asarray(getattr(owner, name), np.float64)

    def _carried_vector(self, vectors: Sequence[Floats]) -> Floats:
        """(N,) as the largest recording has it for others; the members' mean is that of its own."""
        last = vectors[-1]
        own: Mapping[int, Floats] = {
            len(team): vector[list(team.members)]
            for vector, (_, team) in zip(vectors, self.pairs, strict=True)
        }
        mean = float(last[list(self.team.members)].mean())
        answer = np.zeros(len(self.paths))
        answer[self.members] = mean * carried(own, self.n, self.pattern.order)
        for number, row in self.others.items():
            answer[row] = last[number]
        return answer

    def matrix(self, name: str) -> Floats:
        """(N, N) what threads exchange: the members' by the pattern, as much a member as was recorded."""
        comm = self._of(self.base, name)
        members = list(self.team.members)
        answer = self._beside(comm)
        total = float(comm[np.ix_(members, members)].sum()) * self.n / len(members)
        answer[np.ix_(self.members, self.members)] = total * self.pattern.matrix(self.n)
        return answer

    def _beside(self, matrix: Floats) -> Floats:
        """(N, N) what is with threads that are no members."""
        answer = np.zeros((len(self.paths), len(self.paths)))
        members = list(self.team.members)
        for number, row in self.others.items():
            for other, at in self.others.items():
                answer[row, at] = matrix[number, other]
            for flip in (False, True):
                vector = (matrix.T if flip else matrix)[number, members]
                found = carried({len(members): vector}, self.n, self.pattern.order) * float(vector.mean())
                where = (self.members, row) if flip else (row, self.members)
                answer[where] = found
        return answer

    def _use(self) -> ThreadUse:
        uses = [workload.use for workload, _ in self.pairs]
        base = self.base.use
        assert base is not None
        together = self._beside(base.together)
        members = list(self.team.members)
        among_them = base.together[np.ix_(members, members)]
        pairs = among_them[~np.eye(len(members), dtype=bool)]
        together[np.ix_(self.members, self.members)] = float(pairs.mean()) if len(pairs) else 0.0
        np.fill_diagonal(together, 0.0)

        def counted(name: str) -> Floats | None:
            known = all(use is not None and getattr(use, name) is not None for use in uses)
            return self._vector(name) if known else None

        return ThreadUse(
            accesses=self._vector("accesses"),
            lines=self.matrix("lines"),
            together=np.minimum(together, 1.0),
            exact=base.exact,
            kept=None if base.kept is None else self.matrix("kept"),
            beyond=counted("beyond"),
            sleeps=counted("sleeps"),
        )

    def _pages(self) -> Any:
        pages = [workload.pages for workload, _ in self.pairs]
        if any(one is None for one in pages):
            return None
        recordings = [
            Recording(one, team, [path for _, path in workload.threads])
            for (workload, team), one in zip(self.pairs, pages, strict=True)
            if one is not None
        ]
        found = scaled_pages(
            recordings,
            Scale(self.team, self.members, self.others, self.n),
            lambda path: self.team.path_of_other(path, self.n) if self._is_other(path) else path,
        )
        base = recordings[-1].pages
        apart = {
            name: None if getattr(base, name) is None else self._touched(getattr(base, name))
            for name in BY_PAIRS
            if name != RESTACKED
        }
        return replace(found, **apart, restacked=None)

    def _is_other(self, path: str) -> bool:
        return any(self.base.threads[number][1] == path for number in self.team.others)

    def _touched(self, matrix: Floats) -> Floats:
        """(N, N) accesses of each thread to memory by who touched it: own, and of others alike."""
        answer, members = self._beside(matrix), list(self.team.members)
        own = matrix[np.ix_(members, members)]
        shared = own - np.diag(np.diag(own))
        first = float(shared[1:, 0].mean()) if self.team.leads else 0.0
        if self.team.leads:
            shared[:, 0] = 0.0
        between = float(shared.sum()) / len(members) / max(self.n - 1, 1)
        block = np.full((self.n, self.n), between)
        if self.team.leads:
            block[:, 0] = first
        np.fill_diagonal(
            block,
            carried({len(members): np.diag(own)}, self.n, self.pattern.order) * float(np.diag(own).mean()),
        )
        answer[np.ix_(self.members, self.members)] = block
        return answer
