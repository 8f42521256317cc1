"""Mapping tasks drawn at random."""

import numpy as np

from numaplan.mapper.threads.problem import Problem, new_problem
from numaplan.profiler import Machine

OBJECTIVES = ("balanced", "remote", "hop")


def random_problem(threads: int, nodes: int, seed: int, objective: str, effort: str = "normal") -> Problem:
    """Random weights, log-normal loads, nodes of unequal distances."""
    rng = np.random.default_rng(seed)
    comm = np.triu(rng.lognormal(0, 1.5, (threads, threads)) * (rng.random((threads, threads)) < 0.6), 1)
    far = np.triu(rng.integers(12, 40, (nodes, nodes)), 1)
    machine = Machine.from_dict({
        "schema": "numaplan/machine/1",
        "nodes": [{"id": k, "cpus": [2 * k, 2 * k + 1]} for k in range(nodes)],
        "distances": (far + far.T + 10 * np.eye(nodes)).tolist(),
    })  # fmt: skip
    loads = rng.lognormal(0, 0.7, threads)
    return new_problem(comm + comm.T, loads, machine, objective=objective, seed=seed, effort=effort)
