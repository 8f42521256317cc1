"""Generated mapping tasks: communication patterns, loads and machines, each also with shuffled ids."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from numaplan.machine import Machine, Node

Matrix = NDArray[np.float64]
Rng = np.random.Generator


@dataclass(frozen=True)
class Instance:
    """One task: its name, matrix (N, N), loads (N,) and machine."""

    name: str
    comm: Matrix
    loads: Matrix
    machine: Machine


def _weighted(pairs: NDArray[np.bool_], rng: Rng, spread: float) -> Matrix:
    weights = rng.lognormal(3.0, spread, pairs.shape) if spread else np.full(pairs.shape, 10.0)
    matrix = np.triu(np.where(pairs, weights, 0.0), 1)
    return matrix + matrix.T


def ring(n: int, rng: Rng) -> Matrix:
    """Neighbours on a ring talk, and a little with those two away."""
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    apart = np.minimum(apart, n - apart)
    return _weighted(apart == 1, rng, 0.0) + 0.3 * _weighted(apart == 2, rng, 0.0)


def grid(n: int, rng: Rng) -> Matrix:
    """Four neighbours on a grid as square as n allows."""
    width = next(w for w in range(int(n**0.5), 0, -1) if n % w == 0)
    row, column = np.divmod(np.arange(n), n // width)
    apart = np.abs(np.subtract.outer(row, row)) + np.abs(np.subtract.outer(column, column))
    return _weighted(apart == 1, rng, 0.0)


def stencil(n: int, rng: Rng) -> Matrix:
    """Nine-point stencil with uneven weights."""
    width = next(w for w in range(int(n**0.5), 0, -1) if n % w == 0)
    row, column = np.divmod(np.arange(n), n // width)
    far = np.maximum(np.abs(np.subtract.outer(row, row)), np.abs(np.subtract.outer(column, column)))
    return _weighted(far == 1, rng, 0.5)


def tree(n: int, rng: Rng) -> Matrix:
    """Every thread talks to its parent in a binary tree."""
    pairs = np.zeros((n, n), dtype=bool)
    children = np.arange(1, n)
    pairs[(children - 1) // 2, children] = True
    return _weighted(pairs, rng, 0.5)


def hub(n: int, rng: Rng) -> Matrix:
    """A few masters talk to everyone; workers talk at random."""
    pairs = rng.random((n, n)) < 2.0 / n
    pairs[: max(1, n // 16)] = True
    return _weighted(pairs, rng, 0.8)


def pipeline(n: int, rng: Rng) -> Matrix:
    """Stages of four threads; every thread feeds those of the next stage."""
    stage = np.arange(n) // 4
    return _weighted(np.subtract.outer(stage, stage) == -1, rng, 0.3)


def blocks(n: int, rng: Rng) -> Matrix:
    """Communities of uneven size with noise between them."""
    group = rng.integers(0, max(2, n // 6), n)
    same = group[:, None] == group[None, :]
    return _weighted(same, rng, 0.5) + 0.05 * _weighted(np.ones((n, n), dtype=bool), rng, 1.0)


def power_law(n: int, rng: Rng) -> Matrix:
    """Activity by a power law: few threads do most of the talking."""
    activity = (1 + rng.permutation(n)) ** -0.8
    pairs = rng.random((n, n)) < np.minimum(1.0, 6.0 * n * np.outer(activity, activity) / activity.sum() ** 2)
    return _weighted(pairs, rng, 1.0)


def uniform(n: int, rng: Rng) -> Matrix:
    """Everyone talks to everyone about as much."""
    matrix = np.triu(rng.uniform(90.0, 110.0, (n, n)), 1)
    return matrix + matrix.T


PATTERNS: dict[str, Callable[[int, Rng], Matrix]] = {
    pattern.__name__: pattern
    for pattern in (ring, grid, stencil, tree, hub, pipeline, blocks, power_law, uniform)
}


def loads_of(shape: str, n: int, rng: Rng) -> Matrix:
    """Loads: uniform, ramp, log-normal or one heavy thread."""
    if shape == "ramp":
        return np.linspace(1.0, 4.0, n)
    if shape == "lognormal":
        return rng.lognormal(0.0, 0.6, n)
    loads = np.ones(n)
    if shape == "heavy":
        loads[rng.integers(n)] = 3.0
    return loads


def machine_of(kind: str, nodes: int, cpus: int, rng: Rng) -> Machine:
    """Flat distances, or those of a ring of nodes with uneven links."""
    apart = np.abs(np.subtract.outer(np.arange(nodes), np.arange(nodes)))
    apart = np.minimum(apart, nodes - apart)
    far = np.where(apart > 0, 21.0, 10.0)
    if kind == "irregular":
        jitter = np.triu(rng.integers(0, 3, (nodes, nodes)), 1)
        far = np.where(apart > 0, 11.0 + 5 * apart + jitter + jitter.T, 10.0)
    return Machine(
        name=f"{kind} {nodes}x{cpus}",
        nodes=tuple(Node(id=k, cpus=tuple(range(k * cpus, (k + 1) * cpus))) for k in range(nodes)),
        distances=tuple(map(tuple, far.tolist())),
    )


SHAPES = (
    (8, 2),
    (8, 4),
    (16, 2),
    (16, 4),
    (32, 4),
    (32, 8),
    (64, 4),
    (64, 16),
    (128, 8),
    (256, 4),
    (512, 16),
    (2048, 16),
)
LOADS = ("uniform", "ramp", "lognormal", "heavy")


def instances(sizes: set[int], seed: int = 1) -> Iterator[Instance]:
    """Every pattern at every shape with N in `sizes`, in order and shuffled; loads and machines alternate."""
    count = 0
    for n, nodes in SHAPES:
        if n not in sizes:
            continue
        for name, pattern in PATTERNS.items():
            for shuffled in (False, True):
                rng = np.random.default_rng((seed, n, nodes, list(PATTERNS).index(name), shuffled))
                shape = LOADS[count % len(LOADS)]
                kind = ("flat", "irregular")[count // 2 % 2]
                count += 1
                comm = pattern(n, rng)
                if shuffled:
                    order = rng.permutation(n)
                    comm = comm[np.ix_(order, order)]
                yield Instance(
                    name=f"{name}-{n}x{nodes}{'-shuffled' if shuffled else ''}-{shape}-{kind}",
                    comm=comm,
                    loads=loads_of(shape, n, rng),
                    machine=machine_of(kind, nodes, -(-n // nodes), rng),
                )
