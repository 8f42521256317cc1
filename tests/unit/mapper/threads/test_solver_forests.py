"""Trees are cut exactly by the native search: against the least cut by an independent dynamic programme."""

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.mapper.instances import machine_of
from numaplan.mapper.threads.cost import objective_value
from numaplan.mapper.threads.methods.best import best
from numaplan.mapper.threads.problem import new_problem

Table = NDArray[np.float64]


def random_forest(threads: int, trees: int, shape: str, rng: np.random.Generator) -> list[int]:
    """The parent of each thread, which comes before it; -1 for the first of each tree."""
    parents = [-1] * trees
    for thread in range(trees, threads):
        near = {"bushy": 0, "deep": max(0, thread - 3), "path": thread - 1}[shape]
        parents.append(int(rng.integers(near, thread)))
    return parents


def joined(a: Table, b: Table) -> Table:
    """The least sums by how many threads both hold together."""
    table = np.full(len(a) + len(b) - 1, np.inf)
    for count, value in enumerate(a):
        table[count : count + len(b)] = np.minimum(table[count : count + len(b)], value + b)
    return table


def least_cut(parents: list[int], weights: Table, wanted: int) -> float:
    """By threads on node 0; tables[side][i]: of the subtree of i where i is on that side."""
    ones = [np.array([np.inf, 0.0]), np.array([0.0, np.inf])]
    tables = [[side.copy() for _ in parents] for side in ones]
    everything = np.zeros(1)
    for i in range(len(parents) - 1, -1, -1):
        here = [tables[0][i], tables[1][i]]
        if parents[i] < 0:
            everything = joined(everything, np.minimum(*here))
            continue
        for side in (0, 1):
            subtree = np.minimum(here[side], here[1 - side] + weights[i])
            tables[side][parents[i]] = joined(tables[side][parents[i]], subtree)
    return float(everything[wanted])


@pytest.mark.parametrize("trees", [1, 5])
@pytest.mark.parametrize("shape", ["bushy", "deep", "path"])
@pytest.mark.parametrize("threads", [129, 300])
def test_two_nodes_share_a_forest_at_the_least_cut(threads: int, shape: str, trees: int) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        parents = random_forest(threads, trees, shape, rng)
        weights = rng.lognormal(0, 1, threads)
        name = rng.permutation(threads)
        comm = np.zeros((threads, threads))
        for child, parent in enumerate(parents):
            if parent >= 0:
                comm[name[child], name[parent]] = comm[name[parent], name[child]] = weights[child]
        machine = machine_of("flat", 2, threads, rng)
        problem = new_problem(comm, None, machine, objective="remote", effort="fast")
        least = least_cut(parents, weights, int(problem.sizes[0]))
        assert objective_value(problem, best(problem)) == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("effort", ["fast", "normal"])
def test_branches_share_nodes_where_that_cuts_least(effort: str) -> None:
    """Sixteen branches of 31 below the 15 threads above them: every node takes one of these with a branch."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        name = rng.permutation(511)
        comm = np.zeros((511, 511))
        child = np.arange(1, 511)
        comm[name[child], name[(child - 1) // 2]] = np.where(child >= 31, 100.0, 1.0)  # loud in the branches
        problem = new_problem(
            comm + comm.T, None, machine_of("flat", 16, 32, rng), objective="remote", effort=effort
        )
        # Of the 30 quiet ties eight can be kept: a top thread is in one place, with one of its two branches.
        assert objective_value(problem, best(problem)) == 30 - 8
