"""The mapping methods: worked vectors, hand-checked cases, and what holds for every input."""

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from numaplan.common import UsageError
from numaplan.mapper import METHODS, evaluate, map_threads
from numaplan.mapper.threads.methods.choicemap import mutual_pairs
from numaplan.mapper.threads.methods.eagermap import eagermap_tree
from numaplan.mapper.threads.methods.treematch import best_groups, treematch_tree
from numaplan.mapper.threads.problem import new_problem
from numaplan.profiler import Machine
from tests.support.properties import examples

PUBLISHED = ("compact", "scatter", "cmlb", "eagermap")


def matrix_of(rows: list[list[float]]) -> NDArray[np.float64]:
    """The matrix whose rows right of the diagonal are given."""
    count = len(rows) + 1
    matrix = np.zeros((count, count))
    for row, values in enumerate(rows):
        matrix[row, row + 1 :] = values
    return matrix + matrix.T


def groups_of(nodes: NDArray[np.int64]) -> list[list[int]]:
    return sorted(np.flatnonzero(nodes == node).tolist() for node in set(nodes.tolist()))


def random_matrix(count: int, seed: int, density: float = 0.5) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    matrix = np.triu(rng.integers(1, 100, (count, count)) * (rng.random((count, count)) < density), 1)
    return (matrix + matrix.T).astype(float)


def test_worked_vectors(shared_fixtures: Path) -> None:
    content = json.loads((shared_fixtures / "vectors" / "mapping_vectors.json").read_text())
    checked = 0
    for vector in content["vectors"]:
        comm, loads, count = matrix_of(vector["comm"]), vector["loads"], vector["N"]
        machine = Machine.load(f"{vector['K']}x{-(-count // vector['K'])}")
        for method in PUBLISHED:
            if method not in vector["expected"]:
                continue
            expected = vector["expected"][method]
            nodes = map_threads(comm, loads, machine, method)
            costs = evaluate(comm, loads, machine, nodes)
            assert groups_of(nodes) == expected["groups"], (vector["name"], method)
            assert costs.remote_comm == pytest.approx(expected["cost"])
            assert costs.hop_cost == pytest.approx(expected["hop_flat_10_21"])
            assert costs.load_std == pytest.approx(expected["load_std"], abs=1e-6)
            assert costs.load_std_mean == pytest.approx(expected["load_std_mean"], abs=1e-6)
            checked += 1
        for method, key in (("treematch", "treematch"), ("best", "optimum"), ("exact", "optimum")):
            if key in vector["expected"] and (method != "exact" or count <= 12):
                nodes = map_threads(comm, loads, machine, method, "remote")
                assert evaluate(comm, loads, machine, nodes).remote_comm == pytest.approx(
                    vector["expected"][key]["cost"]
                )
        if "eagermap_tree" in vector["expected"]:
            tree = vector["expected"]["eagermap_tree"]
            assert eagermap_tree(comm, tree["arities"]) == tree["slots"], vector["name"]
        if "treematch_tree" in vector["expected"]:
            _check_treematch_tree(comm, vector["expected"]["treematch_tree"], vector["K"])
    assert checked > 40


def _check_treematch_tree(comm: NDArray[np.float64], expected: dict[str, Any], nodes: int) -> None:
    units = treematch_tree(comm, expected["arities"])
    threads = [thread for unit in units for thread in unit]
    assert sorted(threads) == list(range(len(comm)))
    node = np.empty(len(comm), dtype=np.int64)
    node[threads] = np.repeat(np.arange(nodes), len(comm) // nodes)
    remote = comm[node[:, None] != node[None, :]].sum() / 2
    assert remote == pytest.approx(expected["cost"])


def test_cmlb_refuses_the_thread_that_would_spoil_the_balance() -> None:
    # 0 talks most to 1, but both are heavy: CMLB takes 2 with 0, EagerMap takes 1.
    comm = matrix_of([[9, 5, 1], [1, 5], [1]])
    loads = [10, 10, 1, 1]
    assert groups_of(map_threads(comm, loads, "2x2", "cmlb")) == [[0, 2], [1, 3]]
    assert groups_of(map_threads(comm, loads, "2x2", "eagermap")) == [[0, 1], [2, 3]]


def test_cmlb_takes_the_head_of_the_rank_when_nothing_fits() -> None:
    comm = matrix_of([[1, 2, 7], [1, 1], [1]])
    assert groups_of(map_threads(comm, [100, 1, 1, 1], "2x2", "cmlb")) == [[0, 3], [1, 2]]


def test_eagermap_ties_go_to_the_lowest_thread() -> None:
    assert groups_of(map_threads(np.ones((8, 8)), None, "2x4", "eagermap")) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_simple_placements_on_uneven_machines() -> None:
    machine = Machine.from_dict({"schema": "numaplan/machine/1", "nodes": [
        {"id": 3, "cpus": [0, 1, 2, 3]}, {"id": 7, "memory_bytes": 1 << 30}, {"id": 9, "cpus": [4, 5]},
    ]})  # fmt: skip
    comm = np.zeros((6, 6))
    assert map_threads(comm, None, machine, "compact").tolist() == [3, 3, 3, 3, 9, 9]
    assert map_threads(comm, None, machine, "scatter").tolist() == [3, 9, 3, 9, 3, 3]
    assert map_threads(comm, None, machine, "interleave").tolist() == [3, 3, 9, 9, 3, 3]
    assert sorted(map_threads(comm, None, machine, "random", seed=1).tolist()) == [3, 3, 3, 3, 9, 9]


@pytest.mark.parametrize("seed", [-5, -(1 << 70), 1 << 70])
@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if not method.needs])
def test_any_number_is_a_seed(name: str, seed: int) -> None:
    one, again = (map_threads(np.ones((4, 4)), None, "2x2", name, seed=seed) for _ in range(2))
    assert sorted(one.tolist()) == [0, 0, 1, 1] and one.tolist() == again.tolist()


