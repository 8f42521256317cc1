"""The worked examples of [EXCL]: Tables 1 and 3, figures 2, 7 and 9."""

import numpy as np
import pytest

from numaplan.mapper.online.observation import Observation
from numaplan.mapper.online.policies.balancing import Transfer, exclusivity
from numaplan.mapper.online.registry import make_policy
from tests.support.policy_cases import ints, machine_of, observation

SOURCE, TARGET = 0, 1

# Figure 2 and Table 1: pages of the three tasks in the source core's queue on the source and destination
# nodes.
PAGES = {3: (3, 7), 9: (3, 3), 10: (5, 10)}


def figure_2() -> Observation:
    return observation(
        machine_of(2, 2), [0, 0, 0], process=[0, 1, 2], tids=list(PAGES), resident=list(PAGES.values())
    )


@pytest.mark.parametrize(
    ("policy", "values", "selected"),
    [
        ("tm", [10, 6, 15], 9),
        ("mb", [4, 0, 5], 10),
        ("bce", [4 / 3, 0, 1], 3),
    ],
)
def test_table_1_measures_and_selects(policy: str, values: list[float], selected: int) -> None:
    seen = figure_2()
    task = Transfer(seen, ints([0, 1, 2]), SOURCE, TARGET)
    chosen = make_policy(policy)
    assert np.abs(chosen.measure(task)).tolist() == pytest.approx(values)
    assert seen.threads.tid[chosen.select(task).thread] == selected


def test_table_1_first_fit_takes_the_first() -> None:
    seen = figure_2()
    assert (
        seen.threads.tid[make_policy("first-fit").select(Transfer(seen, ints([0, 1, 2]), 0, 1)).thread] == 3
    )


# Figure 9 and Table 3(a): the hexagon group has 4 of 5 threads on node 0, the rectangle 2 of 5 on any.
def figure_9() -> tuple[Observation, dict[int, int]]:
    hexagon = [(4, 0), (5, 0), (1, 0), (2, 0), (3, 1)]
    rectangle = [(10, 0), (6, 0), (7, 1), (8, 2), (9, 2)]
    threads = hexagon + rectangle
    machine = machine_of(4, 4)
    seen = observation(
        machine,
        [4 * node for _, node in threads],
        process=[0] * 5 + [1] * 5,
        leaders=[2, 6],
        tids=[tid for tid, _ in threads],
    )
    return seen, {tid: row for row, (tid, _) in enumerate(threads)}


def test_table_3a_exclusivity_and_selection() -> None:
    seen, row = figure_9()
    assert exclusivity(seen).tolist() == [0.8, 0.4]
    queue = ints([row[1], row[4], row[5], row[10]])
    choice = make_policy("excl-base").select(Transfer(seen, queue, 0, 3))
    assert seen.threads.tid[choice.thread] == 10


# Figure 7 and Table 3(b): four groups, the queue of core 1 in its order; the leaders are where 3.2.2 says.
def figure_7() -> tuple[Observation, dict[int, int]]:
    pentagon = [(3, 0), (31, 0), (32, 0), (33, 2)]
    rectangle = [(11, 0), (111, 0), (112, 1), (113, 2), (114, 3)]
    shape = [(19, 0), (16, 0), (191, 2), (192, 3), (193, 1)]
    hexagon = [(6, 0), (9, 0), (61, 0), (62, 2), (63, 3)]
    groups = [pentagon, rectangle, shape, hexagon]
    threads = [thread for group in groups for thread in group]
    leaders = {31, 112, 191, 63}  # on the source, the destination, other nodes twice
    seen = observation(
        machine_of(4, 4),
        [4 * node + 1 for _, node in threads],
        process=[number for number, group in enumerate(groups) for _ in group],
        leaders=[row for row, (tid, _) in enumerate(threads) if tid in leaders],
        tids=[tid for tid, _ in threads],
    )
    return seen, {tid: row for row, (tid, _) in enumerate(threads)}


QUEUE = [3, 11, 19, 6, 16, 9]


def test_table_3b_exclusivity_and_selection() -> None:
    seen, row = figure_7()
    assert exclusivity(seen).tolist() == [0.75, 0.4, 0.4, 0.6]
    choice = make_policy("excl-base").select(Transfer(seen, ints([row[tid] for tid in QUEUE]), 0, 1))
    assert seen.threads.tid[choice.thread] == 11


def test_the_thread_whose_leader_is_on_the_destination_goes_at_once() -> None:
    seen, row = figure_7()
    choice = make_policy("excl").select(Transfer(seen, ints([row[tid] for tid in QUEUE]), 0, 1))
    assert (seen.threads.tid[choice.thread], choice.reason) == (11, "joins its leader")


def test_then_one_of_each_group_with_its_leader_elsewhere_is_evaluated() -> None:
    seen, row = figure_7()
    left = [row[tid] for tid in QUEUE if tid != 11]
    task = Transfer(seen, ints(left), 0, 1)
    evaluated: list[int] = []
    policy = make_policy("excl")
    original = type(policy).measure

    class Spy(type(policy)):  # type: ignore[misc]
        def measure(self, task: Transfer) -> np.ndarray:  # type: ignore[type-arg]
            evaluated.extend(seen.threads.tid[task.queue].tolist())
            return original(self, task)

    choice = Spy().select(task)
    assert evaluated == [19, 6]
    assert seen.threads.tid[choice.thread] == 19


def test_a_queue_of_threads_near_their_leader_gives_none() -> None:
    seen, row = figure_7()
    assert make_policy("excl").select(Transfer(seen, ints([row[3]]), 0, 1)) is None


def test_leaders_are_never_chosen_by_the_enhanced_policies() -> None:
    seen, row = figure_7()
    for name in ("excl", "mb+"):
        assert make_policy(name).select(Transfer(seen, ints([row[191], row[63]]), 2, 1)) is None


def test_balancing_moves_until_nodes_are_even_and_leaves_even_ones() -> None:
    machine = machine_of(2, 2)
    crowded = observation(machine, [0, 0, 1, 1, 2], resident=[[1, 1]])
    decision = make_policy("first-fit").decide(crowded, None)
    assert [(move.tid, move.node) for move in decision.actions] == [(0, 1)]
    assert make_policy("first-fit").decide(observation(machine, [0, 1, 2, 3]), None).actions == ()


def test_mb_measures_what_migration_changes_in_all_accesses() -> None:
    """Equations 1 to 6: moving a thread from S to D changes the group's cost by (R_D - R_S) (1 - f)."""
    rng = np.random.default_rng(1)
    factor = 1.6  # of the paper's machine

    def cost(threads: np.ndarray, pages: np.ndarray) -> float:  # type: ignore[type-arg]
        local = threads @ pages
        return float(local + (threads.sum() * pages.sum() - local) * factor)

    for _ in range(20):
        threads, pages = rng.integers(1, 9, 4), rng.integers(0, 99, 4)
        seen = observation(machine_of(4, 2), [0], resident=[pages.tolist()])
        moved = threads + ints([-1, 0, 1, 0])
        (benefit,) = make_policy("mb").measure(Transfer(seen, ints([0]), 0, 2)).tolist()
        assert cost(moved, pages) - cost(threads, pages) == pytest.approx(benefit * (1 - factor))
