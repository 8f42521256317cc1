"""What balance costs: `best` against CMLB, CMLB with swaps, and those who do not balance.

Two parts: the generated instances whose loads are uneven, where everything that can be within 5 % must be;
and matrices of the shape that the codes of [CMLB] have (SP-OMP, LU-OMP and BT-OMP on 2 nodes of 16
threads, its Tables 1 to 3): neighbours along each sweep over a background, loads that fall along the thread
ids.
"""

import os
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.mapper.instances import Matrix, Rng, instances
from numaplan.machine import Machine
from numaplan.mapper.threads.cost import imbalance, objective_value
from numaplan.mapper.threads.methods import METHODS
from numaplan.mapper.threads.problem import Nodes, Problem, new_problem

DEFAULT_SIZES = "16,32,64"
METHODS_SHOWN = ("best", "cmlb", "eagermap", "treematch", "choicemap")
# Reach of the sweeps along the ids, the share of all pairs' background, the spread of loads.
CODES = {"SP-OMP": (1, 0.15, 0.25), "LU-OMP": (1, 0.05, 0.2), "BT-OMP": (2, 0.15, 0.3)}
SEEDS = 5


def run() -> dict[str, Any]:
    """`uneven`: remote communication of best over cmlb with swaps; `tables`: ratios to EagerMap's figures."""
    return {"uneven": _uneven(), "tables": {code: _table(code) for code in CODES}}


def _uneven() -> dict[str, Any]:
    sizes = {int(size) for size in os.environ.get("NUMAPLAN_BENCH_SIZES", DEFAULT_SIZES).split(",")}
    ratios, kept, able = [], 0, 0
    for instance in instances(sizes):
        if np.ptp(instance.loads) == 0:
            continue
        problem = new_problem(instance.comm, instance.loads, instance.machine)
        found = METHODS["best"](problem)
        swapped = cmlb_with_swaps(problem)
        allowed = max(problem.tolerance, min(imbalance(problem, found), imbalance(problem, swapped))) + 1e-9
        able += imbalance(problem, swapped) <= allowed
        kept += imbalance(problem, found) <= allowed * 1.05
        if imbalance(problem, swapped) <= allowed and objective_value(problem, swapped) > 0:
            ratios.append(objective_value(problem, found) / objective_value(problem, swapped))
    return {
        "instances": len(ratios),
        "best in balance": kept,
        "cmlb with swaps in balance": able,
        "mean": float(np.exp(np.mean(np.log(np.maximum(ratios, 1e-9))))),
        "worst": max(ratios),
    }


def cmlb_with_swaps(problem: Problem) -> Nodes:
    """CMLB, then the swap that gains most and keeps the balance (or what there is of it), until none does."""
    places = METHODS["cmlb"](problem)
    allowed = max(problem.tolerance, imbalance(problem, places)) + 1e-12
    threads = np.arange(problem.threads)
    while True:
        talk = np.zeros((problem.nodes, problem.threads))
        np.add.at(talk, places, problem.comm)
        leave = talk[places][:, threads] - talk[places, threads]
        change = -(leave + leave.T) + 2 * problem.comm
        change[places[:, None] == places[None, :]] = 0.0
        for pair in np.argsort(change, axis=None):
            first, second = np.unravel_index(pair, change.shape)
            if change[first, second] >= -1e-9 * problem.comm.max():
                return places
            trial = places.copy()
            trial[[first, second]] = places[[second, first]]
            if imbalance(problem, trial) <= allowed:
                places = trial
                break


def _table(code: str) -> dict[str, dict[str, float]]:
    """Geometric means over SEEDS matrices: Load_std of EagerMap over each method's, and RemoteComm."""
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in METHODS_SHOWN}
    for seed in range(SEEDS):
        problem = _code_problem(code, seed)
        base = _figures(problem, "eagermap")
        for name in METHODS_SHOWN:
            remote, deviation = _figures(problem, name)
            figures[name].append((remote / base[0], base[1] / max(deviation, 1e-9 * base[1])))
    means = {name: np.exp(np.mean(np.log(rows), axis=0)) for name, rows in figures.items()}
    return {name: {"remote": float(row[0]), "evener": float(row[1])} for name, row in means.items()}


def _figures(problem: Problem, name: str) -> tuple[float, float]:
    if name != "best":
        places = METHODS[name](problem)
    else:
        # As even as CMLB, and 32 times as even as EagerMap: the table is about balance and talk at once.
        wanted = [imbalance(problem, METHODS[name](problem)) for name in ("cmlb", "eagermap")]
        tolerance = min(problem.tolerance, wanted[0], wanted[1] / 32)
        places = METHODS["best"](replace(problem, tolerance=tolerance))
    sums = np.bincount(places, problem.loads, problem.nodes)
    return objective_value(problem, places), float(sums.std())


def _code_problem(code: str, seed: int) -> Problem:
    reach, background, spread = CODES[code]
    rng = np.random.default_rng((seed, *code.encode()))
    comm = _sweeps(32, reach, background, rng)
    loads = 1e4 * np.linspace(1.0 + spread, 1.0 - spread, 32) * rng.lognormal(0.0, 0.03, 32)
    return new_problem(comm, loads, Machine.load("2x16"))


def _sweeps(n: int, reach: int, background: float, rng: Rng) -> Matrix:
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    near = np.where((apart > 0) & (apart <= reach), 1.0 / np.maximum(apart, 1), 0.0)
    comm = np.triu((near + background) * 1e6 * rng.lognormal(0.0, 0.1, (n, n)), 1)
    return comm + comm.T
