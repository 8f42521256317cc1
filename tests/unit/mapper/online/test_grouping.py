"""Which threads belong together: solved once, kept while it is good, solved again when it is not."""

import numpy as np
import pytest

from numaplan.common import UsageError
from numaplan.mapper import evaluate, map_threads
from numaplan.mapper.online.policies.numaplan.grouping import AGAIN, Grouping, GroupingProblem

THREADS = 12
SEATS = np.array([8, 8])
DISTANCES = np.array([[10.0, 20.0], [20.0, 10.0]])


def pairs(step: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Thread i talks to i + step."""
    comm = np.full((THREADS, THREADS), 0.01)
    for row in range(THREADS):
        comm[row, (row + step) % THREADS] = comm[(row + step) % THREADS, row] = 10.0
    np.fill_diagonal(comm, 0.0)
    return comm


def task(step: int, before: Grouping | None = None, objective: str = "remote") -> GroupingProblem:
    return GroupingProblem(
        np.arange(THREADS), SEATS, pairs(step), np.ones(THREADS), DISTANCES, objective, before
    )


def start() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.arange(THREADS) % 2


def test_threads_that_talk_get_together_and_seats_are_enough() -> None:
    grouping = task(6).grouping(start())
    assert (grouping.group[:6] == grouping.group[6:]).all()
    assert np.bincount(grouping.group, minlength=2).max() <= 8
    assert grouping.across < 0.02


def test_it_is_kept_while_it_is_good_and_then_solved_again() -> None:
    grouping = task(6).grouping(start())
    for decision in range(1, AGAIN + 1):
        grouping = task(6, grouping).grouping(start())
        assert grouping.decisions == decision
    grouping = task(6, grouping).grouping(start())
    assert grouping.decisions == 0
    changed = task(1, grouping).grouping(start())  # partners are others now
    assert changed.decisions == 0
    assert changed.across < task(1).across(grouping.group) / 2


def test_strangers_stay_where_they_are_unless_loads_are_to_be_even() -> None:
    silent, loads = np.zeros((THREADS, THREADS)), np.where(start() == 0, 5.0, 1.0)
    groups = {
        objective: GroupingProblem(np.arange(THREADS), SEATS, silent, loads, DISTANCES, objective).grouping(
            start()
        )
        for objective in ("remote", "balanced")
    }
    assert groups["remote"].group.tolist() == start().tolist()
    assert groups["balanced"].off < groups["remote"].off


def test_it_is_asked_again_for_other_threads_or_loads() -> None:
    grouping = task(6, objective="balanced").grouping(start())
    loads = np.where(grouping.group == 0, 5.0, 1.0)
    heavy = GroupingProblem(np.arange(THREADS), SEATS, pairs(6), loads, DISTANCES, "balanced", grouping)
    assert heavy.grouping(start()).off < heavy.unbalance(grouping.group)
    others = GroupingProblem(
        np.arange(THREADS) + 5, SEATS, pairs(6), np.ones(THREADS), DISTANCES, "remote", grouping
    )
    assert others.grouping(start()).decisions == 0
    assert others.grouping(start()).tids.tolist() == list(range(5, 17))


def test_map_threads_is_not_worse_than_what_it_starts_from() -> None:
    rng = np.random.default_rng(3)
    comm = rng.random((64, 64)) ** 8
    comm = comm + comm.T

    def cost(**how: object) -> float:
        places = map_threads(comm, None, "4x16", objective="remote", **how)  # type: ignore[arg-type]
        return evaluate(comm, None, "4x16", places).remote_comm

    good = map_threads(comm, None, "4x16", objective="remote")
    afresh, known = cost(effort="fast"), evaluate(comm, None, "4x16", good).remote_comm
    assert afresh > known >= cost(effort="fast", starts=[good])


@pytest.mark.parametrize("wrong", [[0] * 16, [0, 1, 2], [9] * 16])
def test_what_is_no_placement_is_refused_as_a_start(wrong: list[int]) -> None:
    with pytest.raises(UsageError):
        map_threads(np.ones((16, 16)), None, "4x4", starts=[wrong])
