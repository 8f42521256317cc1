"""The communication matrix: how right it is on real codes, and what it costs against one stable argsort.

Accuracy needs the development traces (NUMAPLAN_FIXTURES, default ../shared/fixtures); without them it is left
out. NUMAPLAN_BENCH_MILLIONS: how many million samples to time, default 1,10,100; as many are written to trace
files and analyzed as a whole.
"""

import os
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import ROOT
from benchmarks.analyzer.large_traces import measure
from benchmarks.analyzer.loads import load_accuracy
from numaplan.analyzer import CommunicationCounter, communication_matrix
from numaplan.mapper import evaluate, map_threads

Trace = dict[str, NDArray[Any]]
Matrix = NDArray[np.float64]
Addresses = Callable[[NDArray[Any], int, np.random.Generator], NDArray[Any]]

TIMED = (16, 64, 256)  # threads
NODES = 4
CHUNK = 1 << 20
SORTED = 10_000_000
SEEDS = (1, 2)  # permutations of thread ids
COMPARED = ("best", "last_writer", "any", "write", "same_line", "last_two_writers", "window")


def run() -> dict[str, Any]:
    """Correlation and plan cost of every rule at 1/1000 and with every tenth sample; seconds and ratios."""
    place = Path(os.environ.get("NUMAPLAN_FIXTURES", ROOT.parent / "shared" / "fixtures"))
    traces = [_load(path) for path in sorted((place / "traces").glob("*.npz"))]
    sizes = [int(text) for text in os.environ.get("NUMAPLAN_BENCH_MILLIONS", "1,10,100").split(",")]
    result: dict[str, Any] = {"speed": _speed(sizes), "trace files": measure(sizes)}
    if traces:
        result["accuracy"] = {rule: _accuracy(traces, rule) for rule in COMPARED}
        result["loads"] = load_accuracy(place / "traces")
    return result


def _load(path: Path) -> Trace:
    with np.load(path) as data:
        keep = ~data["stack"]
        columns = {name: data[name][keep] for name in ("thread", "addr", "is_write", "time")}
        return {**columns, "exact": data["exact_write_app"]}


def _accuracy(traces: list[Trace], rule: str) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    for label, every in (("all samples", 1), ("every tenth", 10)):
        correlations, costs = [], []
        for trace in traces:
            exact = trace["exact"]
            part = _thinned(trace, every)
            for seed in SEEDS:
                names = np.random.default_rng(seed).permutation(len(exact))
                truth = np.empty_like(exact)
                truth[np.ix_(names, names)] = exact
                columns = {**part, "thread": names[part["thread"]]}
                found = communication_matrix(**columns, threads=len(exact), rule=rule)
                costs.append(plan_cost(found, truth))
            correlations.append(correlation(found, truth))
        answer[label] = {
            "mean r": float(np.mean(correlations)),
            "least r": min(correlations),
            "plan cost": float(np.exp(np.mean(np.log(costs)))),
            "worst plan cost": max(costs),
        }
    return answer


def correlation(found: Matrix, exact: Matrix) -> float:
    """Pearson r over the pairs; 0 where nothing was found."""
    upper = np.triu_indices(len(exact), 1)
    if np.ptp(found[upper]) == 0:
        return 0.0
    return float(np.corrcoef(found[upper], exact[upper])[0, 1])


def _thinned(trace: Trace, every: int) -> Trace:
    """Every n-th sample of each thread."""
    thread = trace["thread"]
    order = np.argsort(thread, kind="stable")
    start = np.searchsorted(thread[order], thread[order])
    chosen = np.sort(order[(np.arange(len(order)) - start) % every == 0])
    return {name: trace[name][chosen] for name in ("thread", "addr", "is_write", "time")}


def plan_cost(found: Matrix, exact: Matrix) -> float:
    """Remote communication of the plan from a sampled matrix over that of the plan from the exact one."""
    machine = f"{NODES}x{-(-len(exact) // NODES)}"
    costs = [
        evaluate(exact, None, machine, map_threads(matrix, None, machine, objective="remote")).remote_comm
        for matrix in (found, exact)
    ]
    return float(costs[0] / costs[1])


def _speed(sizes: list[int]) -> dict[str, Any]:
    keys = np.random.default_rng(0).integers(0, 1 << 62, SORTED)
    start = process_time()
    np.argsort(keys, kind="stable")
    argsort = process_time() - start
    del keys
    answer: dict[str, Any] = {"stable argsort of 10 M, seconds": argsort}
    for name, addresses in {"local": _local, "uniform over 1 GiB": _uniform}.items():
        for threads, millions in [
            (threads, size) for size in sizes for threads in TIMED if size <= 10 or threads == 16
        ]:
            seconds = _count(millions * 1_000_000, threads, addresses)
            answer[f"{name}, {threads} threads, {millions} M samples"] = {
                "seconds": seconds,
                "over argsort": seconds / argsort * SORTED / (millions * 1_000_000),
            }
    return answer


def _count(samples: int, threads: int, addresses: Addresses) -> float:
    """Seconds to count samples that come in blocks, without making them."""
    rng = np.random.default_rng(1)
    counter = CommunicationCounter(threads)
    seconds = 0.0
    for done in range(0, samples, CHUNK):
        size = min(CHUNK, samples - done)
        thread = rng.integers(0, threads, size).astype(np.uint16)
        addr = addresses(thread, threads, rng).astype(np.uint64)
        is_write = rng.random(size) < 0.3
        start = process_time()
        counter.add(thread, addr, is_write)
        seconds += process_time() - start
    start = process_time()
    counter.result()
    return seconds + process_time() - start


def _local(thread: NDArray[Any], threads: int, rng: np.random.Generator) -> NDArray[Any]:
    """As programs do: mostly a hot part of the thread's own memory, at times all of it or a neighbour's."""
    kind = rng.random(len(thread))
    owner = (thread + (kind < 0.1)) % threads
    reach = np.where(kind < 0.7, 1 << 20, 1 << 26)
    return (owner.astype(np.int64) << 26) + (rng.random(len(thread)) * reach).astype(np.int64)


def _uniform(thread: NDArray[Any], _: int, rng: np.random.Generator) -> NDArray[Any]:
    """The worst case: no block is near the last one."""
    return rng.integers(0, 1 << 30, len(thread))
