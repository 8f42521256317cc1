"""What the solver is told beside the matrix: pinned threads, phases, and large sparse matrices."""

from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from scipy import sparse

from numaplan.common import UsageError
from numaplan.mapper import METHODS, evaluate, map_threads
from numaplan.mapper.threads.bounds import lower_bound
from numaplan.mapper.threads.cost import load_deviation, objective_value
from numaplan.mapper.threads.inputs import WHOLE_LIMIT
from numaplan.mapper.threads.mapping import place_threads
from numaplan.mapper.threads.methods.best import best
from numaplan.mapper.threads.methods.exact import exact
from numaplan.mapper.threads.pins import hold_pins
from numaplan.mapper.threads.problem import Floats, Nodes, Problem, new_problem
from numaplan.mapper.threads.solver import load_rows
from numaplan.mapper.threads.sparse import SparseMatrix, sparse_matrix
from numaplan.mapper.workload.files import read_comm
from numaplan.profiler import Machine
from tests.support.properties import examples
from tests.support.tasks import OBJECTIVES, random_problem


def pinned(problem: Problem, seed: int) -> Problem:
    """Some threads pinned, no node beyond its size."""
    rng = np.random.default_rng(seed)
    places = rng.permutation(np.repeat(np.arange(problem.nodes), problem.sizes))
    return replace(problem, fixed=np.where(rng.random(problem.threads) < 0.4, places, -1))


def sparse_from(comm: Floats) -> SparseMatrix:
    return sparse_matrix(sparse.csr_array(comm))


def thin(problem: Problem) -> Problem:
    """The same task with its matrix by entries."""
    return replace(problem, comm=np.zeros((0, 0)), sparse=sparse_from(problem.comm))


def cheapest(problem: Problem) -> float:
    """By trying every placement."""
    seats = np.repeat(np.arange(problem.nodes), problem.sizes).tolist()
    assert problem.fixed is not None
    free = problem.fixed < 0
    return min(
        objective_value(problem, np.array(places))
        for places in set(permutations(seats))
        if ((problem.fixed == places) | free).all()
    )


@examples(40)
@given(
    threads=st.integers(2, 7),
    nodes=st.integers(2, 3),
    seed=st.integers(0, 10_000),
    objective=st.sampled_from(["remote", "hop"]),
)
def test_pinned_threads_stay_and_the_others_are_placed_best(
    threads: int, nodes: int, seed: int, objective: str
) -> None:
    problem = pinned(random_problem(threads, nodes, seed, objective), seed)
    assert problem.fixed is not None
    for places in (best(problem), exact(problem)):
        assert ((places == problem.fixed) | (problem.fixed < 0)).all()
        assert np.bincount(places, minlength=nodes).tolist() == problem.sizes.tolist()
        assert objective_value(problem, places) == pytest.approx(cheapest(problem))


@examples(30)
@given(seed=st.integers(0, 10_000), objective=st.sampled_from(OBJECTIVES), pins=st.booleans())
@example(seed=1883, objective="balanced", pins=True)  # one pin's exchange brings another thread home
def test_matrices_by_entries_are_placed_as_well(seed: int, objective: str, pins: bool) -> None:
    whole = random_problem(int(2 + seed % 40), 2 + seed % 4, seed, objective)
    whole = replace(pinned(whole, seed) if pins else whole, effort="fast")
    problem = thin(whole)
    places = best(problem)
    assert np.bincount(places, minlength=whole.nodes).tolist() == whole.sizes.tolist()
    assert whole.fixed is None or ((places == whole.fixed) | (whole.fixed < 0)).all()
    assert objective_value(problem, places) == pytest.approx(objective_value(whole, places))
    if objective != "balanced" and not pins:
        baselines = [METHODS[name](whole) for name in ("compact", "scatter", "interleave")]
        assert objective_value(whole, places) <= min(objective_value(whole, b) for b in baselines) * (
            1 + 1e-9
        )
    assert lower_bound(problem) <= lower_bound(whole) * (1 + 1e-9)


