"""Cost and time of every mapping method and effort against the partitioners that are installed.

All run in one process on the generated instances of `instances.py`, from a dense numpy matrix. Costs are
relative to the best that anything found on the instance; placements that break the balance are counted only.
"""

import os
from collections import defaultdict
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.mapper.instances import Instance, instances
from numaplan.mapper.threads.cost import imbalance, objective_value
from numaplan.mapper.threads.methods import METHODS
from numaplan.mapper.threads.problem import EFFORTS, Problem, new_problem

DEFAULT_SIZES = "8,32,64"
WITHOUT = ("exact", "random")  # the one takes too long, the other says nothing
OBJECTIVES = ("balanced", "remote", "hop")
REPEATS = 2

Run = tuple[float, float, float]  # objective, deviation from balance, seconds


def run() -> dict[str, Any]:
    """By objective and N: for each contender the mean and worst cost ratio, and its milliseconds.

    NUMAPLAN_BENCH_SIZES: the thread counts to run, such as 8,16,32,64,128,256,512,2048; NUMAPLAN_BENCH_MAX:
    up to how many threads effort max takes part (it takes seconds a task).
    """
    sizes = {int(size) for size in os.environ.get("NUMAPLAN_BENCH_SIZES", DEFAULT_SIZES).split(",")}
    results: dict[tuple[str, int], list[dict[str, Run]]] = defaultdict(list)
    for instance in instances(sizes):
        for objective in OBJECTIVES:
            results[objective, len(instance.comm)].append(_contest(instance, objective))
    return {
        objective: {f"N={size}": _summary(results[objective, size], objective) for size in sorted(sizes)}
        for objective in OBJECTIVES
    }


def _contest(instance: Instance, objective: str) -> dict[str, Run]:
    """Every contender once for the answer, the fastest of REPEATS for the time."""
    problem = new_problem(instance.comm, instance.loads, instance.machine, objective=objective)
    efforts = EFFORTS if problem.threads <= int(os.environ.get("NUMAPLAN_BENCH_MAX", "0")) else EFFORTS[:2]
    contenders = {f"best {effort}": ("best", replace(problem, effort=effort)) for effort in efforts}
    for name, method in METHODS.items():
        if name != "best" and name not in WITHOUT and method.applies(problem):
            contenders[name] = (name, problem)
    return {label: _measure(name, task) for label, (name, task) in contenders.items()}


def _measure(name: str, problem: Problem) -> Run:
    method = METHODS[name]
    seconds = []
    for _ in range(1 if problem.effort == "max" else REPEATS):
        start = perf_counter()
        places = method(problem)
        seconds.append(perf_counter() - start)
    if np.bincount(places, minlength=problem.nodes).tolist() != problem.sizes.tolist():
        raise AssertionError(f"{name} broke the seats")
    return objective_value(problem, places), imbalance(problem, places), min(seconds)


def _summary(contests: list[dict[str, Run]], objective: str) -> dict[str, dict[str, float]]:
    ratios: dict[str, list[float]] = defaultdict(list)
    times: dict[str, list[float]] = defaultdict(list)
    broken: dict[str, int] = defaultdict(int)
    for contest in contests:
        allowed = _allowed(contest) if objective == "balanced" else np.inf
        least = min(value for value, off, _ in contest.values() if off <= allowed)
        for name, (value, off, seconds) in contest.items():
            times[name].append(seconds)
            if off > allowed:
                broken[name] += 1
            elif least > 0:
                ratios[name].append(value / least)
    return {
        name: {
            "mean": float(np.exp(np.mean(np.log(ratios[name])))) if ratios[name] else float("nan"),
            "worst": max(ratios[name], default=float("nan")),
            "unbalanced": broken[name],
            "ms": 1e3 * float(np.mean(times[name])),
        }
        for name in times
    }


def _allowed(contest: dict[str, Run]) -> float:
    """5 %, or what the nearest has and 5 % of that, as `best` understands it."""
    nearest = min(off for _, off, _ in contest.values())
    return max(0.05, nearest * 1.05 if nearest > 0.05 + 1e-9 else 0.0) + 1e-9
