"""Whether a thread plays the same role from run to run: if not, a plan made from one run harms the next one.

In some programs threads take their number in random order, so the order of creation says nothing about
the work.
Two runs are compared as they are, and once more after the threads of the second have been matched to those
of the first (quadratic assignment): where the match fits much better, threads have swapped roles.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from numaplan.common import UsageError

from ..analyzed import Analysis
from ..notes import is_uniform

HOLDS = 0.85  # share of the matched correlation that is enough as is
ALIKE = 0.6  # correlation from which two matrices show the same program
STARTS = 8
MANY_THREADS = 128  # from here on one start, as a step takes threads cubed
SWAPPED_THREADS = 64  # up to here exchanges of two threads refine the match

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class RunAgreement:
    """How far two runs of a program agree about their threads.

    threads: (process, path) of those that both runs have, in the first one's order; others: how many only
    one has; correlation: of their communication as is (Pearson, pairs of threads); matched: the same after
    matching; roles: for each of `threads` the position in it of the thread that does its work in the second
    run; loads: correlation of the loads as is (0 where they are flat); verdict: `holds` threads keep their
    roles, `roles` they swap them, `differs` the runs differ in more than that, `flat` all pairs communicate
    alike, so that roles do not matter for communication.
    """

    threads: list[tuple[str, str]]
    others: int
    correlation: float
    matched: float
    roles: list[int]
    loads: float
    verdict: str

    @property
    def swapped(self) -> int:
        """How many threads have another role in the second run."""
        return sum(role != index for index, role in enumerate(self.roles))

    def sentence(self) -> str:
        """The verdict as one line for people."""
        figures = (
            f"correlation {self.correlation:.2f} as is, {self.matched:.2f} with threads matched to roles"
        )
        meaning = {
            "holds": "threads keep their roles from run to run",
            "roles": f"{self.swapped} of {len(self.threads)} threads swap roles from run to run: a plan of "
            "one run does not fit the next one",
            "differs": "the runs differ in more than the roles of threads: record them alike, or longer",
            "flat": "all pairs communicate about equally, so roles do not matter for communication",
        }
        missing = f"; {self.others} threads are in one run only" if self.others else ""
        return f"{meaning[self.verdict]} ({figures}{missing})"


def compare_runs(first: Analysis, second: Analysis) -> RunAgreement:
    """Compare two runs of one program, thread by thread; threads are the same by process and path.

    Raises UsageError when they have fewer than two threads in common.
    """
    keys = thread_keys(first)
    place = {key: index for index, key in enumerate(thread_keys(second))}
    common = [key for key in keys if key in place]
    if len(common) < 2:
        raise UsageError(
            f"the runs have {len(common)} threads in common",
            "give recordings of one program, run in the same way",
        )
    one = np.array([index for index, key in enumerate(keys) if key in place])
    other = np.array([place[key] for key in common])
    left, right = first.comm[np.ix_(one, one)], second.comm[np.ix_(other, other)]
    roles = match_threads(left, right)
    correlation = matrix_correlation(left, right)
    matched = matrix_correlation(left, _seated(right, roles))
    flat = is_uniform(first.comm, first.standard_error) or is_uniform(second.comm, second.standard_error)
    return RunAgreement(
        threads=common,
        others=len(keys) + len(place) - 2 * len(common),
        correlation=correlation,
        matched=matched,
        roles=roles.tolist(),
        loads=_correlation(first.loads[one], second.loads[other]),
        verdict=_verdict(left, right, correlation, matched, flat),
    )


def thread_keys(analysis: Analysis) -> list[tuple[str, str]]:
    """(process, path) of each thread."""
    return [(thread.process, thread.path) for thread in analysis.threads]


def matrix_correlation(one: ArrayLike, other: ArrayLike) -> float:
    """Pearson correlation of two (N, N) symmetric matrices over their pairs; flat ones: 1 if equal or 0."""
    left, right = np.asarray(one, np.float64), np.asarray(other, np.float64)
    upper = np.triu_indices(len(left), 1)
    if np.array_equal(left[upper], right[upper]):
        return 1.0
    return _correlation(left[upper], right[upper])


def match_threads(one: ArrayLike, other: ArrayLike, *, seed: int = 0) -> NDArray[np.int64]:
    """(N,) roles: other[roles][:, roles] is as near to `one` as was found; both (N, N), symmetric.

    Fast approximate quadratic assignment (Vogelstein et al. 2015), for few threads from several starts and
    refined by exchanges; never worse than the identity, which wins a tie.
    """
    from scipy.optimize import quadratic_assignment

    left, right = _scaled(one), _scaled(other)
    count = len(left)
    best = np.arange(count)
    reached = float((left * right).sum())
    rng = np.random.default_rng(seed)
    starts: list[Any] = ["barycenter"]
    if count < MANY_THREADS:
        starts += [np.eye(count), *["randomized"] * (STARTS - 2)]
    for start in starts:
        found = quadratic_assignment(
            left, right, method="faq", options={"maximize": True, "P0": start, "rng": rng}
        )
        if count <= SWAPPED_THREADS:
            guess = np.column_stack([np.arange(count), found.col_ind])
            found = quadratic_assignment(
                left, right, method="2opt", options={"maximize": True, "partial_guess": guess, "rng": rng}
            )
        if float(found.fun) > reached * (1 + 1e-9):
            best, reached = np.asarray(found.col_ind, np.int64), float(found.fun)
    return best


def _scaled(matrix: ArrayLike) -> Matrix:
    values = np.asarray(matrix, np.float64)
    return values / (float(values.max(initial=0.0)) or 1.0)


def _correlation(one: Matrix, other: Matrix) -> float:
    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def _verdict(left: Matrix, right: Matrix, correlation: float, matched: float, flat: bool) -> str:
    if matched >= ALIKE and correlation >= HOLDS * matched:
        return "holds"
    if flat:
        return "flat"
    # A match can fit anything a little, few threads even well: it must fit better than one to mere chance.
    chance = _shuffled(right)
    by_chance = matrix_correlation(left, _seated(chance, match_threads(left, chance)))
    return "roles" if matched >= ALIKE and matched > (1 + by_chance) / 2 else "differs"


def _seated(matrix: Matrix, roles: NDArray[np.int64]) -> Matrix:
    answer: Matrix = matrix[np.ix_(roles, roles)]
    return answer


def _shuffled(matrix: Matrix) -> Matrix:
    """The same entries between other pairs of threads."""
    upper = np.triu_indices(len(matrix), 1)
    answer = np.zeros_like(matrix)
    answer[upper] = np.random.default_rng(0).permutation(matrix[upper])
    return answer + answer.T
