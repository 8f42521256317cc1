"""Which threads of recordings scale: those that one thread makes more of when more are asked for.

Beside them may be threads that there is one of however many work: the main thread, if it only waits for the
others, and helpers that are made before or after them. What can be meant is tried, and taken is what gives
the plainest pattern; how many threads a recording was asked for is told by its command line, too.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from numaplan.common import UsageError

from ..threads.problem import Floats
from ..workload.workload import Workload
from .pattern import Pattern, find_pattern

WORKS = 0.2  # of the team's mean load, from which the thread that makes the others is one of them
MOST_HELPERS = 2
LIKELY = 0.05  # of the variance, that a sign of what is meant counts for
HELPER = 0.03  # of it, that each helper must explain
FLAT = 0.25  # deviation of pairs, in means, below which it is taken for noise
FEATURE = 0.005  # of it, that each feature must
OTHERWISE = 4.0  # times more or less than a member, that a helper works or talks


class Team(msgspec.Struct, frozen=True):
    """The threads of one recording, by their number: `members` in order of creation, `others` beside them.

    parent: creation path of who makes the members; leads: whether that thread is the first of them; before:
    how many siblings are made before the members.
    """

    members: tuple[int, ...]
    others: tuple[int, ...]
    parent: str
    leads: bool
    before: int

    def __len__(self) -> int:
        return len(self.members)

    def path(self, member: int, before: int = 0) -> str:
        """The creation path of a member, by its place, however many there are; before: how many threads
        earlier teams had."""
        if self.leads and member == 0:
            return self.parent
        return f"{self.parent}.{member + (0 if self.leads else 1) + self.before + before}"

    def path_of_other(self, path: str, n: int) -> str:
        """The path of another thread with n members: who was made after them comes later."""
        head, _, last = path.rpartition(".")
        made = len(self) - self.leads
        if head != self.parent or not last.isdecimal() or int(last) <= self.before:
            return path
        return f"{head}.{int(last) - made + n - self.leads}"


def find_teams(workloads: Sequence[Workload]) -> list[Team]:
    """The team of each recording.

    Raises UsageError where no number of threads differs, or of several.
    """
    parent = _parent(workloads)
    best: tuple[float, list[Team]] | None = None
    for leads, before, after in _readings(workloads, parent):
        teams = [_team(workload, parent, leads, before, after) for workload in workloads]
        if min(map(len, teams)) < 2:
            continue
        pattern = find_pattern(among(workload, team) for workload, team in zip(workloads, teams, strict=True))
        explained = [_explained(*pair, pattern) for pair in zip(workloads, teams, strict=True)]
        score = float(np.mean(explained)) + _likely(workloads, teams)
        score -= FEATURE * len(pattern.features) + HELPER * (before + after)
        if best is None or score > best[0] + 1e-9:
            best = score, teams
    if best is None:
        raise UsageError("a recording has fewer than two threads that share the work", "record with more")
    return best[1]


def among(workload: Workload, team: Team) -> Floats:
    """(n, n) the communication of the members."""
    comm = np.asarray(workload.comm)
    return comm[np.ix_(team.members, team.members)]


def _explained(workload: Workload, team: Team, pattern: Pattern) -> float:
    """How much of all communication the pattern explains, and the mean of others with the members."""
    comm = np.asarray(workload.comm)
    found = among(workload, team)
    predicted = np.zeros_like(comm)
    predicted[np.ix_(team.members, team.members)] = pattern.matrix(len(team)) * float(found.sum())
    for other in team.others:
        predicted[other, list(team.members)] = comm[other, list(team.members)].mean()
        predicted[list(team.members), other] = comm[list(team.members), other].mean()
        predicted[other, list(team.others)] = comm[other, list(team.others)]
    upper = np.triu_indices(len(comm), 1)
    spread = max(float(comm[upper].var()), (FLAT * float(comm[upper].mean())) ** 2)
    left = float(((comm - predicted)[upper] ** 2).mean())
    return max(1 - left / spread, 0.0) if spread > 0 else 0.0


def _siblings(workload: Workload, parent: str) -> list[int]:
    """Numbers of the threads that a thread made, in order."""
    found = [
        (int(path.rpartition(".")[2]), number)
        for number, (_, path) in enumerate(workload.threads)
        if path.rpartition(".")[0] == parent
    ]
    return [number for _, number in sorted(found)]


def _parent(workloads: Sequence[Workload]) -> str:
    """Creation path of the thread that makes more where more are asked for."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * len(workloads))
    for run, workload in enumerate(workloads):
        if len({process for process, _ in workload.threads}) > 1:
            raise UsageError(
                "recordings of several processes cannot be carried over to another number of threads",
                "plan each process by itself",
            )
        for _, path in workload.threads:
            head, _, _ = path.rpartition(".")
            if head:
                counts[head][run] += 1
    differ = {head: found for head, found in counts.items() if len(set(found)) > 1}
    if not differ:
        raise UsageError(
            "all recordings have the same number of threads",
            "give recordings with two or more numbers of them",
        )
    if len(differ) > 1:
        raise UsageError(
            f"several threads ({', '.join(sorted(differ)[:3])}) make more or fewer others from run to run",
            "only threads of one creator can be carried over to another number",
        )
    return next(iter(differ))