@pytest.mark.parametrize("method", ["best", "compact", "random"])
def test_pins_hold_in_large_sparse_tasks(method: str) -> None:
    """Three nodes are pinned full, so that an exchange may bring home a thread whose turn is yet to come."""
    ring, _ = big_ring(WHOLE_LIMIT + 4)
    homes = np.random.default_rng(4).permutation(np.arange(len(ring.indptr) - 1) % 4).tolist()
    pins = {thread: home for thread, home in enumerate(homes) if home != 3}
    problem = new_problem(ring, None, Machine.load("4x513"), effort="fast", pinned=pins)
    places = place_threads(METHODS[method], problem)
    assert (places[list(pins)] == list(pins.values())).all()
    assert np.bincount(places).tolist() == problem.sizes.tolist()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_whom_a_pin_displaces_is_the_same_however_the_matrix_is_held(objective: str) -> None:
    problem = pinned(random_problem(60, 4, 8, objective), 8)
    places = METHODS["compact"](problem)
    assert np.array_equal(hold_pins(problem, places), hold_pins(thin(problem), places))


def test_each_phase_is_balanced() -> None:
    """Threads 0..3 work first, 4..7 later; by the whole run any four are balanced."""
    comm = np.zeros((8, 8))
    comm[:4, :4] = comm[4:, 4:] = 9.0
    phases = np.repeat(np.array([[1.0, 0.0], [0.0, 1.0]]), 4, axis=1)
    problem = new_problem(comm, np.ones(8), Machine.load("2x4"), phases=phases)
    blind = best(problem)
    assert len(set(blind[:4])) == 1
    seeing = best(replace(problem, every_phase=True))
    for row in phases:
        assert np.bincount(seeing, row, 2).tolist() == [2, 2]


@examples(25)
@given(seed=st.integers(0, 10_000), rows=st.integers(1, 4))
def test_phases_are_balanced_where_that_is_easy(seed: int, rows: int) -> None:
    problem = random_problem(24, 3, seed, "balanced")
    phases = np.random.default_rng(seed).uniform(0.9, 1.1, (rows, 24))
    problem = replace(problem, loads=phases.sum(axis=0), phases=phases, every_phase=True)
    problem = replace(problem, targets=np.full(3, problem.loads.sum() / 3))
    places = best(problem)
    for row in phases:
        assert load_deviation(row, np.full(3, row.sum() / 3), places) <= problem.tolerance + 1e-9


def test_a_phase_of_one_thread_does_not_undo_the_balance_of_the_others() -> None:
    problem = random_problem(16, 2, 5, "balanced")
    serial = np.zeros(16)
    serial[0] = 5.0
    even = np.ones(16)
    problem = replace(
        problem, loads=even, targets=np.full(2, 8.0), phases=np.array([serial, even]), every_phase=True
    )
    slack = load_rows(problem)[2]
    assert slack[1] == pytest.approx(0.95)
    assert np.bincount(best(problem), even, 2).tolist() == [8, 8]


def big_ring(threads: int, seed: int = 3) -> tuple["sparse.csr_array", Nodes]:
    order = np.random.default_rng(seed).permutation(threads)
    entries = (np.ones(threads), (order, np.roll(order, 1)))
    ring = sparse.coo_array(entries, shape=(threads, threads))
    return (ring + ring.T).tocsr(), order


def test_large_sparse_tasks_are_not_made_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    ring, _ = big_ring(6000)
    monkeypatch.setattr(sparse.csr_array, "toarray", lambda *_: pytest.fail("made whole"))
    nodes = map_threads(ring, None, "4x1500", objective="remote", effort="fast")
    assert np.bincount(nodes).tolist() == [1500] * 4
    assert evaluate(ring, None, "4x1500", nodes).remote_comm <= 12
    with pytest.raises(UsageError, match="eagermap: takes sparse matrices of at most"):
        map_threads(ring, None, "4x1500", "eagermap")


