"""The native search: against the optimum with proof, and on input that breaks arithmetic."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from benchmarks.mapper.instances import instances
from numaplan.mapper import METHODS, evaluate, map_threads
from numaplan.mapper.threads.bounds import lower_bound
from numaplan.mapper.threads.cost import imbalance, objective_value
from numaplan.mapper.threads.methods import Method
from numaplan.mapper.threads.methods.best import best
from numaplan.mapper.threads.methods.exact import exact
from numaplan.mapper.threads.methods.simple import compact
from numaplan.mapper.threads.problem import Problem, new_problem
from numaplan.mapper.threads.solver import Solution
from numaplan.profiler import Machine
from tests.support.properties import examples
from tests.support.tasks import OBJECTIVES, random_problem


def ours(method: Method) -> bool:
    """Whether a method is our own and takes any number of threads."""
    return not method.needs and not method.most_threads


def widened(problem: Problem, nearest: float) -> float:
    """The deviation that is allowed when the nearest to balance has this one."""
    if nearest <= problem.tolerance + 1e-9:
        return problem.tolerance + 1e-9
    return nearest * (1 + problem.tolerance) + 1e-9


@examples(60)
@given(
    threads=st.integers(2, 9),
    nodes=st.integers(2, 4),
    seed=st.integers(0, 10_000),
    objective=st.sampled_from(OBJECTIVES),
)
def test_best_is_optimal_for_few_threads(threads: int, nodes: int, seed: int, objective: str) -> None:
    problem = random_problem(threads, nodes, seed, objective)
    found, optimum = best(problem), exact(problem)
    assert objective_value(problem, found) == pytest.approx(objective_value(problem, optimum), rel=1e-9)
    if objective == "balanced":
        assert imbalance(problem, found) <= widened(problem, imbalance(problem, optimum))
    assert lower_bound(problem) <= objective_value(problem, optimum) * (1 + 1e-9)


@examples(40)
@given(
    seed=st.integers(0, 10_000),
    objective=st.sampled_from(OBJECTIVES),
    effort=st.sampled_from(["fast", "normal"]),
)
def test_best_is_never_worse_than_any_other(seed: int, objective: str, effort: str) -> None:
    """At effort fast than the baselines, at normal than all our methods."""
    rng = np.random.default_rng(seed)
    problem = random_problem(int(rng.integers(2, 40)), int(rng.integers(2, 6)), seed, objective, effort)
    names = [name for name, method in METHODS.items() if ours(method) and name != "random"]
    if effort == "fast":
        names = ["best", "compact", "scatter", "interleave"]
    _no_other_is_better(problem, names)


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("shuffled", [False, True])
def test_best_is_never_worse_on_patterns(objective: str, shuffled: bool) -> None:
    names = [name for name, method in METHODS.items() if ours(method) and name != "random"]
    for instance in instances({8, 16, 32}, seed=9):
        if ("shuffled" in instance.name) == shuffled:
            problem = new_problem(instance.comm, instance.loads, instance.machine, objective=objective)
            _no_other_is_better(problem, names)


def _no_other_is_better(problem: Problem, names: list[str]) -> None:
    placements = {name: METHODS[name](problem) for name in names}
    off = {name: imbalance(problem, places) for name, places in placements.items()}
    limit = widened(problem, min(off.values())) if problem.objective == "balanced" else np.inf
    assert off["best"] <= limit
    value = objective_value(problem, placements["best"])
    for name, places in placements.items():
        if off[name] <= limit:
            assert value <= objective_value(problem, places) * (1 + 1e-9), name


def test_what_a_slow_method_finds_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that stops at its first start is answered by one from the slow method's better placement."""
    problem = random_problem(40, 4, 11, "remote")
    good = best(problem)
    poor = compact(problem)
    assert objective_value(problem, good) < objective_value(problem, poor)
    answers = iter([Solution(poor, problem.tolerance)])
    module = import_module("numaplan.mapper.threads.methods.best")
    monkeypatch.setattr(module, "solve", lambda _, starts: next(answers, Solution(starts[-1], 0.05)))
    monkeypatch.setattr(module, "deloc", lambda _: good)
    assert objective_value(problem, best(problem)) <= objective_value(problem, good)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("effort", ["fast", "normal"])
@pytest.mark.parametrize("threads", [70, 150])
def test_same_seed_same_answer_also_side_by_side(objective: str, effort: str, threads: int) -> None:
    problem = random_problem(threads, 4, 5, objective, effort)
    with ThreadPoolExecutor(2) as pool:
        answers = [places.tolist() for places in pool.map(best, [problem] * 3)]
    assert answers[0] == answers[1] == best(problem).tolist()


@pytest.mark.slow
@examples(5)
@given(
    threads=st.integers(129, 180),
    nodes=st.integers(2, 11),
    seed=st.integers(0, 10_000),
    objective=st.sampled_from(OBJECTIVES),
)
def test_large_tasks_on_any_number_of_nodes(threads: int, nodes: int, seed: int, objective: str) -> None:
    """Sizes that do not divide, distances without order: exact seats, and no other is better."""
    problem = random_problem(threads, nodes, seed, objective)
    places = best(problem)
    assert np.bincount(places, minlength=nodes).tolist() == problem.sizes.tolist()
    names = ["best", "compact", "scatter", "interleave", "eagermap", "cmlb", "choicemap", "deloc"]
    _no_other_is_better(problem, names)


def test_starts_bound_the_result() -> None:
    problem = random_problem(40, 4, 7, "remote", "fast")
    good = best(random_problem(40, 4, 7, "remote", "normal"))
    again = best(replace(problem, starts=(good,)))
    assert objective_value(problem, again) <= objective_value(problem, good) * (1 + 1e-12)