def _readings(workloads: Sequence[Workload], parent: str) -> Iterator[tuple[bool, int, int]]:
    """What can be meant: whether the creator is one of the team, and helpers before and after it."""
    works = [_works(workload, parent) for workload in workloads]
    named = _named_helpers(workloads, parent)
    for leads in (True, False) if all(works) else (False,):
        if named is not None:
            yield leads, *named
            continue
        for helpers in range(MOST_HELPERS + 1):
            for before in range(helpers + 1):
                if helpers == 0 or all(
                    _apart(workload, parent, before, helpers - before) for workload in workloads
                ):
                    yield leads, before, helpers - before


def _works(workload: Workload, parent: str) -> bool:
    numbers = {path: number for number, (_, path) in enumerate(workload.threads)}
    if parent not in numbers:
        return False
    siblings = _siblings(workload, parent)
    talks = np.asarray(workload.comm).sum(axis=1)
    return any(
        bool(made[numbers[parent]] >= WORKS * float(np.median(made[siblings])))
        for made in (_loads(workload), talks)
    )


def _loads(workload: Workload) -> Floats:
    """What each thread does while others run."""
    return np.asarray(workload.loads, np.float64)


def _named_helpers(workloads: Sequence[Workload], parent: str) -> tuple[int, int] | None:
    """How many siblings before and after the rest have other names than these; None: names do not tell."""
    found = set()
    for workload in workloads:
        if not workload.names:
            return None
        names = [workload.names[number] for number in _siblings(workload, parent)]
        usual = max(set(names), key=names.count)
        own = [place for place, name in enumerate(names) if name == usual]
        if len(own) < 2 or own[-1] - own[0] + 1 != len(own):
            return None
        found.add((own[0], len(names) - 1 - own[-1]))
    return found.pop() if len(found) == 1 and found != {(0, 0)} else None


def _apart(workload: Workload, parent: str, before: int, after: int) -> bool:
    """Whether siblings at both ends do something else: other loads, or others to talk to, than the rest."""
    siblings = _siblings(workload, parent)
    rest = siblings[before : len(siblings) - after]
    if len(rest) < 2:
        return False
    comm, loads = np.asarray(workload.comm).sum(axis=1), _loads(workload)
    for number in set(siblings) - set(rest):
        talks = comm[number] / (float(np.median(comm[rest])) or 1.0)
        works = loads[number] / (float(np.median(loads[rest])) or 1.0)
        if all(1 / OTHERWISE < ratio < OTHERWISE for ratio in (talks, works)):
            return False
    return True


def _team(workload: Workload, parent: str, leads: bool, before: int, after: int) -> Team:
    siblings = _siblings(workload, parent)
    members = siblings[before : len(siblings) - after]
    if leads:
        members = [next(i for i, (_, path) in enumerate(workload.threads) if path == parent), *members]
    others = tuple(i for i in range(len(workload.threads)) if i not in set(members))
    return Team(tuple(members), others, parent, leads, before)


def _likely(workloads: Sequence[Workload], teams: Sequence[Team]) -> float:
    """Signs that these are the numbers that were asked for: the command line, and round numbers."""
    named = all(str(len(team)) in workload.argv[1:] for workload, team in zip(workloads, teams, strict=True))
    round_ones = all(len(team) & (len(team) - 1) == 0 for team in teams)
    return LIKELY * (named + 2 * round_ones)
