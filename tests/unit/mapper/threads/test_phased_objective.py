"""The objective `phased`: no controller overloaded in any phase that matters."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from numaplan.common import UsageError
from numaplan.mapper import METHODS, evaluate, map_threads
from numaplan.mapper.threads.mapping import place_threads
from numaplan.mapper.threads.phases import goal_of, phase_imbalance
from numaplan.mapper.threads.problem import Floats, Nodes, Problem, new_problem
from numaplan.mapper.threads.refine import Exchange, refine
from numaplan.profiler import Machine
from tests.support.properties import examples

# Four threads work in the first phase, four in the second; each talks to the others of its own phase.
PHASES = np.array([[1.0] * 4 + [0.0] * 4, [0.0] * 4 + [1.0] * 4])
BLOCKS = np.kron(np.eye(2), np.ones((4, 4))) * 10 + 1


def overload(nodes: Nodes) -> float:
    sums = np.stack([np.bincount(nodes, weights=row, minlength=2) for row in PHASES])
    return float((sums / 2).max())  # times a node's share


@pytest.mark.filterwarnings("error")
def test_a_phase_without_load_is_none_to_balance() -> None:
    idle = np.vstack([PHASES, np.zeros(8)])
    phased = map_threads(BLOCKS, PHASES.sum(axis=0), "2x4", objective="phased", phases=idle)
    assert overload(phased) == 1.0


def test_ignoring_phases_overloads_a_controller() -> None:
    """Over the whole run both placements are balanced; by communication alone a phase has one node only."""
    plain = map_threads(BLOCKS, PHASES.sum(axis=0), "2x4")
    assert overload(plain) == 2.0
    phased = map_threads(BLOCKS, PHASES.sum(axis=0), "2x4", objective="phased", phases=PHASES)
    assert overload(phased) == 1.0
    assert np.bincount(phased).tolist() == [4, 4]
    # Two of each block on each node is all that balances: nothing cheaper keeps it.
    assert evaluate(BLOCKS, None, "2x4", phased).remote_comm == 2 * 4 * 11 + 8


def problem_of(phases: Floats, rates: Floats | None = None, machine: str = "2x4") -> Problem:
    return new_problem(
        BLOCKS,
        phases.sum(axis=0),
        Machine.load(machine),
        objective="phased",
        phases=phases,
        phase_rates=rates,
    )


def test_a_phase_of_hardly_any_accesses_is_not_worth_communication() -> None:
    plain = map_threads(BLOCKS, PHASES.sum(axis=0), "2x4")
    idle = problem_of(PHASES * 1e-3, rates=np.array([1e-3, 1e-3]) * [1, 1])
    assert phase_imbalance(idle, plain) == pytest.approx(1.0)  # both alike: relative to the busiest
    uneven = problem_of(PHASES, rates=np.array([1.0, 0.01]))
    nodes = place_threads(METHODS["best"], uneven)
    assert phase_imbalance(uneven, nodes) <= 0.05


def test_what_no_placement_can_avoid_does_not_count() -> None:
    serial = np.array([[8.0] + [0.0] * 7, [1.0] * 8])
    problem = problem_of(serial)
    nodes = place_threads(METHODS["best"], problem)
    assert phase_imbalance(problem, nodes) == pytest.approx(0.0, abs=1e-9)
    assert evaluate(BLOCKS, None, "2x4", nodes).remote_comm == 16  # the blocks stay together


@examples(40)
@given(seed=st.integers(0, 10_000), threads=st.integers(4, 14), phases=st.integers(1, 4))
def test_refining_is_never_worse_and_changes_are_exact(seed: int, threads: int, phases: int) -> None:
    rng = np.random.default_rng(seed)
    comm = rng.random((threads, threads)) * rng.integers(0, 2, (threads, threads))
    comm = comm + comm.T
    np.fill_diagonal(comm, 0)
    problem = new_problem(
        comm, None, Machine.load("opteron-4x8"), objective="phased", phases=rng.random((phases, threads))
    )
    goal = goal_of(problem, pull=rng.random((threads, problem.nodes)))
    start = rng.permutation(np.repeat(np.arange(problem.nodes), problem.sizes))
    state = Exchange(goal, start)
    cost = state.communication_changes() + state.pull_changes()
    off = state.unbalance_changes()
    for first, second in ((0, 1), (1, threads - 1), (2, 3)):
        trial = start.copy()
        trial[[first, second]] = trial[[second, first]]
        after = Exchange(goal, trial)
        if start[first] != start[second]:
            assert after.cost() - state.cost() == pytest.approx(cost[first, second], abs=1e-9)
            assert after.unbalance() - state.unbalance() == pytest.approx(off[first, second], abs=1e-9)
    found = refine(goal, start)
    assert (np.bincount(found, minlength=problem.nodes) == problem.sizes).all()
    end = Exchange(goal, found)
    assert end.unbalance() <= state.unbalance() * 1.05 + 1e-9
    if end.unbalance() >= state.unbalance() - 1e-12:
        assert end.cost() <= state.cost() + 1e-9


@pytest.mark.parametrize(
    "phases,told",
    [
        (np.ones((2, 3)), "rows of 3 loads for 8 threads"),
        (-np.ones((1, 8)), "-1 at row 0, column 0"),
        ([["a"] * 8], "phases"),
        (np.full((2, 8), np.nan), "nan at row 0"),
    ],
)
def test_bad_phases_are_refused(phases: object, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        map_threads(BLOCKS, None, "2x4", objective="phased", phases=phases)  # type: ignore[arg-type]


def test_exact_says_that_it_cannot() -> None:
    with pytest.raises(UsageError, match="does not handle phases"):
        map_threads(BLOCKS, None, "2x4", "exact", "phased", phases=PHASES)