@pytest.mark.parametrize("threads,machine", [(128, "8x16"), (256, "4x64")])
def test_shuffled_rings_and_trees_come_out_cut_where_they_are_thin(threads: int, machine: str) -> None:
    order = np.random.default_rng(1).permutation(threads)
    ring = np.zeros((threads, threads))
    ring[order, np.roll(order, 1)] = ring[np.roll(order, 1), order] = 1.0
    nodes = int(machine.split("x")[0])
    assert evaluate(ring, None, machine, map_threads(ring, None, machine)).remote_comm == nodes


def test_large_tasks_work() -> None:
    rng = np.random.default_rng(0)
    comm = np.triu(rng.random((1024, 1024)) * (rng.random((1024, 1024)) < 0.02), 1)
    nodes = map_threads(comm + comm.T, None, "16x64", effort="fast")
    assert np.bincount(nodes).tolist() == [64] * 16


def test_balance_is_met_where_it_can_be() -> None:
    rng = np.random.default_rng(4)
    comm: NDArray[np.float64] = np.kron(np.eye(4), np.ones((8, 8))) + 0.01
    loads = np.sort(rng.lognormal(0, 0.5, 32))
    nodes = map_threads(comm, loads, "4x8")
    costs = evaluate(comm, loads, "4x8", nodes)
    target = loads.sum() / 4
    assert max(abs(load - target) for load in costs.node_loads) <= 0.05 * target * (1 + 1e-9)


def test_one_hopeless_load_does_not_cost_the_communication() -> None:
    comm = np.kron(np.eye(4), 100 * np.ones((2, 2)))[:8, :8]
    order = np.array([0, 4, 1, 5, 2, 6, 3, 7])
    comm = comm[np.ix_(np.argsort(order), np.argsort(order))]
    loads = [1000.0, 1, 1, 1.01, 1, 1, 0.99, 1]
    assert evaluate(comm, loads, "4x2", map_threads(comm, loads, "4x2")).remote_comm == 0


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if ours(method)])
def test_extreme_numbers(method: str, objective: str) -> None:
    comm = np.full((8, 8), 1e-300)
    for pair in ((0, 5), (1, 6), (2, 7), (3, 4)):
        comm[pair], comm[pair[::-1]] = 1e300, 1e300
    for loads in (np.full(8, 1e-300), np.full(8, 1e300), np.zeros(8)):
        nodes = map_threads(comm, loads, "4x2", method, objective)
        assert np.bincount(nodes).tolist() == [2, 2, 2, 2]
        if method in ("best", "eagermap", "treematch"):
            assert nodes[0] == nodes[5] and nodes[1] == nodes[6]


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if not method.needs])
def test_degenerate_shapes(method: str) -> None:
    assert map_threads([[0.0]], [1.0], "4x2", method).tolist() == [0]
    assert map_threads(np.ones((3, 3)), None, "1x2", method).tolist() == [0, 0, 0]
    assert sorted(map_threads(np.ones((3, 3)), None, "8x1", method).tolist()) == [0, 1, 2]
    assert np.bincount(map_threads(np.zeros((6, 6)), None, "3x2", method)).tolist() == [2, 2, 2]


def ring_of_rings(threads: int, seed: int) -> Problem:
    """A shuffled ring on nodes that lie on a ring themselves: the best is known, and so is the nearest."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(threads)
    comm = np.zeros((threads, threads))
    comm[order, np.roll(order, 1)] = 1.0
    around = np.abs(np.subtract.outer(np.arange(8), np.arange(8)))
    machine = Machine.from_dict({
        "schema": "numaplan/machine/1",
        "nodes": [{"id": k, "cpus": list(range(k * threads // 8, (k + 1) * threads // 8))} for k in range(8)],
        "distances": (10 + 5 * np.minimum(around, 8 - around)).tolist(),
    })  # fmt: skip
    return new_problem(comm + comm.T, None, machine, objective="remote", seed=seed)


@pytest.mark.parametrize("effort", ["fast", "normal"])
@pytest.mark.parametrize("threads", [256, 328])
def test_large_placements_reach_the_known_optimum(threads: int, effort: str) -> None:
    for seed in range(2):
        problem = replace(ring_of_rings(threads, seed), effort=effort)
        assert objective_value(problem, best(problem)) == 8


@pytest.mark.parametrize("threads", [32, 256])
def test_of_equally_good_placements_the_nearest_is_taken(threads: int) -> None:
    for seed in range(4):
        problem = ring_of_rings(threads, seed)
        places = best(problem)
        assert objective_value(problem, places) == 8
        assert objective_value(replace(problem, objective="hop"), places) == 10 * threads + 8 * 5


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_large_placements_are_the_same_for_the_same_seed(objective: str) -> None:
    for instance in list(instances({256}))[:6]:
        problem = new_problem(
            instance.comm, instance.loads, instance.machine, objective=objective, effort="fast"
        )
        assert np.array_equal(best(problem), best(problem))


@pytest.mark.parametrize("effort", ["fast", "normal"])
def test_one_heavy_thread_does_not_cost_the_search_its_work(effort: str) -> None:
    problem = replace(ring_of_rings(512, 3), objective="balanced", effort=effort)
    loads = np.ones(512)
    loads[7] = 5.0  # no placement is within 5 %, and all are off alike
    heavy = replace(problem, loads=loads, targets=np.full(8, loads.sum() / 8))
    assert objective_value(heavy, best(heavy)) == 8