@pytest.mark.parametrize("method", ["compact", "scatter", "interleave", "random"])
def test_baselines_take_large_sparse_tasks(method: str) -> None:
    ring, _ = big_ring(WHOLE_LIMIT + 2)
    assert np.bincount(map_threads(ring, None, "2x1100", method)).tolist() == [WHOLE_LIMIT // 2 + 1] * 2


def test_large_sparse_files_stay_sparse(tmp_path: Path) -> None:
    ring, order = big_ring(WHOLE_LIMIT + 1)
    sparse.save_npz(tmp_path / "comm.npz", ring)
    comm = read_comm(tmp_path / "comm.npz").comm
    assert isinstance(comm, SparseMatrix)
    assert comm.sum() == 2 * len(order)
    assert np.array_equal(comm.part(order[:3]), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize(
    "value,words",
    [
        (np.nan, "nan at row 7, column 9"),
        (-1.0, "-1 at row 7, column 9"),
        (np.inf, "inf at row 7, column 9"),
        (2.0, "not symmetric: 2 at row 7"),
    ],
)
def test_bad_entries_of_large_sparse_matrices_are_named(value: float, words: str) -> None:
    matrix = sparse.lil_array((3000, 3000))
    matrix[7, 9] = value
    with pytest.raises(UsageError, match=words):
        map_threads(matrix.tocsr(), None, "2x1500")


@examples(30)
@given(seed=st.integers(0, 10_000), threads=st.integers(1, 20))
def test_sparse_are_the_matrix(seed: int, threads: int) -> None:
    rng = np.random.default_rng(seed)
    comm = np.triu(rng.random((threads, threads)) * (rng.random((threads, threads)) < 0.3), 1)
    comm = comm + comm.T
    matrix = sparse_from(comm)
    assert len(matrix) == threads
    assert np.array_equal(matrix.part(np.arange(threads)), comm)
    left = np.flatnonzero(rng.random(threads) < 0.5)
    kept = np.setdiff1d(np.arange(threads), left)
    assert np.array_equal(matrix.without(left).part(np.arange(len(kept))), comm[np.ix_(kept, kept)])


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if method.installed])
@pytest.mark.parametrize("kind", ["zero", "disconnected", "wild"])
def test_ill_conditioned_matrices(method: str, kind: str) -> None:
    rng = np.random.default_rng(2)
    comm = np.zeros((12, 12))
    if kind != "zero":
        weights = 10.0 ** rng.uniform(-300, 300, (12, 12)) if kind == "wild" else np.ones((12, 12))
        same = np.arange(12) // 3
        comm = np.triu(weights * (same[:, None] == same[None, :]), 1)
        comm = comm + comm.T
    for machine in ("4x3", "5x2", "3x8", "16x1"):
        nodes = map_threads(comm, None, machine, method, "remote")
        counts = np.bincount(nodes, minlength=int(machine.split("x")[0]))
        assert counts.sum() == 12 and counts.max() - counts.min() <= 1
    if kind == "disconnected" and method == "best":
        assert evaluate(comm, None, "4x3", map_threads(comm, None, "4x3", method)).remote_comm == 0


@pytest.mark.parametrize("threads", [24, 200])
@pytest.mark.parametrize("pinned", [None, {0: 0, 1: 3}])
def test_equal_distances_are_as_good_as_none(threads: int, pinned: dict[int, int] | None) -> None:
    """Hop cost orders placements as RemoteComm does where all nodes are equally far: the same is found."""
    rng = np.random.default_rng(threads)
    comm = np.triu(rng.lognormal(0, 1.5, (threads, threads)) * (rng.random((threads, threads)) < 0.1), 1)
    remote, hop = (
        best(new_problem(comm + comm.T, None, Machine.load("4x50"), objective=objective, pinned=pinned))
        for objective in ("remote", "hop")
    )
    assert np.array_equal(remote, hop)