def test_caches_are_dealt_to_by_node_first() -> None:
    """Of two nodes one has three caches, and the other one as large as two of them."""
    machine = Machine.from_dict({"schema": "numaplan/machine/1", "nodes": [
        {"id": 0, "cpus": [0, 1]}, {"id": 1, "cpus": [2, 3]}, {"id": 2, "cpus": [4, 5]},
        {"id": 3, "cpus": [6, 7, 8, 9]},
    ]})  # fmt: skip
    groups = np.array([0, 0, 0, 1])

    def dealt(method: str, threads: int) -> list[int]:
        problem = new_problem(np.zeros((threads, threads)), None, machine, groups=groups)
        found: list[int] = METHODS[method](problem).tolist()
        return found

    assert dealt("compact", 5) == [0, 1, 2, 3, 3]
    assert dealt("scatter", 5) == [0, 3, 1, 3, 2]
    assert dealt("scatter", 10) == [0, 3, 1, 3, 2, 3, 0, 3, 1, 2]
    assert dealt("interleave", 10) == [0, 0, 3, 3, 1, 1, 3, 3, 2, 2]
    assert dealt("scatter", 2) == [0, 3]


def test_treematch_is_exhaustive_for_few_threads() -> None:
    comm = random_matrix(9, 5)
    best = min(
        comm[list(a)][:, list(a)].sum() * -1 - _rest(comm, a) for a in combinations(range(9), 3) if 0 in a
    )
    groups = best_groups(comm, [3, 3, 3])
    inside = sum(comm[np.ix_(group, group)].sum() for group in groups)
    assert inside == pytest.approx(-best)


def _rest(comm: NDArray[np.float64], first: tuple[int, ...]) -> float:
    left = [thread for thread in range(len(comm)) if thread not in first]
    return max(
        comm[np.ix_(second, second)].sum() + comm[np.ix_(third, third)].sum()
        for pair in combinations(left[1:], 2)
        for second in [[left[0], *pair]]
        for third in [[thread for thread in left if thread not in second]]
    )


def test_treematch_greedy_beyond_the_limit_keeps_clear_communities() -> None:
    group = np.random.default_rng(3).permutation(np.repeat(np.arange(8), 8))
    comm = np.where(group[:, None] == group[None, :], 100.0, 1.0)
    nodes = map_threads(comm, None, "8x8", "treematch")
    assert groups_of(nodes) == groups_of(group)


def test_choicemap_pairs_by_mutual_choice() -> None:
    comm = matrix_of([[5, 9, 1], [8, 2], [3]])
    assert mutual_pairs(comm) == [(0, 2), (1, 3)]
    assert mutual_pairs(np.zeros((5, 5))) == [(0, 1), (2, 3), (4,)]


def test_deloc_spreads_busy_pairs_and_keeps_pairs_together() -> None:
    comm = np.zeros((8, 8))
    for thread in range(4):
        comm[thread, thread + 4] = comm[thread + 4, thread] = 10
    loads = [9, 9, 1, 1, 9, 9, 1, 1]
    nodes = map_threads(comm, loads, "2x4", "deloc")
    assert all(nodes[thread] == nodes[thread + 4] for thread in range(4))
    assert nodes[0] != nodes[1]


def test_spectral_splits_a_shuffled_path_in_two() -> None:
    order = np.random.default_rng(2).permutation(16)
    comm = np.zeros((16, 16))
    comm[order[:-1], order[1:]] = comm[order[1:], order[:-1]] = 1.0
    costs = evaluate(comm, None, "2x8", map_threads(comm, None, "2x8", "spectral"))
    assert costs.remote_comm == 1.0


@examples(40)
@given(
    threads=st.integers(1, 14),
    seats=st.lists(st.integers(0, 5), min_size=1, max_size=4).filter(any),
    seed=st.integers(0, 1000),
    objective=st.sampled_from(["balanced", "remote", "hop"]),
)
def test_every_method_keeps_exact_seats(threads: int, seats: list[int], seed: int, objective: str) -> None:
    machine = uneven_machine(seats)
    comm = random_matrix(threads, seed)
    loads = np.random.default_rng(seed).random(threads)
    wanted = np.bincount(map_threads(comm, loads, machine, "compact"), minlength=20)
    total = sum(seats)
    for node, count in enumerate(seats):
        assert abs(wanted[node * 2] - threads * count / total) < 1
    for name, method in METHODS.items():
        if not method.installed or (method.most_threads and threads > 8):
            continue
        nodes = map_threads(comm, loads, machine, name, objective, seed)
        assert nodes.dtype.kind == "i"
        assert np.bincount(nodes, minlength=20).tolist() == wanted.tolist(), name


def uneven_machine(seats: list[int]) -> Machine:
    """Nodes with these many cpus, ids 0, 2, 4 …; those without cpus have memory only."""
    nodes, first = [], 0
    for number, count in enumerate(seats):
        nodes.append({"id": 2 * number, "cpus": list(range(first, first + count)), "memory_bytes": 1 << 30})
        first += count
    return Machine.from_dict({"schema": "numaplan/machine/1", "nodes": nodes})


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError, match=r"unknown method 'bset'.*best, cmlb"):
        map_threads(np.zeros((2, 2)), None, "2x1", "bset")
    with pytest.raises(UsageError, match="unknown objective"):
        map_threads(np.zeros((2, 2)), None, "2x1", "best", "speed")
    with pytest.raises(UsageError, match="exact: 40 threads"):
        map_threads(np.zeros((40, 40)), None, "2x20", "exact")
